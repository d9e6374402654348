"""Keys of trials in HDF5, as SIDEKIT, BOSARIS and PyBOSARIS write them."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, reading
from mpcs_torch.evaluation.files.hdf5 import has_dataset, names_in, numbers_in, opened_hdf5
from mpcs_torch.io.untrusted_files import FileRuleError

if TYPE_CHECKING:
    import h5py

PAIRS = (("modelset", "segset"), ("ID/row_ids", "ID/column_ids"), ("model_names", "test_names"))
"""The names of rows and columns in files of SIDEKIT, BOSARIS for MATLAB, and PyBOSARIS."""
TRIALS = "trial_mask"
TARGETS, NONTARGETS = "tar_mask", "non_mask"
CELLS = 2**22
"""The number of values of a matrix that are read at a time."""


class Key(NamedTuple):
    """The pairs of an enrolment (model) and a test (segment) that are trials, and those of them that are targets."""

    enrollments: list[str]
    """(E,), no two alike."""
    tests: list[str]
    """(T,), no two alike."""
    labels: NDArray[np.int8]
    """(E, T): 1 for target trials, -1 for non-target trials, 0 for pairs that are no trials."""


def read_key(path: Path) -> Key:
    """Read a Key, or an Ndx: its trials have no labels, and appear as targets.

    Args:
        path: An HDF5 file of SIDEKIT, BOSARIS or PyBOSARIS.

    Raises:
        PredictionsError: If it cannot be read, or a value breaks a rule.
    """
    with reading(path), opened_hdf5(path) as file:
        enrollments, tests = axes_of(file)
        names, shape = (list(enrollments), list(tests)), (len(enrollments), len(tests))
        if has_dataset(file, TRIALS):
            return Key(*names, _read_mask(file, TRIALS, shape, lowest=-1))
        if not has_dataset(file, TARGETS):
            raise PredictionsError(path, f"must be a Key, with {TRIALS}, or with {TARGETS} and {NONTARGETS}")
        labels = _read_mask(file, TARGETS, shape, lowest=0)
        nontargets = _read_mask(file, NONTARGETS, shape, lowest=0)
        both = labels & nontargets
        if both.any():
            row, column = divmod(int(both.argmax()), len(tests))
            pair = quoted(f"{names[0][row]} {names[1][column]}")
            raise PredictionsError(path, f"a trial must be target or non-target, but {pair} is both")
        labels -= nontargets
        return Key(*names, labels)


def pairs_of_key(key: Key) -> Iterator[tuple[tuple[str, str], int]]:
    """Yield the names of each trial with its label: 1 for targets, 0 for non-targets."""
    rows, columns = key.labels.nonzero()
    labels = key.labels[rows, columns] > 0
    for row, column, label in zip(rows.tolist(), columns.tolist(), labels.tolist(), strict=True):
        yield (key.enrollments[row], key.tests[column]), int(label)


def axes_of(file: "h5py.File") -> tuple[dict[str, int], dict[str, int]]:
    """Return the names of rows and columns, each with its place.

    Raises:
        FileRuleError: If there are none, or they break a rule.
    """
    for rows, columns in PAIRS:
        if has_dataset(file, rows):
            return names_in(file, rows), names_in(file, columns)
    known = ", or ".join(" and ".join(pair) for pair in PAIRS)
    raise FileRuleError(f"must have the names of models and segments: {known}")


def check_shape(name: str, found: "h5py.Dataset", shape: tuple[int, int]) -> None:
    """Refuse a matrix that does not have a row for each model and a column for each segment."""
    if found.shape != shape:
        rule = f"{quoted(name)} must have the shape {shape}, as there are models and segments"
        raise FileRuleError(f"{rule}, but has {quoted(found.shape)}")


def row_blocks(shape: tuple[int, int]) -> Iterator[slice]:
    """Yield the rows of a matrix in blocks of at most `CELLS` values, or of one row."""
    step = max(1, CELLS // max(1, shape[1]))
    for start in range(0, shape[0], step):
        yield slice(start, min(start + step, shape[0]))


def _read_mask(file: "h5py.File", name: str, shape: tuple[int, int], *, lowest: int) -> NDArray[np.int8]:
    """Read a matrix of numbers from ``lowest`` to 1."""
    found = numbers_in(file, name, "biu", "integers or bools")
    check_shape(name, found, shape)
    mask = np.empty(shape, dtype=np.int8)
    for rows in row_blocks(shape):
        held = found[rows].view(np.uint8) if found.dtype.kind == "b" else found[rows]
        bad = (held < lowest) | (held > 1)
        if bad.any():
            raise FileRuleError(f"{quoted(name)} must be from {lowest} to 1, but has {held[bad][0]}")
        mask[rows] = held
    return mask
