"""Trials in memory, and the rules for their values in files."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    import pyarrow

LABELS = {"1": 1, "target": 1, "true": 1, "0": 0, "nontarget": 0, "false": 0}
LABEL_RULE = f"must be one of {', '.join(LABELS)}"
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


class Groups(NamedTuple):
    """A column that says to which group each trial belongs, such as a speaker or a recording condition."""

    names: list[str]
    """(G,), in the order in which they occur."""
    codes: Tensor
    """(N,), int64: indices of the names."""


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


def label_of(value: Any) -> int | None:
    """Return the label that a value or a text stands for: 1 for targets, 0 for non-targets, None for none."""
    return LABELS.get(str(value).strip().lower())
