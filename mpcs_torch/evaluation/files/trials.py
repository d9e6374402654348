"""Trials in memory, and the rules for their values in files."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.tables import Batch, labels_of, numbers_of
from mpcs_torch.functional.inputs.groups import Groups

if TYPE_CHECKING:
    import pyarrow

LABELS = {"1": 1, "target": 1, "true": 1, "0": 0, "nontarget": 0, "false": 0}
LABEL_RULE = f"must be one of {', '.join(LABELS)}"
SCORE_NAMES = ("score", "scores", "y_score", "y_scores", "llr", "y_prob", "y_proba", "probability")
LABEL_NAMES = ("label", "labels", "y_true", "target", "is_target", "ground_truth", "truth", "y")
"""Names of a column, or of an array of npz; a file that has ours is read by it."""
NO_NUMBER = "must be a number, but is {}"


class Trials(NamedTuple):
    """The score and the label of each trial."""

    scores: Tensor
    """(N,), float64."""
    labels: Tensor
    """(N,), bool: True for target trials, False for non-target trials."""

    def label_names(self, rows: slice) -> list[str]:
        """Return the labels of some trials as text."""
        return ["target" if label else "nontarget" for label in self.labels[rows].tolist()]


class TrialTable(NamedTuple):
    """Trials with what else their file says of them."""

    trials: Trials
    names: "pyarrow.StringArray | None"
    """(N,), no two alike; None if the file does not name its trials."""
    groups: dict[str, Groups]
    """By column, those that were asked for."""


class TrialBatch(NamedTuple):
    """Some rows of a file."""

    scores: NDArray[np.float64]
    labels: NDArray[np.int64]
    texts: "dict[str, pyarrow.Array]"
    """By column, those that were asked for."""


def usual_columns(
    path: Path, names: Sequence[str], ours: tuple[str, str], columns: Sequence[str] = (), *, kind: str = "columns"
) -> tuple[str, str]:
    """Return the names under which a file has the scores and the labels of its trials.

    Args:
        path: The file, for errors.
        names: All of its columns, or arrays.
        ours: The names that are taken if the file has them.
        columns: Those that hold something else.
        kind: The word for them in errors.

    Raises:
        PredictionsError: If there are none, if several may be meant, or if one of the other columns is missing.
    """
    possible = _possible(names, ours, columns)
    if not all(possible) or not set(columns) <= set(names):
        scores, labels = (
            _listed([n for n in usual if n != name])
            for name, usual in zip(ours, (SCORE_NAMES, LABEL_NAMES), strict=True)
        )
        also = "" if all(possible) else f"; {ours[0]} may be called {scores}, and {ours[1]} {labels}"
        needed = quoted(list(dict.fromkeys((*ours, *columns))))
        raise PredictionsError(path, f"must have the {kind} {needed}, but has {quoted(list(names))}{also}")
    for name, several in zip(ours, possible, strict=True):
        if len(several) > 1:
            raise PredictionsError(path, f"has several {kind} that may be its {name}, {quoted(several)}: rename one")
    return possible[0][0], possible[1][0]


def other_columns(names: Sequence[str], ours: tuple[str, str]) -> list[str]:
    """Return the names of what is neither the scores nor the labels of trials."""
    taken = [several[0] for several in _possible(names, ours, ()) if len(several) == 1]
    return [name for name in names if name not in taken]


def _possible(names: Sequence[str], ours: tuple[str, str], columns: Sequence[str]) -> list[list[str]]:
    return [
        [name] if name in names else [n for n in names if n.lower() in usual and n not in columns]
        for name, usual in zip(ours, (SCORE_NAMES, LABEL_NAMES), strict=True)
    ]


def _listed(names: Sequence[str]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


def label_of(value: Any) -> int | None:
    """Return the label that a value or a text stands for: 1 for targets, 0 for non-targets, None for none."""
    return LABELS.get(str(value).strip().lower().removesuffix(".0"))  # as pandas writes integers of a gappy column


def trial_batches(
    path: Path, batches: Iterator[Batch], score: str, label: str, columns: Sequence[str]
) -> Iterator[TrialBatch]:
    """Yield the scores and labels of batches of rows, with some columns of text.

    Raises:
        PredictionsError: If a value breaks a rule.
    """
    for first, values in batches:
        scores = scores_of(path, values[score], first, score)
        labels = labels_of(path, values[label], label, first, label_of, LABEL_RULE)
        yield TrialBatch(scores, labels, {name: texts_of(path, values[name], name, first) for name in columns})


def scores_of(path: Path, values: "pyarrow.Array", first: int, column: str = "score") -> NDArray[np.float64]:
    """Return a column of scores as numbers.

    Raises:
        PredictionsError: If a value is missing, no number, or NaN.
    """
    scores = numbers_of(path, values, column, first)
    bad = np.isnan(scores)
    if bad.any():
        raise PredictionsError(path, NO_NUMBER.format("'nan'"), row=first + int(bad.argmax()), column=column)
    return scores


def texts_of(path: Path, values: "pyarrow.Array", column: str, first: int) -> "pyarrow.Array":
    """Return a column as text.

    Raises:
        PredictionsError: If a value is missing.
    """
    import pyarrow
    from pyarrow import compute

    texts = compute.cast(values, pyarrow.string())
    missing = compute.fill_null(compute.equal(texts, ""), True)
    if compute.any(missing).as_py():
        row = compute.index(missing, True).as_py()
        raise PredictionsError(path, "is missing", row=first + row, column=column)
    return texts
