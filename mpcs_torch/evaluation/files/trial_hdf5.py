"""Trials in the matrices of scores, Keys and Ndx files that SIDEKIT, BOSARIS and PyBOSARIS read and write."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.evaluation.files.chunks import PredictionsError, reading
from mpcs_torch.evaluation.files.hdf5 import (
    CELLS,
    NONTARGETS,
    PAIRS,
    TARGETS,
    TRIALS,
    Key,
    axes_of,
    has_dataset,
    import_h5py,
    is_hdf5,
    numbers_in,
    read_key,
    row_blocks,
)
from mpcs_torch.evaluation.files.trial_text import (
    PAIR,
    check_pair_columns,
    labels_of_pairs,
    quoted_pair,
    refuse_missing,
)
from mpcs_torch.evaluation.files.trials import NO_NUMBER, TrialBatch
from mpcs_torch.io.atomic_files import replace_whole
from mpcs_torch.io.untrusted_files import FREE_BYTES

if TYPE_CHECKING:
    import h5py
    import pyarrow

    from mpcs_torch.evaluation.files.trials import TrialTable

SCORES, OTHER_SCORES, MASK = "scores", "score_mat", "score_mask"
"""``score_mat`` is that of PyBOSARIS, which has no mask: NaN there is no score."""
Pairs = tuple[NDArray[np.intp], NDArray[np.intp]]
"""Places of rows and of columns."""


def batches_of_hdf5(path: Path, trials: Path | None, columns: Sequence[str]) -> Iterator[TrialBatch]:
    """Yield the scores of the trials of a list; scores of other pairs are ignored, as BOSARIS does.

    Args:
        path: The file of scores.
        trials: The list: a Key in HDF5, or text in Kaldi's format.
        columns: Those of the two names that are wanted.

    Raises:
        PredictionsError: If a trial has no score, or a file breaks a rule.
    """
    if trials is None:
        raise PredictionsError(path, "contains no labels: give a Key, or a list of trials, with --trials FILE")
    check_pair_columns(path, PAIR, columns)
    with import_h5py(path).File(path, "r") as file:
        axes = axes_of(file)
        models, segments = list(axes[0]), list(axes[1])
        wanted, lacking, number = _wanted(trials, *axes)
        scores, mask = _matrices(path, file, (len(models), len(segments)))
        for rows in row_blocks(wanted.shape):
            labels = wanted[rows]
            places = labels.nonzero()
            if not len(places[0]):
                continue
            values = scores[rows][places].astype(np.float64)
            is_nan = np.isnan(values)
            is_scored = ~is_nan if mask is None else mask[rows][places] != 0
            pairs = (places[0] + rows.start, places[1])
            unscored, bad = (np.flatnonzero(which) for which in (~is_scored, is_nan & is_scored))
            number += len(unscored)
            lacking += [(models[pairs[0][place]], segments[pairs[1][place]]) for place in unscored[:1]]
            if len(bad):
                pair = quoted_pair(models[pairs[0][bad[0]]], segments[pairs[1][bad[0]]])
                raise PredictionsError(path, f"the score of {pair} {NO_NUMBER.format(repr('nan'))}")
            texts = {name: _texts((models, segments), pairs, name) for name in columns}
            yield TrialBatch(values, (labels[places] > 0).astype(np.int64), texts)
    refuse_missing(path, trials, number, lacking)


def _wanted(
    trials: Path, models: Mapping[str, int], segments: Mapping[str, int]
) -> tuple[NDArray[np.int8], list[tuple[str, str]], int]:
    """Put the labels of a list where the scores of its trials are.

    Returns:
        (rows, columns): 1 for targets, -1 for non-targets, 0 for pairs that are no trials; and of the trials that are
        of no row or no column, an example if there is one, and their number.
    """
    labels = np.zeros((len(models), len(segments)), dtype=np.int8)
    if not is_hdf5(trials):
        lacking = list[tuple[str, str]]()
        with reading(trials):
            for (one, other), label in labels_of_pairs(trials).items():
                if one in models and other in segments:
                    labels[models[one], segments[other]] = 1 if label else -1
                else:
                    lacking.append((one, other))
        return labels, lacking[:1], len(lacking)
    key = read_key(trials)
    rows = np.array([models.get(name, -1) for name in key.enrollments], dtype=np.intp)
    columns = np.array([segments.get(name, -1) for name in key.tests], dtype=np.intp)
    has_row, has_column = rows >= 0, columns >= 0
    labels[np.ix_(rows[has_row], columns[has_column])] = key.labels[has_row][:, has_column]
    number = int(np.count_nonzero(key.labels)) - int(np.count_nonzero(labels))
    if not number:
        return labels, [], 0
    is_missing = (key.labels != 0) & ~(has_row[:, None] & has_column)
    row, column = divmod(int(is_missing.argmax()), len(key.tests))
    return labels, [(key.enrollments[row], key.tests[column])], number


def _matrices(path: Path, file: "h5py.File", shape: tuple[int, int]) -> "tuple[h5py.Dataset, h5py.Dataset | None]":
    """Return the scores, and the mask that says which of them there are, unless NaN says it."""
    name = next((name for name in (SCORES, OTHER_SCORES) if has_dataset(file, name)), None)
    if name is None:
        raise PredictionsError(path, f"must contain scores, as {SCORES} or {OTHER_SCORES}; a Key is for --trials")
    scores = numbers_in(file, name, shape, "f", "floating point numbers")
    return scores, numbers_in(file, MASK, shape, "biu", "integers or bools") if has_dataset(file, MASK) else None


def _texts(names: tuple[list[str], list[str]], pairs: Pairs, column: str) -> "pyarrow.Array":
    import pyarrow

    place = PAIR.index(column)
    return pyarrow.array(names[place], pyarrow.string()).take(pyarrow.array(pairs[place]))


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
