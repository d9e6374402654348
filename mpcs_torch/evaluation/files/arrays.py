"""Read predictions from arrays: npy and pt files are memory-mapped, npz files are read as a stream."""

import math
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.concern.rules import MAX_CLASSES
from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import Chunk, PredictionsError, reading, rows_at_a_time
from mpcs_torch.io.npy_files import map_array, read_header
from mpcs_torch.io.untrusted_files import check_member, check_whole_tensors, load_tensors

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
        fewest = 1 if len(labels) == 2 and labels == scores else 2  # soft labels can be of one class, such as a sound
        if len(scores) != 2 or scores[1] < fewest:
            rule = f"the scores must have shape (N, C) with C >= {fewest}"
            raise PredictionsError(path, f"{rule}, but have {quoted(scores)}")
        if scores[1] > MAX_CLASSES:
            raise PredictionsError(path, f"the scores must have at most {MAX_CLASSES} classes, but have {scores[1]}")
        if labels not in (scores[:1], scores, *([] if needs_labels else [(*scores[:1], 0)])):
            rule = f"the labels must have shape {scores[:1]} or {scores} beside the scores"
            raise PredictionsError(target or path, f"{rule}, but have {quoted(labels)}")
        self.rows, self.columns = scores[0], [str(column) for column in range(scores[1])]
        self.notes: list[str] = []

    def chunks(self, part: range | None = None) -> Iterator[Chunk]:
        """Yield all rows, or a part, in chunks."""
        scores, labels = self._open()
        part, step = part or range(scores.shape[0]), rows_at_a_time(len(self.columns))
        for start in range(part.start, part.stop, step):
            stop = min(start + step, part.stop)
            target = labels.read(start, stop)
            if str(target.dtype).endswith("uint64"):  # an int64 might not hold them, but turn them into other numbers
                values = np.asarray(target)
                is_huge = values > np.iinfo(np.int64).max
                if is_huge.any():
                    row, *column = np.argwhere(is_huge)[0].tolist()
                    problem = f"the label must be from 0 to {len(self.columns) - 1}, but is {values[(row, *column)]}"
                    raise PredictionsError(self._target or self.path, problem, row=start + 1 + row)
            yield Chunk(start + 1, _as_tensor(scores.read(start, stop)), _as_tensor(target))

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
    with reading(path):
        mapped = map_array(path)
    return Array(mapped.shape, lambda start, stop: mapped[start:stop])


def _member(path: Path, archive: zipfile.ZipFile, name: str) -> Array:
    if f"{name}.npy" not in archive.namelist():
        raise PredictionsError(path, f"must contain arrays named {SCORES} and {LABELS}, but has no {name}")
    return streamed_member(path, archive, name)


def streamed_member(path: Path, archive: zipfile.ZipFile, name: str, *, most_characters: int = 0) -> Array:
    """Open an array of an npz file, of numbers or of text of at most so many characters each.

    Raises:
        PredictionsError: If it is not stored row by row.
        FileRuleError: If it breaks a limit, or is no such array.
    """
    member = archive.getinfo(f"{name}.npy")
    check_member(member)
    stream = archive.open(member)
    header = read_header(stream, most_characters=most_characters)
    if header.is_fortran and len(header.shape) > 1:
        raise PredictionsError(path, f"{name} must be stored row by row (numpy.ascontiguousarray)")
    header.check_whole(member.file_size - stream.tell())
    shape, dtype = header.shape, header.dtype
    row_bytes = dtype.itemsize * math.prod(shape[1:])
    first = stream.tell()

    def read(start: int, stop: int) -> NDArray[np.generic]:
        stream.seek(first + row_bytes * start)  # which reads what is between
        return np.frombuffer(stream.read(row_bytes * (stop - start)), dtype).reshape(stop - start, *shape[1:])

    return Array(shape, read)


def _tensors(path: Path, *, needs_labels: bool) -> tuple[Array, Array]:
    saved = load_tensors(path, mmap=True)
    if not needs_labels and isinstance(saved, dict) and isinstance(saved.get(SCORES), Tensor) and LABELS not in saved:
        saved = {**saved, LABELS: torch.empty(len(saved[SCORES]), 0)}
    if not isinstance(saved, dict) or not all(isinstance(saved.get(name), Tensor) for name in (SCORES, LABELS)):
        raise PredictionsError(path, f"must contain a dictionary with tensors {SCORES} and {LABELS}")
    scores, labels = (saved[name] for name in (SCORES, LABELS))
    check_whole_tensors([scores, labels])
    return (
        Array(tuple(scores.shape), lambda start, stop: scores[start:stop]),
        Array(tuple(labels.shape), lambda start, stop: labels[start:stop]),
    )


def _as_tensor(values: "NDArray[np.generic] | Tensor") -> Tensor:
    if isinstance(values, Tensor):
        return values
    wide = np.int64 if values.dtype.kind == "u" else values.dtype.newbyteorder("=")  # torch barely supports unsigned
    return torch.from_numpy(np.array(values, dtype=wide))
