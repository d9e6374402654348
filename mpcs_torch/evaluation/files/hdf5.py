"""Read HDF5 matrices of trials (Scores, Key and Ndx), as SIDEKIT, BOSARIS and PyBOSARIS write them."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.tables import FileTable
from mpcs_torch.io.untrusted_files import FREE_BYTES, VALUE_BYTES, FileRuleError, Unpacked

if TYPE_CHECKING:
    import h5py

PAIRS = (
    ("modelset", "segset"),
    ("ID/row_ids", "ID/column_ids"),
    ("model_names", "test_names"),
)
"""The datasets with the names of matrix rows and columns: in SIDEKIT, BOSARIS for MATLAB, and PyBOSARIS."""
SCORES, MASK = ("scores", "score_mat"), "score_mask"
"""The datasets of scores and their mask. PyBOSARIS writes ``score_mat`` without a mask: NaN means no score."""
TRIALS, TARGETS, NONTARGETS = "trial_mask", "tar_mask", "non_mask"
MATRIX = "a matrix of scores"
"""The dialect of a table from a score matrix. Some pairs with a score may not be in the list of trials."""


def hdf5_table(path: Path) -> FileTable:
    """Open an HDF5 matrix as a table with the columns enrollment, test, and either score or label.

    A matrix of scores has a row for each pair with a score. A Key (labels) or an Ndx (a list of trials without labels)
    has a row for each trial; all trials of an Ndx get the label "target".

    Raises:
        FileRuleError: If the file breaks a limit, or contains no such matrix.
    """
    import h5py
    from pyarrow import array, string

    unpacked = Unpacked(path)
    with h5py.File(path, "r") as file:
        pair = next((pair for pair in PAIRS if pair[0] in file), None)
        kind = next((name for name in (*SCORES, TRIALS, TARGETS) if name in file), None)
        if pair is None or kind is None:
            labels: dict[str, Any] = {
                "labels": TRIALS,
                "targets": TARGETS,
                "nontargets": NONTARGETS,
            }
            raise FileRuleError("trials", pairs=list(PAIRS), scores=list(SCORES), **labels)
        names = [_names(file, axis, unpacked) for axis in pair]
        is_filled, matrix = _cells(file, kind, (len(names[0]), len(names[1])), unpacked)
    for axis, texts in enumerate(names):  # each trial gets its two names
        unpacked.add(int(is_filled.sum(1 - axis) @ np.array([len(text) for text in texts])))
    rows, columns = is_filled.nonzero()
    cells = matrix[rows, columns]
    axes = {
        "enrollment": array(names[0], string()).take(array(rows)),
        "test": array(names[1]).take(array(columns)),
    }
    if kind in SCORES:
        table = {**axes, "score": array(cells)}
    else:
        places = (cells > 0).astype(np.int64)
        table = {**axes, "label": array(["nontarget", "target"]).take(array(places))}
    dialect = MATRIX if kind in SCORES else ""
    return FileTable(
        path,
        [*table],
        lambda names, *_: {name: table[name] for name in names},
        dialect=dialect,
    )


def _dataset(file: "h5py.File", name: str, unpacked: Unpacked) -> "h5py.Dataset":
    """Return an unread dataset, and count it; refuse one that is in another file, or of which a part is missing."""
    import h5py

    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise FileRuleError("dataset", name=name)
    if dataset.file.filename != file.filename or dataset.is_virtual or dataset.external:
        raise FileRuleError("in_file", quoted(name))
    values = max(math.prod(shape) for shape in (dataset.shape, dataset.chunks or ()))
    unpacked.add(values * max(VALUE_BYTES, dataset.dtype.itemsize))
    if not _is_stored(dataset):
        raise FileRuleError("stored", quoted(name))
    return dataset


def _is_stored(dataset: "h5py.Dataset") -> bool:
    """Whether the file has the bytes of all values.

    HDF5 fills the places of missing values with one value. No toolkit writes such files of trials, but damage makes
    them, and the HDF5 library then ends the process, or looks for millions of chunks.
    """
    if dataset.chunks is None:
        return bool(dataset.id.get_storage_size() >= dataset.size * dataset.dtype.itemsize)
    chunks = [
        math.ceil(size / chunk)
        for size, chunk in zip(dataset.shape, dataset.chunks, strict=True)
    ]
    sizes = list[int]()
    dataset.id.chunk_iter(lambda chunk: sizes.append(chunk.size))
    return len(sizes) >= math.prod(chunks) and min(sizes, default=1) > 0


def _names(file: "h5py.File", name: str, unpacked: Unpacked) -> list[str]:
    """Return the texts in the dataset ``name``; raise an error for empty and repeated texts."""
    dataset = _dataset(file, name, unpacked)
    names: list[str] = []
    if dataset.dtype.kind in "SO" and dataset.ndim == 1:
        # Many names can refer to one text, which is at most as long as the file is large.
        rows = max(1, FREE_BYTES // Path(file.filename).stat().st_size)
        for start in range(0, len(dataset), rows):
            names += dataset.asstr("utf-8")[start : start + rows].tolist()
            unpacked.add(sum(map(len, names[start:])))
    if not names or "" in names or len({*names}) < len(names):
        raise FileRuleError("names", quoted(name))
    return names


def _matrix(
    file: "h5py.File", name: str, shape: tuple[int, int], kinds: str, unpacked: Unpacked
) -> NDArray[Any]:
    """Read the matrix ``name``; refuse a shape other than ``shape``, and a dtype of a kind not in ``kinds``."""
    matrix = _dataset(file, name, unpacked)
    if matrix.shape != shape or matrix.dtype.kind not in kinds:
        kind = "scores" if kinds == "f" else "whole numbers"
        raise FileRuleError(
            "matrix_of_trials", quoted(name), matrix, shape=shape, kind=kind
        )
    values = np.asarray(matrix[:])
    if values.dtype.kind == "b":  # damaged files may have bools above 1
        values = values.view(np.uint8)
    return values


def _cells(
    file: "h5py.File", kind: str, shape: tuple[int, int], unpacked: Unpacked
) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Return a mask of the cells that are trials, and the value of each cell; both have the shape ``shape``.

    Values are scores, or labels: 1 for targets, -1 for non-targets. If the file has no mask, cells with a score of NaN
    or a label of 0 are no trials.
    """
    if kind in SCORES:
        values = _matrix(file, kind, shape, "f", unpacked).astype(np.float64)
        is_filled = ~np.isnan(values)
        if MASK in file:
            is_filled = _matrix(file, MASK, shape, "biu", unpacked) != 0
        if np.isnan(values[is_filled]).any():
            raise FileRuleError("number_in_mask", quoted(kind), mask=MASK)
        return is_filled, values
    values = _matrix(file, kind, shape, "biu", unpacked).astype(np.int64)
    others = np.zeros(shape, np.int64)
    lowest = -1
    if kind == TARGETS:
        others = _matrix(file, NONTARGETS, shape, "biu", unpacked).astype(np.int64)
        lowest = 0
    are_low = (values < lowest) | (others < 0)
    are_high = (values > 1) | (others > 1)
    if (are_low | are_high).any():
        raise FileRuleError("between", quoted(kind), minimum=lowest, maximum=1)
    if ((values == 1) & (others == 1)).any():
        raise FileRuleError(
            "target_or_not", "a trial", targets=TARGETS, nontargets=NONTARGETS
        )
    return values != others, values - others
