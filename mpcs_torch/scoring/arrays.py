"""Read predictions from arrays: npy and pt files are memory-mapped, npz files are read as a stream."""

import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.scoring.chunks import Chunk, PredictionsError, rows_at_a_time

SCORES, LABELS = "preds", "target"
"""Names of the two arrays in an npz or pt file."""


class Array(NamedTuple):
    """An array on disk that is read in the order of its rows."""

    shape: tuple[int, ...]
    read: Callable[[int, int], NDArray[np.generic] | Tensor]
    """Return the rows from a start to a stop."""


class ArrayFile:
    """An array of scores and an array of labels that are read together; (N, 0) labels if there are none."""

    def __init__(self, path: Path, target: Path | None, *, needs_labels: bool) -> None:
        self.path, self._target, self._needs_labels = path, target, needs_labels
        scores, labels = (array.shape for array in self._open())
        if len(scores) != 2 or scores[1] < 2:
            raise PredictionsError(path, f"the scores must have shape (N, C) with C >= 2, but have {scores}")
        if labels not in (scores[:1], scores, *([] if needs_labels else [(*scores[:1], 0)])):
            rule = f"the labels must have shape {scores[:1]} or {scores} beside the scores"
            raise PredictionsError(target or path, f"{rule}, but have {labels}")
        self.columns = [str(column) for column in range(scores[1])]

    def chunks(self) -> Iterator[Chunk]:
        """Yield all rows in chunks."""
        scores, labels = self._open()
        rows, step = scores.shape[0], rows_at_a_time(len(self.columns))
        for start in range(0, rows, step):
            stop = min(start + step, rows)
            yield Chunk(start + 1, _as_tensor(scores.read(start, stop)), _as_tensor(labels.read(start, stop)))

    def _open(self) -> tuple[Array, Array]:
        path, target = self.path, self._target
        if path.suffix == ".npy":
            if target is None and self._needs_labels:
                raise PredictionsError(path, "contains only scores: give the labels with --target FILE")
            scores = _mapped(path)
            return scores, _no_labels(scores) if target is None else _mapped(target)
        if target is not None:
            raise PredictionsError(path, f"contains its own labels, as {LABELS}: --target is only for npy files")
        if path.suffix == ".npz":
            archive = zipfile.ZipFile(path)
            scores = _member(path, archive, SCORES)
            is_unlabelled = f"{LABELS}.npy" not in archive.namelist() and not self._needs_labels
            return scores, _no_labels(scores) if is_unlabelled else _member(path, archive, LABELS)
        return _tensors(path, needs_labels=self._needs_labels)


def _no_labels(scores: Array) -> Array:
    return Array((scores.shape[0], 0), lambda start, stop: torch.empty(stop - start, 0))


def _mapped(path: Path) -> Array:
    with path.open("rb") as file:
        shape, dtype, is_fortran = _header(path, file)
        offset = file.tell()
    _check_whole(path, shape, dtype, path.stat().st_size - offset)
    mapped = np.memmap(path, dtype, "r", offset, shape, "F" if is_fortran else "C")
    return Array(shape, lambda start, stop: mapped[start:stop])


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> Array:
    try:
        stream, size = archive.open(f"{name}.npy"), archive.getinfo(f"{name}.npy").file_size
    except KeyError:
        raise PredictionsError(path, f"must contain arrays named {SCORES} and {LABELS}, but has no {name}") from None
    shape, dtype, is_fortran = _header(path, stream)
    if is_fortran:
        raise PredictionsError(path, f"{name} must be stored row by row (numpy.ascontiguousarray)")
    _check_whole(path, shape, dtype, size - stream.tell())
    row_bytes = dtype.itemsize * int(np.prod(shape[1:]))
    return Array(
        shape,
        lambda start, stop: np.frombuffer(stream.read(row_bytes * (stop - start)), dtype).reshape(
            stop - start, *shape[1:]
        ),
    )


def _tensors(path: Path, *, needs_labels: bool) -> tuple[Array, Array]:
    held = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    if not needs_labels and isinstance(held, dict) and isinstance(held.get(SCORES), Tensor) and LABELS not in held:
        held = {**held, LABELS: torch.empty(len(held[SCORES]), 0)}
    if not isinstance(held, dict) or not all(isinstance(held.get(name), Tensor) for name in (SCORES, LABELS)):
        raise PredictionsError(path, f"must contain a dictionary with tensors {SCORES} and {LABELS}")
    scores, labels = (held[name] for name in (SCORES, LABELS))
    return (
        Array(tuple(scores.shape), lambda start, stop: scores[start:stop]),
        Array(tuple(labels.shape), lambda start, stop: labels[start:stop]),
    )


def _header(path: Path, file: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[np.generic], bool]:
    version = npy.read_magic(file)
    read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
    shape, is_fortran, dtype = read(file)
    if dtype.kind not in "fiub" or dtype.itemsize > 8:
        raise PredictionsError(path, f"must contain numbers of at most 8 bytes, but contains {dtype}")
    return shape, dtype, is_fortran


def _check_whole(path: Path, shape: tuple[int, ...], dtype: np.dtype[np.generic], size: int) -> None:
    """Refuse an array that ends before its last value."""
    values, columns = size // dtype.itemsize, max(1, int(np.prod(shape[1:])))
    if values < int(np.prod(shape)):
        row, column = divmod(values, columns)
        raise PredictionsError(path, f"the file ends here, before row {shape[0]}", row=row + 1, column=column)


def _as_tensor(held: "NDArray[np.generic] | Tensor") -> Tensor:
    if isinstance(held, Tensor):
        return held
    wide = np.int64 if held.dtype.kind == "u" else held.dtype.newbyteorder("=")  # torch barely supports unsigned
    return torch.from_numpy(np.array(held, dtype=wide))
