"""Read the trials of a list from the matrix of scores that SIDEKIT, BOSARIS or PyBOSARIS wrote."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.evaluation.files.chunks import PredictionsError, reading
from mpcs_torch.evaluation.files.hdf5 import (
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

if TYPE_CHECKING:
    import h5py
    import pyarrow

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
