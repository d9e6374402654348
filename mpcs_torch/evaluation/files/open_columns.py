"""The roles of the columns in a classifier's file, such as scores and labels, and the columns without a role yet."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.concern.checks import MAX_CLASSES
from mpcs_torch.errors import shown
from mpcs_torch.evaluation.files.reading import NoRowsError, PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.tables import (
    FileTable,
    Kind,
    ReadColumns,
    choices,
    column_kind,
    distinct_texts,
    listed,
    numbers_in,
    to_number,
    to_text,
    way,
)
from mpcs_torch.evaluation.files.words import LABELS, TRUTH, WRITTEN, named_as, plain
from mpcs_torch.functional.inputs.sum_tolerance import SUM_TOLERANCE

Form = Literal["columns", "lists", "positive", "decisions"]
"""The form of scores: a column per class, one column of lists, one column of one class, or predicted labels."""
NUMBERED = re.compile(r"(|.*\D)(\d{1,18})(\D*)")
"""A pattern for a name with a number, that is, with the last one in it."""
SEPARATOR = re.compile(r"[_\-. :/]")


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
    is_percent: bool = False
    """Whether a single column of scores has percentages."""
    unused: Sequence[str] = ()
    first_scores: NDArray[np.float64] = np.empty((0, 0))
    """The scores of the first rows as they are in the file, (n, k), without rows that lack a score."""

    def usual_names(self) -> dict[str, str]:
        """Return names by which these columns are recognized; for a file without a header that gets one."""
        single = ["scores" if self.form == "lists" else "score"]
        scores = self.called or self.classes if self.form == "columns" else single
        names = dict(zip(self.scores, scores, strict=True))
        return names if self.label is None else {**names, self.label: "label"}

    def in_words(self, *, has_shares: bool = False) -> str:
        """Describe columns and their roles in one line. With ``has_shares``, call soft labels shares of annotators."""
        labels = f'labels "{shown(self.label)}"' if self.label else "no labels"
        if self.truth:
            labels = f"{'shares of annotators' if has_shares else 'degrees of truth'} {span(self.truth)}"
        of_classes = "" if list(self.scores) == list(self.classes) else f" = classes {span(self.classes)}"
        first = f'"{shown(self.scores[0])}"'
        if self.form == "columns":
            scores = f"scores {span(self.scores)}{of_classes}"
        elif self.form == "lists":
            scores = f"lists of scores {first}{of_classes}"
        elif self.form == "positive":
            scores = f"probability of class {shown(self.classes[self.of_class])} {first}"
        else:
            scores = f"predicted labels {first}"
        called = f" ({shown(self.called[0])} is {shown(self.classes[0])})" if self.called else ""
        unused = [f"not used: {listed(self.unused)}"] if self.unused else []
        return "; ".join([labels + called, scores, *unused])


class OpenColumns:
    """The columns of a table without a role (scores, labels, ...) so far; and the first rows of all columns."""

    def __init__(self, table: FileTable, reading: ReadOptions, class_names: Sequence[str] | None) -> None:
        self.table, self.options = table, reading
        self.class_names = class_names or reading.classes or table.classes or None
        known = class_names or reading.classes
        self.called = () if [*reading.classes] == [*known] else reading.classes
        """The class names that the file uses, if they differ from ``class_names``; else ()."""
        is_in_order = all(one == two or one not in known for one, two in zip(self.called, known, strict=False))
        if self.called and (len(self.called) != len(known) or not is_in_order):
            rule = f"--classes must be what the file calls {listed(known)}, in this order"
            raise PredictionsError(table.path, rule)
        self.values: Mapping[str, Sequence[Any]] = table.peek()
        if not any(map(len, self.values.values())):
            raise NoRowsError(table.path, "has no rows" if not table.has_names else "has a header, but no rows")
        self.kinds: dict[str, Kind] = {name: column_kind(values) for name, values in self.values.items()}
        self.open = [name for name in table.names if name not in reading.columns]
        self.is_written = {*WRITTEN} <= {*table.names}
        """Whether `mpcs decide apply` wrote the file."""

    def by_kind(self, *kinds: Kind, among: Sequence[str] | None = None) -> list[str]:
        """Return the columns in ``among`` that have one of ``kinds``, such as "text". Default: all without a role."""
        return [name for name in (self.open if among is None else among) if self.kinds[name] in kinds]

    def label_among(self, names: Sequence[str], *kinds: Kind) -> str | None:
        """Return the column in ``names`` with a usual name for labels and one of ``kinds``, or None; refuse several."""
        named = self.by_kind(*kinds, among=named_as(names, LABELS))
        if len(named) > 1:
            ways = choices("--label-column", named[:2])
            raise self.error(f"has several columns that may be the labels, {listed(named)}: {ways}")
        return named[0] if named else None

    def exclude(self, names: Sequence[str]) -> None:
        """Remove ``names`` from the columns without a role."""
        left_out = {*names}
        self.open = [name for name in self.open if name not in left_out]

    def texts(self, name: str) -> set[str]:
        """Return the distinct texts of the column ``name`` in the first rows, without missing values."""
        return {label_text(value) for value in self.values[name]} - {""}

    def error(self, problem: str, column: str | None = None) -> PredictionsError:
        """Return a `PredictionsError` that names the file and, if given, the column."""
        return PredictionsError(self.table.path, problem, column=column)

    def matrix(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the numbers of the columns ``names`` in the first rows, (n, k), without rows that lack a number."""
        if len(names) == 1 and self.kinds[names[0]] == "list":
            lists = [numbers for value in self.values[names[0]] if (numbers := numbers_in(value))]
            rows = [numbers for numbers in lists if len(numbers) == len(lists[0])]
        else:
            values = zip(*(self.values[name] for name in names), strict=True)
            rows = [[np.nan if (n := to_number(value)) is None else n for value in row] for row in values]
        matrix = np.array(rows, dtype=np.float64).reshape(len(rows), -1)
        return matrix[np.isfinite(matrix).all(axis=1)]


def nominal_sum(sums: Any, num_classes: int) -> float | None:
    """Return 1 if all ``sums`` are 1 up to rounding, 100 if all are 100 (percentages), else None."""
    rooms = {1.0: min(0.005 * num_classes, 0.25) + SUM_TOLERANCE, 100.0: 0.5 * num_classes**0.5 + 0.5}
    fitting = (whole for whole, room in rooms.items() if len(sums) and bool((abs(sums - whole) <= room).all()))
    return next(fitting, None)


def span(names: Sequence[str]) -> str:
    """List ``names`` for a message; names with consecutive numbers become "FIRST to LAST"."""
    numbered = next((family for family, _ in numbered_families(names) if len(family) == len(names) > 2), None)
    if numbered is not None and [*numbered] == [*names]:
        return f"{shown(names[0])} to {shown(names[-1])}"
    return listed(names)


def numbered_families(names: Sequence[str]) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield families of ``names``, such as p0 and p1, that differ only in numbers from 0 or 1; and their numbers."""
    families = defaultdict[tuple[str, str], dict[int, str]](dict)
    for name in names:
        if match := NUMBERED.fullmatch(name):
            families[match[1], match[3]][int(match[2])] = name
    for family in families.values():
        numbers = sorted(family)
        if len(numbers) > 1 and numbers[0] in (0, 1) and numbers == [*range(numbers[0], numbers[0] + len(numbers))]:
            yield tuple(family[number] for number in numbers), tuple(map(str, numbers))


def split_truth(name: str) -> tuple[str, str] | None:
    """Split the name of a column of soft labels, such as target_a, into prefix and class; None for other names."""
    first, *rest = SEPARATOR.split(name, maxsplit=1)
    return (first, rest[0]) if rest and rest[0] and plain(first) in TRUTH else None


def label_numbers(roles: Roles) -> Callable[[Any], int | None]:
    """Return a function that maps a label to the index of its class; None for a label that is no class."""
    columns = roles.scores if roles.form == "columns" else ()  # labels may also be names of columns
    numbers = {name: number for names in (columns, roles.classes, roles.called) for number, name in enumerate(names)}
    return lambda value: numbers.get(label_text(value))


def named_labels(read: ReadColumns, roles: Roles) -> list[str | None]:
    """Return the labels as names of classes; other texts stay as they are, and missing ones are None."""
    values = [] if roles.label is None else read.columns[roles.label].to_pylist()
    numbers = map(label_numbers(roles), values)
    return [
        (to_text(value) or None) if number is None else roles.classes[number]
        for value, number in zip(values, numbers, strict=True)
    ]


def label_text(value: Any) -> str:
    """Return the text of a label; a whole number loses its decimals, so "1.0" becomes "1"."""
    text = to_text(value)
    number = to_number(text)
    is_whole = number is not None and number % 1 == 0 and abs(number) < 2**53
    return str(int(number)) if is_whole and not text.isdigit() and number is not None else text


def number_or_text(text: str) -> tuple[float, str]:
    """Return a sort key that puts numbers, by value, before all other texts."""
    number = to_number(text)
    return (np.inf if number is None else number, text)


def classes_by_place(columns: OpenColumns, label: str | None, size: int) -> list[str]:
    """Name the classes of ``size`` scores without names: by consecutive numbers, from 0 or 1 as in the labels."""
    if label is not None and columns.kinds[label] == "text":
        problem = "has scores without names, and labels that are names: which score is of which class?"
        ways = f"{way('--classes', sorted(columns.texts(label)))} names the classes in their order"
        raise columns.error(f"{problem} {ways}")
    is_number = label is not None and columns.kinds[label] == "whole"
    first = first_number(columns, [label], size) if label is not None and is_number else 0
    return [str(number) for number in range(first, first + size)]


def first_number(columns: OpenColumns, names: Sequence[str], size: int, scores: Sequence[str] = ()) -> int:
    """Return the number of the first class: 0 if a label in the columns ``names`` is 0, 1 if a label is ``size``.

    ``size`` is the number of classes. If there is neither label, arrays count from 0, and most text files are refused.
    """
    for texts in (set[str]().union(*map(columns.texts, names)), None):
        known = distinct_texts(columns.table, names, MAX_CLASSES) if texts is None else texts
        by_number = {number: label_text(each) for each in known if (number := to_number(each)) is not None}
        numbers = sorted(by_number)
        if 0 in numbers or size in numbers:
            return int(0 not in numbers)
    is_other = any(number < 0 or number > size for number in numbers)
    if is_other and len(numbers) == size:
        readings = [[by_number[number] for number in numbers]]
        problem = f"has the labels {listed(readings[0])}, which are no numbers from 0 or 1"
    elif is_other or columns.table.counts_from_0:
        return 0
    else:
        readings = [[*map(str, range(first, first + size))] for first in (0, 1)]
        problem = f"is never 0 and never {size}, so the first class may be 0 or 1"
    ways = choices("--classes", readings)
    beside = f", with {way('--score-columns', scores)}" if scores else ""
    raise columns.error(f"{problem}: {ways}{beside}", column=names[0])
