"""Facts about the columns of a table before they have a role: the values of the first rows, and the names."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.concern.checks import MAX_CLASSES
from mpcs_torch.evaluation.files.reading import NoRowsError, PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.tables import (
    FileTable,
    Kind,
    column_kind,
    distinct_texts,
    is_gap,
    listed,
    numbers_in,
    to_number,
    to_text,
)
from mpcs_torch.evaluation.files.words import WRITTEN, is_index, split_words
from mpcs_torch.functional.inputs.sum_tolerance import SUM_TOLERANCE

NUMBERED = re.compile(r"(|.*\D)(\d{1,18})(\D*)")
"""A pattern for a name with a number, that is, with the last one in it."""
SEPARATOR = re.compile(r"[_\-. :/=]")
BEFORE, AFTER = rf"(?:(?<=^)|(?<={SEPARATOR.pattern})|(?<=\())", rf"(?=$|\)|{SEPARATOR.pattern})"
"""Patterns that match where a class name may begin and end within the name of a column."""
MIN_COUNTED = 3
"""The minimum number of rows by which consecutive whole numbers are known to count the rows."""


class Facts:
    """The columns of a table: the values of their first rows, their kinds, and which columns are free for a role.

    Args:
        table: The table.
        options: The options for reading. Columns that they use for groups, clusters, weights or ids are not free.
        class_names: The names of the classes in index order, if they are known from elsewhere.
        others: Further columns that are not free.
        needs_labels: Whether a reading must have labels.
        values: The values of the first rows, if they have been read.
    """

    def __init__(
        self,
        table: FileTable,
        options: ReadOptions,
        class_names: Sequence[str] | None = None,
        others: Sequence[str] = (),
        *,
        needs_labels: bool = True,
        values: Mapping[str, Sequence[Any]] | None = None,
    ) -> None:
        self.table, self.options, self.needs_labels = table, options, needs_labels
        self._known, self._others = class_names, others
        self._texts = dict[str, set[str]]()
        """The distinct texts of all rows, for the columns of which they were asked."""
        self.class_names = class_names or options.classes or table.classes or None
        self.called = _called(table, class_names or options.classes, options.classes)
        """The class names that the file uses, if they differ from ``class_names``; else ()."""
        self.values: Mapping[str, Sequence[Any]] = table.peek() if values is None else values
        if not any(map(len, self.values.values())):
            raise NoRowsError(table.path, "has no rows" if not table.has_names else "has a header, but no rows")
        self.kinds: dict[str, Kind] = {name: column_kind(values) for name, values in self.values.items()}
        self.is_written = {*WRITTEN} <= {*table.names}
        """Whether `mpcs decide apply` wrote the file."""
        used = {*options.columns, *others, *(WRITTEN[1:] if self.is_written else ())}
        self.free = [name for name in table.names if name not in used]

    def asked(self, options: ReadOptions) -> "Facts":
        """Return the facts of the same columns under other options."""
        given = self._known, self._others
        facts = Facts(self.table, options, *given, needs_labels=self.needs_labels, values=self.values)
        facts._texts = self._texts
        return facts

    def by_kind(self, names: Iterable[str], *kinds: Kind) -> list[str]:
        """Return the columns in ``names`` that have one of ``kinds``, such as "text"."""
        return [name for name in names if self.kinds[name] in kinds]

    def texts(self, name: str) -> set[str]:
        """Return the distinct texts of the column ``name`` in the first rows, without missing values."""
        return {label_text(value) for value in self.values[name]} - {""}

    def all_texts(self, name: str) -> set[str]:
        """Return the distinct texts of the column ``name`` in all rows, without missing values."""
        if name not in self._texts:
            self._texts[name] = {label_text(text) for text in distinct_texts(self.table, name, MAX_CLASSES)} - {""}
        return self._texts[name]

    def label_texts(self, name: str) -> set[str]:
        """Return the distinct labels in the first rows, without words that mean a missing label, unless all do."""
        texts = set[str]() if self.kinds[name] == "empty" else self.texts(name)
        known = {*(self.class_names or ()), *self.called}
        return {text for text in texts if text in known or not is_gap(text)} or texts

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

    def is_counter(self, name: str) -> bool:
        """Return whether a column numbers the rows: by its name, or by consecutive whole numbers."""
        if self.kinds[name] == "number":
            return False
        numbers = [to_number(value) for value in self.values[name]]
        first = numbers[0] if len(numbers) >= MIN_COUNTED else None
        counts = first is not None and numbers == [first + place for place in range(len(numbers))]
        return is_index(name) or counts

    def error(self, problem: str, column: str | None = None) -> PredictionsError:
        """Return a `PredictionsError` that names the file and, if given, the column."""
        return PredictionsError(self.table.path, problem, column=column)


def _called(table: FileTable, known: Sequence[str], called: Sequence[str]) -> Sequence[str]:
    """Return the names ``called`` that a file has for the ``known`` classes; () if they are the same."""
    if [*called] == [*known]:
        return ()
    is_in_order = all(one == two or one not in known for one, two in zip(called, known, strict=False))
    if called and (len(called) != len(known) or not is_in_order):
        raise PredictionsError(table.path, f"--classes must be what the file calls {listed(known)}, in this order")
    return called


def nominal_sum(sums: Any, num_classes: int) -> float | None:
    """Return 1 if all ``sums`` are 1 up to rounding, 100 if all are 100 (percentages), else None."""
    rooms = {1.0: min(0.005 * num_classes, 0.25) + SUM_TOLERANCE, 100.0: 0.5 * num_classes**0.5 + 0.5}
    fitting = (whole for whole, room in rooms.items() if len(sums) and bool((abs(sums - whole) <= room).all()))
    return next(fitting, None)


def span(names: Sequence[str]) -> str:
    """List ``names`` for a message; names with consecutive numbers become "FIRST to LAST"."""
    numbered = next((family for family, _ in numbered_families(names) if len(family) == len(names) > 2), None)
    if numbered is not None and [*numbered] == [*names]:
        return f"{listed(names[:1])} to {listed(names[-1:])}"
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


def affixes(names: Iterable[str], class_name: str) -> list[tuple[str, str]]:
    """Return what stands before and after ``class_name`` in ``names`` that have it as a word, shortest first."""
    pattern = re.compile(f"{BEFORE}{re.escape(class_name)}{AFTER}")
    around = {(name[: at.start()], name[at.end() :]) for name in names for at in pattern.finditer(name)}
    return sorted(around, key=lambda pair: len(pair[0]) + len(pair[1]))


def by_class(names: Sequence[str], classes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the columns PREFIX + class + SUFFIX of all ``classes``, shortest affixes first; ignore case."""
    if not classes or not classes[0]:
        return
    differs = all(len({name.lower() for name in some}) == len(some) for some in (names, classes))
    lower = {(name.lower() if differs else name): name for name in names}
    classes_in_case = [name.lower() if differs else name for name in classes]
    for before, after in affixes(lower, classes_in_case[0]):
        columns = [f"{before}{name}{after}" for name in classes_in_case]
        if all(column in lower for column in columns):
            yield tuple(lower[column] for column in columns)
            if not before and not after:
                return


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


def named_class(name: str, classes: Sequence[str]) -> list[int]:
    """Return a list of one index, that of the class in the column's ``name``; [] if it has no class or several."""
    words = split_words(re.sub(r"(?<=[a-z])(?=[01]$)", "_", name.lower()))
    named = [place for place, each in enumerate(classes) if each.lower() in words]
    return named if len(named) == 1 else []
