"""Tables (files whose columns are read only when needed), columns in memory, and the ids of rows."""

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, Rule
from mpcs_torch.evaluation.files.read_options import (
    PredictionsError,
    ReadOptions,
    as_arguments,
    naming_file,
    reading,
)
from mpcs_torch.evaluation.files.words import MISSING
from mpcs_torch.functional.inputs.groups import Groups

if TYPE_CHECKING:
    import pyarrow

Column = Any
"""An arrow array (n,) of numbers, texts or lists, or a tensor (n, k) of numbers."""
PEEKED_ROWS = 100
"""The maximum number of rows from which the kind of each column is inferred."""
PEEKED_VALUES = 10**5
"""The maximum number of values, in all columns, from which the kinds are inferred."""
DECIMAL_COMMA = re.compile(r"^\s*([+-]?\d*),(\d+(?:[eE][+-]?\d+)?(?:\s*%)?)\s*$")
NESTED = re.compile(r"\s*(\[\s*([\"'{[].*)?\]|\{\s*([\"'{[\d].*)?\})\s*", re.DOTALL)
"""A pattern for the text of a list or dictionary, as JSON and Python write it, but not for a name such as ``[PAD]``."""
Kind = Literal["empty", "text", "nested", "whole", "number", "list"]
"""The kind of values in a column: none, some text, only lists or dictionaries of texts, only whole numbers, only
numbers, or only lists of numbers. A nested column has no role."""


class Argument(NamedTuple):
    """The columns of a file from which an argument of a function comes, one for each value in a row."""

    columns: Sequence[str]
    advice: str = ""
    """The code of the advice for a bad value; "" for none."""


class ReadColumns(NamedTuple):
    """Columns of a file in memory, with n rows. Errors about a value name the file, the row and the column."""

    path: Path
    columns: dict[str, Column]
    kept: NDArray[np.bool_] | None = None
    """A mask over the rows of the file, True for the rows in ``columns``. Default: all rows."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        columns = [*self.columns.values()]
        return len(columns[0]) if columns else 0

    def error(
        self, rule: Rule, place: int, column: str | None = None, value: Any = ...
    ) -> PredictionsError:
        """Return an error about the row at index ``place``, or about the ``value`` of ``column`` in this row."""
        row = place if self.kept is None else int(self.kept.nonzero()[0][place])
        return PredictionsError(self.path, rule, row=row + 1, column=column, value=value)

    @contextmanager
    def naming(self, arguments: Mapping[str, "Argument"]) -> Iterator[None]:
        """Turn an error about a value of one of ``arguments`` in the with block into one about its row and columns.

        Other errors in the block name the file.
        """
        with naming_file(self.path):
            try:
                yield
            except InvalidValueError as error:
                if error.sample is None or error.argument not in arguments:
                    raise
                columns, advice = arguments[error.argument]
                column = columns[0] if len({*columns}) == 1 else None
                if error.column is not None:
                    column = columns[min(error.column, len(columns) - 1)]
                rule = error.rule
                value = error.value
                if column is None:
                    rule = Rule("of_columns", columns=columns, rule=rule)
                elif np.isnan(value).any():
                    value = None
                if advice:
                    rule = Rule(advice, rule=rule)
                raise self.error(rule, error.sample, column, value) from None

    def where(self, kept: NDArray[np.bool_]) -> "ReadColumns":
        """Return these columns with only the rows where ``kept`` (n,) is True."""
        filtered = {}
        for name, values in self.columns.items():
            is_tensor = isinstance(values, Tensor)
            filtered[name] = values[kept] if is_tensor else values.filter(kept)
        return self._replace(columns=filtered, kept=kept)

    def single(self, name: str) -> "pyarrow.Array":
        """Return the column ``name``; raise an error if it has several values in each row."""
        values = self.columns[name]
        if isinstance(values, Tensor):
            raise PredictionsError(
                self.path, Rule("single_value", number=values.shape[1]), column=name
            )
        return values

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return the column ``name`` as float64 (n,), with NaN for missing values; texts must be numbers."""
        import pyarrow
        from pyarrow import compute
        from pyarrow.types import is_floating, is_integer, is_string

        values = self.single(name)
        if is_string(values.type):
            with suppress(pyarrow.ArrowInvalid):
                # If this fails, go on with the texts: Python, below, accepts more of them as numbers.
                values = compute.ascii_trim_whitespace(values).cast(pyarrow.float64())
        if is_floating(values.type) or is_integer(values.type):
            values = values.cast(pyarrow.float64(), safe=False)
            if values.null_count:  # only then: `fill_null`, as `to_numpy`, imports pandas
                values = values.fill_null(np.nan)
            return np.array(np.from_dlpack(values))  # a writable copy

        def number(value: Any) -> float | None:
            return np.nan if is_gap(value) else to_number(value)

        mapped = self._mapped(name, values, number, Rule("number"))
        return np.array(mapped, dtype=np.float64)

    def matrix(self, names: Sequence[str]) -> Tensor:
        """Return the columns ``names`` of numbers, or one column of lists of numbers, as a matrix (n, k)."""
        first = self.columns[names[0]]
        if isinstance(first, Tensor) and len(names) == 1:
            return first
        if len(names) > 1 or column_kind(first[:PEEKED_ROWS].tolist()) != "list":
            columns = [self.numbers(name) for name in names]
            return torch.from_numpy(np.stack(columns, axis=1))
        lists = [numbers_in(value) for value in first.to_pylist()]
        size = len(lists[0] or ())
        for place, numbers in enumerate(lists):
            if numbers is None or len(numbers) != size:
                rule = Rule("list_as_in_row_1", size=size, value=first[place].as_py())
                raise self.error(rule, place, names[0])
        return torch.tensor(lists, dtype=torch.float64)

    def texts(self, name: str) -> "pyarrow.Array":
        """Return the column ``name`` as texts (n,), null where a value is missing. Whole floats lose their decimals."""
        import pyarrow
        from pyarrow import compute

        values = self.single(name)
        is_missing = compute.is_null(values, nan_is_null=True)
        texts = without_decimals(values).cast(pyarrow.string())
        lengths = compute.binary_length(compute.utf8_trim_whitespace(texts))
        # A comparison with a number of Python would import pandas.
        is_filled = lengths.cast(pyarrow.bool_())
        is_missing = compute.or_kleene(is_missing, compute.invert(is_filled))
        gaps = pyarrow.nulls(len(texts), pyarrow.string())
        return compute.if_else(is_missing, gaps, texts)

    def codes(
        self, name: str, group_code: Callable[[Any], int | None], rule: Rule
    ) -> Tensor:
        """Return the integer that ``group_code`` gives for each value of the column ``name``: int64 (n,).

        A value for which ``group_code`` returns None breaks the ``rule``.
        """
        mapped = self._mapped(name, self.single(name), group_code, rule)
        return torch.from_numpy(np.array(mapped, dtype=np.int64))

    def _mapped(
        self, name: str, values: "pyarrow.Array", function: Callable[[Any], Any], rule: Rule
    ) -> NDArray[Any]:
        """Return what ``function`` makes of each of the ``values`` of a column; refuse those of which it makes None."""
        encoded = values.dictionary_encode(null_encoding="encode")
        distinct = encoded.dictionary.to_pylist()
        index_of_row = np.from_dlpack(encoded.indices)
        mapped = [function(value) for value in distinct]
        refused = [index for index, result in enumerate(mapped) if result is None]
        bad = np.isin(index_of_row, refused)
        if bad.any():
            place = int(bad.argmax())
            value = distinct[index_of_row[place]]
            raise self.error(rule, place, name, value if to_text(value) else None)
        # A result of None is left only for a value of no row: any number stands for it.
        results = np.array([result or 0 for result in mapped])
        of_rows: NDArray[Any] = results[index_of_row]
        return of_rows

    def groups(self, name: str, gap: str | None = None) -> Groups:
        """Return the groups in the column ``name``; missing names become ``gap``, or are refused if it is None.

        Refused are words such as NA, too: as names, they would make one patient of all rows without one.
        """
        by_name = dict[str, int]()

        def group_code(value: Any) -> int | None:
            if gap is None and is_gap(value):
                return None
            return by_name.setdefault(to_text(value) or str(gap), len(by_name))

        codes = self.codes(name, group_code, Rule("has_name"))
        return Groups([*by_name], codes)


Load = Callable[[Sequence[str], Collection[str], int | None], dict[str, Column]]
"""A function that reads columns. Arguments: names; names to read as numbers; number of rows, or None for all."""


@dataclass(frozen=True)
class FileTable:
    """A file whose columns are read when they are needed."""

    path: Path
    names: Sequence[str]
    """The names of the columns; if the file has no header, the names from `unnamed`."""
    load: Load
    has_names: bool = True
    dialect: str = ""
    """A description of the format, if it is unusual."""
    delimiter: str = ","
    decimal: str = "."
    """The decimal mark of a text file."""
    load_types: "Callable[[], pyarrow.Table] | None" = None
    """A function that returns all columns of a parquet file with the types that they have in the file."""
    counts_from_0: bool = False
    """Whether labels are indices that count from 0, as in numpy and torch arrays."""
    classes: Sequence[str] = ()
    """The class names in index order, if the file has an array of class names."""
    joined: Sequence[str] = ()
    """The columns that were added from a separate file of labels."""
    label: str | None = None
    """The column of labels among ``joined``; it takes precedence over other columns named as labels."""
    truth: Mapping[str, str] = field(default_factory=dict[str, str])
    """The columns of soft labels among ``joined``, by class; empty if there is a ``label``."""

    def read(
        self,
        names: Sequence[str],
        *,
        numbers: Collection[str] = (),
        rows: int | None = None,
    ) -> ReadColumns:
        """Read the columns ``names``: at least the first ``rows`` rows, or all rows if ``rows`` is None.

        In a text file, the columns ``numbers`` are read as numbers if possible.
        """
        with reading(self.path):
            columns = self.load([*dict.fromkeys(names)], numbers, rows)
            if self.decimal == ",":
                columns = {name: with_points(column) for name, column in columns.items()}
            return ReadColumns(self.path, columns)

    @property
    def peeked_rows(self) -> int:
        """The maximum number of rows that `peek` takes."""
        return min(PEEKED_ROWS, max(1, PEEKED_VALUES // max(1, len(self.names))))

    def peek(self, *, of_all: bool = False) -> dict[str, list[Any]]:
        """Return some values of each column, of `PEEKED_ROWS` rows at most: the first ones or, ``of_all``, some of all.

        In an array (N, C), a value is a list.
        """
        most = self.peeked_rows
        read = self.read(self.names, rows=None if of_all else most)
        rows = min(most, read.rows)
        if not of_all or rows == read.rows:
            return {name: column[:rows].tolist() for name, column in read.columns.items()}
        places = np.linspace(0, read.rows - 1, rows).astype(np.int64).tolist()
        # One value after the other: `take` and a mask would import pandas.
        return {
            name: [column[place : place + 1].tolist()[0] for place in places]
            for name, column in read.columns.items()
        }

    def check_columns(self, names: Sequence[str | None], option: str) -> None:
        """Raise an error if a column in ``names`` is missing. The message names the command's ``option``."""
        known = {*self.names}
        for name in names:
            if name is not None and name not in known:
                columns = self.names_in_file
                rule = Rule("has_named_column", name=name, option=option, columns=columns)
                raise PredictionsError(self.path, rule)

    def check_options(self, options: ReadOptions, *names: str) -> None:
        """Raise an error if the file lacks a column that one of the options ``names`` requests."""
        for name in names:
            named = getattr(options, name)
            columns = [named] if named is None or isinstance(named, str) else named
            self.check_columns(columns, f"--{name.replace('_', '-')}")

    @property
    def names_in_file(self) -> list[str]:
        """The names of the columns of the file itself."""
        return [name for name in self.names if name not in self.joined]


def with_points(column: Column) -> Column:
    """Return a column with decimal points where texts are numbers with decimal commas."""
    from pyarrow import compute
    from pyarrow.types import is_string

    if isinstance(column, Tensor) or not is_string(column.type):
        return column
    return compute.replace_substring_regex(column, DECIMAL_COMMA.pattern, r"\1.\2")


def without_decimals(values: Column) -> Column:
    """Return a column of floats as int64 if all its values are whole, or missing; all other columns as they are."""
    import pyarrow
    from pyarrow.types import is_floating

    if not isinstance(values, Tensor) and is_floating(values.type):
        with suppress(pyarrow.ArrowInvalid):
            return values.cast(pyarrow.int64())
    return values


def take_rows(column: Column, places: NDArray[np.int32]) -> Column:
    """Return the values of ``column`` at the indices ``places``; index -1 gives a missing value."""
    import pyarrow

    if isinstance(column, Tensor):
        values = column.double()[torch.from_numpy(places).long()]
        values[torch.from_numpy(places < 0)] = torch.nan
        return values
    return column.take(pyarrow.array(places, mask=places < 0))


def unnamed(count: int) -> list[str]:
    """Return names for the ``count`` columns of a file that has no names."""
    return [f"column {place}" for place in range(1, count + 1)]


def choices(option: str, values: Iterable[str]) -> str:
    """Return ``option`` with each of ``values`` as typed in a shell, joined by "or"."""
    return " or ".join(shlex.join(as_arguments(option, value)) for value in values)


def to_text(value: Any) -> str:
    """Return ``value`` as text, without outer spaces; empty if the value is None or NaN."""
    plain = value.as_py() if hasattr(value, "as_py") else value
    if plain is None or plain != plain:
        return ""
    if isinstance(plain, float) and plain.is_integer():
        return str(int(plain))
    return str(plain).strip()


def is_gap(value: Any) -> bool:
    """Return whether a value is missing, that is, empty or a word such as NA."""
    if isinstance(value, list):
        return False
    text = to_text(value)
    return not text or text.lower() in MISSING


def numbers_in(value: Any) -> list[float] | None:
    """Return the numbers of a list, or of a text such as ``[0.7, 0.3]``; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        if not (text.startswith(("[", "(")) and text.endswith(("]", ")"))):
            return None
        value = text[1:-1].replace(",", " ").split()
    if not isinstance(value, (list, tuple)):
        return None
    with suppress(TypeError, ValueError):
        numbers = [float(number) for number in value]
        return numbers or None
    return None


def column_kind(values: Sequence[Any]) -> Kind:
    """Return the kind of a column from those of its ``values`` that are not missing.

    A few texts among decimal numbers do not make a column of texts: reading it names the first of them.
    """
    filled = [value for value in values if not is_gap(value)]
    if not filled:
        return "empty"
    if all(numbers_in(value) is not None for value in filled):
        return "list"
    numbers = [to_number(value) for value in filled]
    decimals = sum(number is not None and number % 1 != 0 for number in numbers)
    if numbers.count(None) > decimals:
        are_nested = all(NESTED.fullmatch(to_text(value)) for value in filled)
        return "nested" if are_nested else "text"
    return "number" if decimals else "whole"


def to_number(value: Any) -> float | None:
    """Return ``value`` as a float, without a final percent sign if it is a text; None if it is no number."""
    if isinstance(value, str):
        value = value.strip().removesuffix("%")
    with suppress(TypeError, ValueError):
        return None if isinstance(value, (bool, np.bool_)) else float(value)
    return None


def make_column(values: Sequence[Any]) -> Column:
    """Convert Python values to a column: a tensor if all are lists of numbers of equal length, else an arrow array.

    Lists of one value each are these values.
    """
    import pyarrow

    are_single = [isinstance(value, list) and len(value) == 1 for value in values]
    if values and all(are_single):
        values = [value for [value] in values]
    lists = [numbers_in(value) for value in values if isinstance(value, list)]
    sizes = {len(numbers or ()) for numbers in lists}
    if len(lists) == len(values) and all(lists) and len(sizes) == 1:
        return torch.tensor(lists, dtype=torch.float64)
    types = {type(value) for value in values if value is not None}
    if types <= {int, float}:
        with suppress(OverflowError, pyarrow.ArrowException):
            kind = pyarrow.int64() if types <= {int} else pyarrow.float64()
            return pyarrow.array(values, kind)
    texts = []
    for value in values:
        is_json = isinstance(value, (list, dict, bool))
        texts.append(json.dumps(value) if is_json else str(value))
    is_missing = np.array([value is None for value in values], dtype=bool)
    return pyarrow.array(texts, pyarrow.string(), mask=is_missing)


def distinct_texts(table: FileTable, name: str, most: int) -> set[str]:
    """Return the distinct texts in the column ``name``, empty for a missing value; refuse more than ``most`` texts."""
    values = table.read([name]).single(name).unique().to_pylist()
    distinct = {*map(to_text, values)}
    if len(distinct) > most:
        raise PredictionsError(
            table.path, Rule("different_values_at_most", maximum=most), column=name
        )
    return distinct
