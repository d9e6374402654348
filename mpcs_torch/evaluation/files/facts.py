"""Facts about the columns of a table before they have a role: the values of the first rows, and the names."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.concern.checks import MAX_CLASSES
from mpcs_torch.errors import NUMBERED, Rule, numbered_families
from mpcs_torch.evaluation.files.read_options import (
    NoRowsError,
    PredictionsError,
    ReadOptions,
)
from mpcs_torch.evaluation.files.tables import (
    FileTable,
    Kind,
    column_kind,
    distinct_texts,
    is_gap,
    numbers_in,
    to_number,
    to_text,
)
from mpcs_torch.evaluation.files.words import WRITTEN, is_index, split_words

SEPARATOR = re.compile(r"[_\-. :/=]")
BEFORE = rf"(?:(?<=^)|(?<={SEPARATOR.pattern})|(?<=\())"
"""A pattern that matches where a class name may begin within the name of a column."""
AFTER = rf"(?=$|\)|{SEPARATOR.pattern})"
"""A pattern that matches where a class name may end within the name of a column."""
MIN_COUNTED = 3
"""The minimum number of rows by which consecutive whole numbers are known to count the rows."""
MIN_DIFFERENT = 20
"""The minimum number of rows by which different values are known to name the rows."""


class ColumnFacts:
    """The first values of a column, and what they show; each fact is found once, when it is first asked for."""

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self.kind = column_kind(values)
        self.all_texts: set[str] | None = None
        """The distinct texts in all rows, once `Facts.all_texts` has read them."""

    @cached_property
    def labels(self) -> list[str]:
        """The text of each value, as `label_text` makes it; empty for a missing value."""
        return [label_text(value) for value in self.values]

    @cached_property
    def texts(self) -> set[str]:
        """The distinct texts, without missing values."""
        return {*self.labels} - {""}

    @cached_property
    def numbers(self) -> NDArray[np.float64]:
        """The numbers, (n,), or for lists (n, k); NaN for a value that is no number, or a list of another length."""
        if self.kind != "list":
            return np.array([*map(to_number, self.values)], dtype=np.float64)  # None is NaN
        lists = [numbers_in(value) for value in self.values]
        size = len(next(numbers for numbers in lists if numbers))
        rows = []
        for numbers in lists:
            if not numbers or len(numbers) != size:
                numbers = [np.nan] * size
            rows.append(numbers)
        return np.array(rows)


class Facts:
    """The columns of a table: what their first rows show, and which columns are free for a role.

    Args:
        table: The table.
        options: The options for reading. Columns that they use for groups, clusters, weights or ids are not free.
        class_names: The names of the classes in index order, if they are known from elsewhere.
        others: Further columns that are not free.
        needs_labels: Whether a reading must have labels.
        of_trials: Whether the file is that of a detector: labels are words for targets and non-targets, and any numbers
            may be scores.
        columns: The facts of each column, if they are known.
    """

    def __init__(
        self,
        table: FileTable,
        options: ReadOptions,
        class_names: Sequence[str] | None = None,
        others: Sequence[str] = (),
        *,
        needs_labels: bool = True,
        of_trials: bool = False,
        columns: Mapping[str, ColumnFacts] | None = None,
    ) -> None:
        self.table = table
        self.needs_labels = needs_labels
        self.of_trials = of_trials
        self._known = class_names
        self._others = others
        self.columns = columns or {
            name: ColumnFacts(values) for name, values in table.peek().items()
        }
        if not any(len(column.values) for column in self.columns.values()):
            code = "rows_below_header" if table.has_names else "rows"
            raise NoRowsError(table.path, Rule(code))
        self.options = options
        self.class_names = class_names or options.classes or table.classes or None
        self.called = _called(table, class_names or options.classes, options.classes)
        """The class names that the file uses, if they differ from ``class_names``; else ()."""
        self.is_written = {*WRITTEN} <= {*table.names}
        """Whether `mpcs decide apply` wrote the file."""
        used = {*options.columns, *self._others}
        if self.is_written:
            used.update(WRITTEN[1:])
        self.free = [name for name in table.names if name not in used]

    def asked(
        self,
        options: ReadOptions,
        table: FileTable,
        columns: Mapping[str, ColumnFacts] | None = None,
    ) -> "Facts":
        """Return the facts under other ``options``, of ``table``: this table, or a model's part of it.

        The facts of the columns are those of this table, unless others are given.
        """
        if columns is None and table.load is self.table.load:
            columns = {name: self.columns[name] for name in table.names}
        return Facts(
            table,
            options,
            self._known,
            self._others,
            needs_labels=self.needs_labels,
            of_trials=self.of_trials,
            columns=columns,
        )

    def of_all(self) -> "Facts":
        """Return the facts that rows from the whole file show: files may be sorted, so that the first rows mislead."""
        known = len(next(iter(self.columns.values())).values)
        if known < self.table.peeked_rows:  # they were all rows
            return self
        values = self.table.peek(of_all=True)
        columns = {name: ColumnFacts(of_name) for name, of_name in values.items()}
        return self.asked(self.options, self.table, columns)

    def kind(self, name: str) -> Kind:
        """Return the kind of values in a column."""
        return self.columns[name].kind

    def by_kind(self, names: Iterable[str], *kinds: Kind) -> list[str]:
        """Return the columns in ``names`` that have one of ``kinds``, such as "text"."""
        return [name for name in names if self.kind(name) in kinds]

    @cached_property
    def numbered(self) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
        """The columns of texts or whole numbers whose names differ in consecutive numbers alone, by these numbers."""
        families = defaultdict[tuple[str, ...], list[tuple[str, ...]]](list)
        names = self.by_kind(self.table.names, "whole", "text")
        for family, numbers in numbered_families(names):
            families[numbers].append(family)
        return families

    @cached_property
    def _siblings(self) -> dict[tuple[str, str], set[str]]:
        """The numbers of the columns whose names differ in a number alone, by what stands before and after it."""
        numbers = defaultdict[tuple[str, str], set[str]](set)
        for name in self.table.names:
            match = NUMBERED.fullmatch(name)
            if match is not None:
                before, number, after = match[1], match[2], match[3]
                numbers[before, after].add(number)
        return numbers

    def is_counted(self, name: str) -> bool:
        """Return whether the name of a column has a number that counts columns, such as ``V1`` beside ``V2``."""
        match = NUMBERED.fullmatch(name)
        return match is not None and len(self._siblings[match[1], match[3]]) > 1

    def named_class(self, name: str, classes: Sequence[str]) -> list[int]:
        """Return a list of one index, that of the class in the column's ``name``; [] if it has no class or several.

        A number that counts columns, such as that of ``V1`` beside ``V2`` to ``V28``, is no class.
        """
        named = named_class(name, classes)
        match = NUMBERED.fullmatch(name)
        if match is None or self._siblings[match[1], match[3]] <= {*classes}:
            return named
        return [place for place in named if classes[place] != match[2]]

    def texts(self, name: str) -> set[str]:
        """Return the distinct texts of the column ``name`` in the first rows, without missing values."""
        return self.columns[name].texts

    def all_texts(self, name: str) -> set[str]:
        """Return the distinct texts of the column ``name`` in all rows, without missing values."""
        column = self.columns[name]
        if column.all_texts is None:
            texts = distinct_texts(self.table, name, MAX_CLASSES)
            column.all_texts = {*map(label_text, texts)} - {""}
        return column.all_texts

    def labels(self, *names: str, in_all: bool = False) -> set[str]:
        """Return the distinct labels in columns, without words that mean a missing one; in all rows, or the first."""
        known = {*(self.class_names or ()), *self.called}
        texts = set[str]()
        for name in names:
            texts |= self.all_texts(name) if in_all else self.texts(name)
        return {text for text in texts if text in known or not is_gap(text)}

    def matrix(self, names: Sequence[str]) -> NDArray[np.float64]:
        """Return the numbers of the columns ``names`` in the first rows, (n, k), without rows that lack a number."""
        matrix = np.column_stack([self.columns[name].numbers for name in names])
        return matrix[np.isfinite(matrix).all(axis=1)]

    def width(self, name: str) -> int:
        """Return the number of values that the column ``name`` has in each row."""
        return int(self.matrix([name]).shape[1])

    def is_counter(self, name: str) -> bool:
        """Return whether a column numbers the rows: by its name, or by consecutive whole numbers."""
        column = self.columns[name]
        if column.kind == "number":
            return False
        if is_index(name):
            return True
        if column.kind != "whole" or len(column.values) < MIN_COUNTED:
            return False
        return bool((np.diff(column.numbers) == 1).all())

    def names_rows(self, name: str) -> bool:
        """Return whether a column numbers the rows, or has another value in each of many."""
        column = self.columns[name]
        are_different = MIN_DIFFERENT <= len(column.values) == len(column.texts)
        return are_different or self.is_counter(name)

    def error(self, rule: Rule, column: str | None = None) -> PredictionsError:
        """Return a `PredictionsError` that names the file and, if given, the column."""
        return PredictionsError(self.table.path, rule, column=column)


def _called(table: FileTable, known: Sequence[str], called: Sequence[str]) -> Sequence[str]:
    """Return the names ``called`` that a file has for the ``known`` classes; () if they are the same."""
    if [*called] == [*known]:
        return ()
    # A class that has its known name has it at the place where it is known.
    is_in_order = all(
        name == known_name or name not in known
        for name, known_name in zip(called, known, strict=False)
    )
    if called and (len(called) != len(known) or not is_in_order):
        raise PredictionsError(table.path, Rule("called_classes", classes=known))
    return called


def affixes(names: Iterable[str], class_name: str) -> list[tuple[str, str]]:
    """Return what stands before and after ``class_name`` in ``names`` that have it as a word, shortest first.

    Those of one length stay in the order of ``names``.
    """
    pattern = re.compile(f"{BEFORE}{re.escape(class_name)}{AFTER}")
    around: dict[tuple[str, str], int] = {}
    for name in names:
        for match in pattern.finditer(name):
            before = name[: match.start()]
            after = name[match.end() :]
            around[before, after] = len(before) + len(after)
    return sorted(around, key=around.__getitem__)


def shared_start(names: Sequence[Sequence[str]]) -> int:
    """Return with how many equal items all ``names``, texts or lists of words, begin."""
    shared = 0
    for items in zip(*names, strict=False):  # the first item of each name, then the second
        if len({*items}) > 1:
            break
        shared += 1
    return shared


def by_class(names: Sequence[str], classes: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the columns PREFIX + class + SUFFIX of all ``classes``, shortest affixes first; ignore case."""
    if not classes or not classes[0]:
        return
    lower = {name.lower(): name for name in names}
    wanted = [name.lower() for name in classes]
    if len(lower) < len(names) or len({*wanted}) < len(wanted):  # their case differs alone
        lower = {name: name for name in names}
        wanted = [*classes]
    for before, after in affixes(lower, wanted[0]):
        columns = [f"{before}{name}{after}" for name in wanted]
        if all(column in lower for column in columns):
            yield tuple(lower[column] for column in columns)
            if not before and not after:
                return


def label_text(value: Any) -> str:
    """Return the text of a label; a whole number loses its decimals, so "1.0" becomes "1"."""
    text = to_text(value)
    number = to_number(text)
    if number is None or text.isdigit():
        return text
    is_whole = number % 1 == 0 and abs(number) < 2**53  # above, floats are not exact
    return str(int(number)) if is_whole else text


def number_or_text(text: str) -> tuple[float, str]:
    """Return a sort key that puts numbers, by value, before all other texts."""
    number = to_number(text)
    return (np.inf if number is None else number, text)


def named_class(name: str, classes: Sequence[str]) -> list[int]:
    """Return a list of one index, that of the class in the column's ``name``; [] if it has no class or several."""
    # The last digit of t0 and t1 is a word.
    separated = re.sub(r"(?<=[a-z])(?=[01]$)", "_", name.lower())
    words = split_words(separated)
    named = [place for place, label in enumerate(classes) if label.lower() in words]
    return named if len(named) == 1 else []
