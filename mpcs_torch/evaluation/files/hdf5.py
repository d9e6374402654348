"""HDF5 matrices of trials, as SIDEKIT, BOSARIS and PyBOSARIS read and write them: Scores and Keys; an Ndx is read."""

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.tables import Column, Table
from mpcs_torch.functional.inputs.groups import Groups
from mpcs_torch.io.untrusted_files import FREE_BYTES, MAX_EXPANSION, FileRuleError

if TYPE_CHECKING:
    import h5py

SUFFIXES = (".h5", ".hdf5")
PAIRS = (("modelset", "segset"), ("ID/row_ids", "ID/column_ids"), ("model_names", "test_names"))
"""The names of rows and columns in files of SIDEKIT, BOSARIS for MATLAB, and PyBOSARIS."""
SCORES, MASK = ("scores", "score_mat"), "score_mask"
"""``score_mat`` is that of PyBOSARIS, which has no mask: NaN there is no score."""
TRIALS, TARGETS, NONTARGETS = "trial_mask", "tar_mask", "non_mask"
MATRIX = "a matrix of scores"
"""The dialect of a table of scores, some of which may be of pairs that are no trials."""
KINDS = {"f": "floating point numbers", "biu": "integers or bools"}
"""The values of scores, and of masks, by numpy's letters."""
MAX_CELLS_OF_A_TRIAL = 100
"""Larger matrices with more cells would be packed tighter than `hdf5_table` reads, and are better written as tables."""
Pair = tuple[Groups, Groups]
"""The enrollments and the tests of trials."""


def hdf5_table(path: Path) -> Table:
    """Open a matrix as a table: enrollment, test, and the score of each pair that has one, or the label of each trial.

    The trials of an Ndx, which have no labels, appear as targets.

    Raises:
        FileRuleError: If it breaks a limit, or is no such file.
    """
    import h5py
    from pyarrow import array, string

    with h5py.File(path, "r") as file:
        names = _axes(file)
        kind, is_filled, values = _cells(file, names)
    rows, columns = is_filled.nonzero()
    cells = values[rows, columns]
    axes = {"enrollment": array(names[0], string()).take(array(rows)), "test": array(names[1]).take(array(columns))}
    labels = array(["nontarget", "target"]).take(array((cells > 0).astype(np.int64)))
    table = {**axes, kind: array(cells) if kind == "score" else labels}

    def load(wanted: Sequence[str], _: Collection[str], first_rows: int | None) -> dict[str, Column]:
        return {name: table[name][:first_rows] for name in wanted}

    return Table(path, [*table], load, dialect="" if kind == "label" else MATRIX)


def _dataset(file: "h5py.File", name: str) -> "h5py.Dataset":
    """Return a dataset that is in the file itself and cannot fill the memory; no value is read yet."""
    import h5py

    dataset = file.get(name)
    if not isinstance(dataset, h5py.Dataset) or dataset.shape is None:
        raise FileRuleError(f"must have {quoted(name)}, a dataset with a shape")
    if dataset.file.filename != file.filename or dataset.is_virtual or dataset.external:
        raise FileRuleError(f"{quoted(name)} must be in the file itself, but is in other files")
    declared = max(math.prod(shape) for shape in (dataset.shape, dataset.chunks or ())) * dataset.dtype.itemsize
    if declared > max(FREE_BYTES, MAX_EXPANSION * Path(file.filename).stat().st_size):
        rule = f"must declare at most {MAX_EXPANSION} times the size of the file or {FREE_BYTES} bytes"
        raise FileRuleError(f"{quoted(name)} {rule}, but declares {declared}")
    return dataset


def _matrix(file: "h5py.File", name: str, shape: tuple[int, ...], kinds: str) -> NDArray[Any]:
    """Return a matrix of numbers of some of `KINDS`."""
    matrix = _dataset(file, name)
    if matrix.dtype.kind not in kinds or matrix.shape != shape:
        rule = f"must be a matrix {shape} of {KINDS[kinds]}, as there are models and segments"
        raise FileRuleError(f"{quoted(name)} {rule}, but is {_kind(matrix)}")
    return np.asarray(matrix[:])


def _kind(dataset: "h5py.Dataset") -> str:
    return f"{quoted(str(dataset.dtype))} of shape {quoted(dataset.shape)}"


def _axes(file: "h5py.File") -> tuple[list[str], list[str]]:
    """Return the names of rows and columns."""
    pair = next((pair for pair in PAIRS if pair[0] in file), None)
    if pair is None:
        known = ", or ".join(" and ".join(pair) for pair in PAIRS)
        raise FileRuleError(f"must have the names of models and segments: {known}")
    return _names(file, pair[0]), _names(file, pair[1])


def _names(file: "h5py.File", name: str) -> list[str]:
    """Return the names that a dataset has; refuse empty names and those that appear twice."""
    import h5py

    dataset = _dataset(file, name)
    if h5py.check_string_dtype(dataset.dtype) is None or len(dataset.shape) != 1:
        raise FileRuleError(f"{quoted(name)} must be a list of names, but is {_kind(dataset)}")
    names = list(dataset.asstr("utf-8")[:])
    if "" in names or len({*names}) < len(names):
        repeated = next((each for place, each in enumerate(names) if each in names[:place]), "")
        problem = "has an empty name" if "" in names else f"has {quoted(repeated)} twice"
        raise FileRuleError(f"{quoted(name)} must have different names, but {problem}")
    return names


def _cells(
    file: "h5py.File", names: Sequence[Sequence[str]]
) -> tuple[Literal["score", "label"], NDArray[np.bool_], NDArray[Any]]:
    """Return whether a matrix has scores or labels, the cells that are filled, and all values.

    Those cells are filled that the mask says, else those that are not NaN or 0.
    """
    first = next((name for name in (*SCORES, TRIALS, TARGETS) if name in file), None)
    if first is None:
        problem = f"must be Scores, with {' or '.join(SCORES)}, or a Key, with {TRIALS}"
        raise FileRuleError(f"{problem}, or with {TARGETS} and {NONTARGETS}")
    shape = tuple(map(len, names))
    if first in SCORES:
        values = _matrix(file, first, shape, "f").astype(np.float64)
        is_filled = _matrix(file, MASK, shape, "biu") != 0 if MASK in file else ~np.isnan(values)
        is_bad, rule = is_filled & np.isnan(values), "the score of {} must be a number, but is 'nan'"
    else:
        targets, *nontargets = (_labels(file, name, shape) for name in (first, *[NONTARGETS] * (first == TARGETS)))
        values = np.asarray(targets - sum(nontargets), dtype=np.float64)
        is_filled, rule = values != 0, "a trial must be target or non-target, but '{}' is both"
        is_bad = (targets == 1) & (sum(nontargets) == 1)
    if is_bad.any():
        row, column = (int(place[0]) for place in is_bad.nonzero())
        raise FileRuleError(rule.format(quoted(f"{names[0][row]} {names[1][column]}")[1:-1]))
    return "score" if first in SCORES else "label", is_filled, values


def _labels(file: "h5py.File", name: str, shape: tuple[int, ...]) -> NDArray[np.int8]:
    """Return the numbers of a mask: from -1 to 1 in `TRIALS`, 0 or 1 in others."""
    values, lowest = _matrix(file, name, shape, "biu"), -1 if name == TRIALS else 0
    values = values.view(np.uint8) if values.dtype.kind == "b" else values  # a damaged bool may be neither
    bad = (values < lowest) | (values > 1)
    if bad.any():
        raise FileRuleError(f"{quoted(name)} must be from {lowest} to 1, but has {values[bad][0]}")
    return np.asarray(values, dtype=np.int8)


def check_matrix(path: Path, pair: Pair) -> None:
    """Refuse trials that are too few for the matrix of their names, and names that a matrix cannot have.

    Raises:
        PredictionsError: If they are.
    """
    (rows, columns), trials = (len(side.names) for side in pair), len(pair[0].codes)
    if 8 * rows * columns > FREE_BYTES and rows * columns > MAX_CELLS_OF_A_TRIAL * trials:
        rule = f"a matrix of {rows} x {columns} must have at least one trial in {MAX_CELLS_OF_A_TRIAL} cells"
        raise PredictionsError(path, f"{rule}, but has {trials}: write csv, parquet or npz")
    if any("" in side.names for side in pair):
        raise PredictionsError(path, "must have a name for each enrollment and test, but one is missing")


def write_matrix(file: BinaryIO, kind: Literal["Scores", "Key"], pair: Pair, values: NDArray[Any]) -> None:
    """Write the scores of trials (N,), or their labels, 1 or -1, in a matrix of their names.

    Pairs without a score have the mask 0 and the score 0, as in SIDEKIT; PyBOSARIS, which has no mask, finds NaN.
    """
    import h5py

    rows, columns = (side.codes.numpy() for side in pair)
    matrix = np.full((len(pair[0].names), len(pair[1].names)), np.nan if kind == "Scores" else 0, values.dtype)
    matrix[rows, columns] = values
    if kind == "Scores":
        mask = np.zeros(matrix.shape, dtype=np.int8)
        mask[rows, columns] = 1
        datasets = {SCORES[0]: np.where(mask, matrix, 0), MASK: mask, SCORES[1]: matrix}
    else:
        datasets = {TRIALS: matrix, TARGETS: matrix > 0, NONTARGETS: matrix < 0}
    with h5py.File(file, "w") as opened:
        opened.attrs["type"], opened.attrs["version"] = kind, "1.0"  # of PyBOSARIS
        for names, side in zip(zip(*PAIRS, strict=True), pair, strict=True):
            encoded = [text.encode() for text in side.names]
            texts = np.array(encoded, dtype=h5py.string_dtype("utf-8", max(map(len, encoded), default=1)))
            opened.create_dataset(names[0], data=texts)
            for other in names[1:]:
                opened[other] = opened[names[0]]  # a link inside the file
        for name, cells in datasets.items():
            opened.create_dataset(name, data=cells, compression="gzip" if cells.size else None)
