"""The roles of the columns in a classifier's file, and how much speaks for them: one complete way to read it."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import Rule, listed, shown, span
from mpcs_torch.evaluation.files.facts import label_text
from mpcs_torch.evaluation.files.tables import ReadColumns, to_text
from mpcs_torch.evaluation.files.words import SIGNS, is_positive

Form = Literal["columns", "lists", "positive", "decisions"]
"""The form of scores: a column per class, one column of lists, one column of one class, or predicted labels."""


class Roles(NamedTuple):
    """The columns to read from a classifier's table, by role."""

    form: Form
    scores: Sequence[str]
    """The columns of scores in class order, or the only column of scores or of predicted labels."""
    classes: Sequence[str]
    is_numbered: bool = False
    """Whether the names of the score columns contain the numbers of their classes."""
    label: str | None = None
    truth: Sequence[str] = ()
    """The columns of soft labels (degrees of truth or votes) in class order, or one column of lists."""
    called: Sequence[str] = ()
    """The class names that the labels use, if they differ from ``classes``: numbers, or names from the user."""
    of_class: int = 1
    """The index of the class whose probability a single score column has."""
    is_shown: bool = False
    """Whether a name, or predicted labels beside it, say which class a single score column is of."""
    is_percent: bool = False
    """Whether a single column of scores has percentages."""
    unused: Sequence[str] = ()
    decided: str | None = None
    """The column of predicted labels beside scores, which are measured instead."""
    remarks: Sequence[str] = ()
    """Sentences on columns that look like scores, but are not used."""
    first_scores: NDArray[np.float64] = np.empty((0, 0))
    """The scores of the first rows as they are in the file, (n, k), without rows that lack a score."""

    def usual_names(self) -> dict[str, str]:
        """Return names by which these columns are recognized; for a file without a header that gets one."""
        single = ["scores" if self.form == "lists" else "score"]
        scores = self.called or self.classes if self.form == "columns" else single
        names = dict(zip(self.scores, scores, strict=True))
        return names if self.label is None else {**names, self.label: "label"}

    def in_words(self, *, has_shares: bool = False) -> list[str]:
        """Describe columns and their roles in phrases. With ``has_shares``, soft labels are shares of annotators."""
        labels = f'labels "{shown(self.label)}"' if self.label else "no labels"
        if self.truth:
            labels = f"{'shares of annotators' if has_shares else 'degrees of truth'} {span(self.truth)}"
        are_classes = list(self.scores) == list(self.classes)
        of_classes = "" if are_classes else f" = classes {span(self.classes)}"
        first = f'"{shown(self.scores[0])}"'
        if self.form == "columns":
            scores = f"scores {span(self.scores)}{of_classes}"
        elif self.form == "lists":
            scores = f"lists of scores {first}{of_classes}"
        elif self.form == "positive":
            scores = f"probability of class {shown(self.classes[self.of_class])} {first}"
        else:
            scores = f"predicted labels {first}"
        called = (
            f" ({shown(self.called[0])} is {shown(self.classes[0])})" if self.called else ""
        )
        unused = [f"not used: {listed(self.unused)}"] if self.unused else []
        return [labels + called, scores, *unused, *self.remarks]


CLASS_SCORES, PROBABILITY, DECIDED, UNNAMED = 3, 2, 1, 0
"""The strength of names and sums as signs of a score for each class, of one probability, and of predicted labels. A
column without a sign is never used without being asked for."""


class Reading(NamedTuple):
    """One complete way to read a file."""

    roles: Roles
    strength: int
    doubt: Rule | None = None
    """The reason why the file is not read so unless the options ask for it."""
    broken: Rule | None = None
    """The test that the values of the file fail; the file cannot be read so."""

    @property
    def is_clear(self) -> bool:
        """Whether names and values say clearly that the file is to be read so."""
        return self.strength > UNNAMED and self.doubt is None and self.broken is None


def label_numbers(roles: Roles, *, has_signs: bool = False) -> Callable[[Any], int | None]:
    """Return a function that maps a label to the index of its class; None for a label that is no class.

    If no two classes differ in case alone, the case of a label does not matter. With ``has_signs``, if classes are a
    negative and a positive one, such as 0 and 1, other words for these, such as false and true, are the same.
    """
    # Labels may also be names of columns.
    columns = roles.scores if roles.form == "columns" else ()
    numbers = {
        name: number
        for names in (columns, roles.classes, roles.called)
        for number, name in enumerate(names)
    }
    if has_signs and [*map(is_positive, roles.classes)] == [False, True]:
        numbers = {**SIGNS, **numbers}
    lower = {name.lower(): number for name, number in numbers.items()}
    is_clear = len({name.lower() for name in roles.classes}) == len(roles.classes)

    def number(value: Any) -> int | None:
        text = label_text(value)
        return numbers.get(text, lower.get(text.lower()) if is_clear else None)

    return number


def named_labels(read: ReadColumns, roles: Roles) -> list[str | None]:
    """Return the labels as names of classes; other texts stay as they are, and missing ones are None."""
    values = [] if roles.label is None else read.columns[roles.label].to_pylist()
    numbers = map(label_numbers(roles), values)
    return [
        (to_text(value) or None) if number is None else roles.classes[number]
        for value, number in zip(values, numbers, strict=True)
    ]
