"""Write trials to HDF5 that SIDEKIT, BOSARIS and PyBOSARIS read: each finds the names that it uses."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.hdf5 import CELLS, NONTARGETS, PAIRS, TARGETS, TRIALS, Key, import_h5py
from mpcs_torch.evaluation.files.trial_hdf5 import MASK, OTHER_SCORES, SCORES
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.io.untrusted_files import FREE_BYTES

if TYPE_CHECKING:
    import h5py

    from mpcs_torch.evaluation.files.trials import TrialTable

MOST_CELLS_OF_A_TRIAL = 100
"""Larger matrices with more cells would be packed tighter than `hdf5_file` reads, and are better written as a table."""
CHUNK_ROWS, CHUNK_CELLS = 64, 2**16


def write_key(path: Path, key: Key) -> None:
    """Write a Key that SIDEKIT, BOSARIS and PyBOSARIS read, in one step.

    Raises:
        PredictionsError: If h5py is not installed.
    """
    import_h5py(path)
    replace_whole(path, lambda file: fill_key(file, key))


def write_ndx(path: Path, key: Key) -> None:
    """Write an Ndx, the trials of a Key without their labels, as `write_key` does."""
    import_h5py(path)
    replace_whole(path, lambda file: _fill_ndx(file, key))


def check_matrix(path: Path, table: "TrialTable") -> tuple[int, int]:
    """Return the shape of the matrix of trials that have the columns enrollment and test.

    Raises:
        PredictionsError: If there are too few trials for it.
    """
    rows, columns = len(table.groups["enrollment"].names), len(table.groups["test"].names)
    trials = len(table.trials.labels)
    if 8 * rows * columns > FREE_BYTES and rows * columns > MOST_CELLS_OF_A_TRIAL * trials:
        rule = f"a matrix of {rows} x {columns} must have at least one trial in {MOST_CELLS_OF_A_TRIAL} cells"
        raise PredictionsError(path, f"{rule}, but has {trials}: write csv, parquet or npz")
    return rows, columns


def key_of(path: Path, table: "TrialTable") -> Key:
    """Return the Key of trials that have the columns enrollment and test.

    Raises:
        PredictionsError: If there are too few trials for a matrix.
    """
    labels = np.zeros(check_matrix(path, table), dtype=np.int8)
    enrollment, test = table.groups["enrollment"], table.groups["test"]
    labels[enrollment.codes.numpy(), test.codes.numpy()] = np.where(table.trials.labels.numpy(), 1, -1)
    return Key(enrollment.names, test.names, labels)


def fill_key(file: BinaryIO, key: Key) -> None:
    """Write a Key to an open file."""
    with _new(file, "Key", key.enrollments, key.tests) as opened:
        _write_matrix(opened, TRIALS, "i1", key.labels.shape, lambda rows: key.labels[rows])
        _write_matrix(opened, TARGETS, "?", key.labels.shape, lambda rows: key.labels[rows] > 0)
        _write_matrix(opened, NONTARGETS, "?", key.labels.shape, lambda rows: key.labels[rows] < 0)


def _fill_ndx(file: BinaryIO, key: Key) -> None:
    with _new(file, "Ndx", key.enrollments, key.tests) as opened:
        _write_matrix(opened, TRIALS, "i1", key.labels.shape, lambda rows: key.labels[rows] != 0)


def fill_scores(file: BinaryIO, table: "TrialTable") -> None:
    """Write the scores of trials that have the columns enrollment and test to an open file.

    Pairs without a score have the mask 0 and the score 0, as in SIDEKIT; PyBOSARIS, which has no mask, finds NaN.
    """
    enrollment, test = table.groups["enrollment"], table.groups["test"]
    shape = (len(enrollment.names), len(test.names))
    order = enrollment.codes.argsort(stable=True).numpy()
    sorted_rows, columns = enrollment.codes.numpy()[order], test.codes.numpy()[order]
    scores = table.trials.scores.numpy()[order]

    def filled(values: NDArray[Any], empty: float) -> Callable[[slice], NDArray[Any]]:
        def block(rows: slice) -> NDArray[Any]:
            cells = np.full((rows.stop - rows.start, shape[1]), empty, dtype=values.dtype)
            some = slice(*np.searchsorted(sorted_rows, [rows.start, rows.stop]))
            cells[sorted_rows[some] - rows.start, columns[some]] = values[some]
            return cells

        return block

    with _new(file, "Scores", enrollment.names, test.names) as opened:
        _write_matrix(opened, SCORES, "f8", shape, filled(scores, 0.0))
        _write_matrix(opened, MASK, "i1", shape, filled(np.ones(len(scores), dtype=np.int8), 0))
        if len(scores) == shape[0] * shape[1]:
            opened[OTHER_SCORES] = opened[SCORES]
        else:
            _write_matrix(opened, OTHER_SCORES, "f8", shape, filled(scores, np.nan))


def _new(file: BinaryIO, kind: str, rows: Sequence[str], columns: Sequence[str]) -> "h5py.File":
    """Begin a file with its names, which all toolkits share by links inside the file."""
    import h5py

    opened = h5py.File(file, "w")
    opened.attrs["type"], opened.attrs["version"] = kind, "1.0"  # of PyBOSARIS
    for name, texts in zip(PAIRS[0], (rows, columns), strict=True):
        encoded = [text.encode() for text in texts]
        longest = max(1, *map(len, encoded)) if encoded else 1
        values = np.array(encoded, dtype=h5py.string_dtype("utf-8", longest))
        opened.create_dataset(name, data=values, compression="gzip" if encoded else None)
    for others in PAIRS[1:]:
        for name, other in zip(PAIRS[0], others, strict=True):
            opened[other] = opened[name]
    return opened


def _write_matrix(
    opened: "h5py.File", name: str, dtype: str, shape: tuple[int, ...], block: Callable[[slice], NDArray[Any]]
) -> None:
    """Write a matrix in blocks of whole chunks."""
    if 0 in shape:
        opened.create_dataset(name, shape, dtype)
        return
    rows = max(1, min(CHUNK_ROWS, shape[0], CELLS // shape[1]))
    chunks = (rows, min(shape[1], CHUNK_CELLS // rows))
    target = opened.create_dataset(name, shape, dtype, chunks=chunks, compression="gzip", fletcher32=True)
    step = rows * max(1, CELLS // (rows * shape[1]))
    for start in range(0, shape[0], step):
        some = slice(start, min(start + step, shape[0]))
        target[some] = block(some)
