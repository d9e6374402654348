"""Tables: the columns of a file, read in batches of rows, and the values of a column."""

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, is_number, reading
from mpcs_torch.evaluation.files.words import MISSING

Column = Any
"""Of some rows: an arrow array of numbers, texts or lists; an array (n,) of numbers; or a tensor (n, k) of numbers."""
PEEKED_ROWS, PEEKED_VALUES = 100, 10**5
"""The most rows, and values, that are read to see what columns contain."""
DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+(e[+-]?\d+)?", re.IGNORECASE)
Kind = Literal["empty", "text", "whole", "number", "list"]
"""No value is filled; some are no numbers; all are whole numbers; all are numbers; all are lists of numbers."""


class Batch(NamedTuple):
    """Columns of consecutive rows."""

    first_row: int
    """From 1, without the header."""
    columns: dict[str, Column]
    """By name. Those of numbers may be text where one of the numbers cannot be read."""

    @property
    def rows(self) -> int:
        """The number of rows."""
        return len(next(iter(self.columns.values()), ()))


Read = Callable[[Sequence[str], Collection[str], range | None], Iterator[Batch]]
"""Yields columns, of which some are of numbers and the others of text, of all rows or of a part of them."""


@dataclass(frozen=True)
class Table:
    """A file whose columns are read in batches of rows."""

    path: Path
    names: Sequence[str]
    """Of the columns; `unnamed` ones if the file has none."""
    read: Read
    rows: int | None = None
    """Their number; None if the file must be read to count them. Parts can be read where it is known."""
    has_names: bool = True
    dialect: str = ""
    """What is unusual about the format, in words."""
    delimiter: str = ","
    decimal: str = "."
    """Of text."""
    records: Callable[[], Iterator[Any]] | None = None
    """Of parquet: yields all rows in the batches of ``read``, as record batches, with the types of the file."""
    counts_from_0: bool = False
    """Whether labels are indices, as in the arrays of numpy and torch."""
    classes: Sequence[str] = ()
    """The names of the classes in their order, if the file has an array of them."""

    def batches(
        self, *, numbers: Sequence[str] = (), texts: Sequence[str] = (), part: range | None = None
    ) -> Iterator[Batch]:
        """Yield some columns of all rows, or of a part; errors name the file, and the row that was reached.

        Numbers may be text where one of them cannot be read. A column that is asked for as both is read as text.

        Raises:
            PredictionsError: If the file cannot be read.
        """
        read = self.read([*dict.fromkeys([*numbers, *texts])], {*numbers} - {*texts}, part)
        row = 1 if part is None else part.start + 1
        while True:
            with reading(self.path, row):
                batch = next(read, None)
            if batch is None:
                return
            yield batch
            row += batch.rows

    def peek(self, rows: int = PEEKED_ROWS) -> dict[str, list[Any]]:
        """Return the first values of each column; of a column of arrays, lists."""
        most = max(1, min(rows, PEEKED_VALUES * rows // PEEKED_ROWS // max(1, len(self.names))))
        values: dict[str, list[Any]] = {name: [] for name in self.names}
        part = None if self.rows is None else range(min(most, self.rows))
        as_numbers = list(self.names) if self.counts_from_0 else []
        for batch in self.batches(numbers=as_numbers, texts=[] if as_numbers else self.names, part=part):
            for name, column in batch.columns.items():
                values[name] += column[: most - len(values[name])].tolist()
            if batch.first_row + batch.rows > most:
                break
        if self.decimal == ",":
            values = {name: [_with_point(value) for value in column] for name, column in values.items()}
        return values

    def check_columns(self, names: Sequence[str | None], option: str = "") -> None:
        """Refuse a table that lacks a column, and say which option asked for it."""
        for name in names:
            if name is not None and name not in self.names:
                asked = f" of {option}" if option else ""
                raise PredictionsError(self.path, f"has no column {quoted(name)}{asked}; it has {listed(self.names)}")


def _with_point(value: Any) -> Any:
    return value.replace(",", ".") if isinstance(value, str) and DECIMAL_COMMA.fullmatch(value.strip()) else value


def unnamed(count: int) -> list[str]:
    """Return the names of the columns of a file that does not name them."""
    return [f"column {place}" for place in range(1, count + 1)]


def listed(names: Sequence[str], most: int = 10) -> str:
    """Return some names for a message."""
    shown = ", ".join(quoted(name)[1:-1] for name in islice(names, most))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown or "none"


def text_of(value: Any) -> str:
    """Return the text of a value of a table; a missing one is empty."""
    plain = value.as_py() if hasattr(value, "as_py") else value
    if plain is None or plain != plain:
        return ""
    return str(int(plain)) if isinstance(plain, float) and plain.is_integer() else str(plain).strip()


def is_gap(value: Any) -> bool:
    """Return whether a value is missing: empty, or a word such as NA."""
    return not isinstance(value, list) and (text_of(value) or "na").lower() in MISSING


def numbers_in(value: Any) -> list[float] | None:
    """Return the numbers of a list, or of the text of one such as ``[0.7, 0.3]``; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        if not (text.startswith(("[", "(")) and text.endswith(("]", ")"))):
            return None
        value = text[1:-1].replace(",", " ").split()
    if not isinstance(value, (list, tuple)) or not value or not all(map(is_number, value)):
        return None
    return [float(number) for number in value]


def kind_of(values: Sequence[Any]) -> Kind:
    """Return what the values of a column are; empty ones say nothing."""
    filled = [value for value in values if not is_gap(value)]
    if not filled:
        return "empty"
    if all(numbers_in(value) is not None for value in filled):
        return "list"
    numbers = [number_of(value) for value in filled]
    if any(number is None for number in numbers):
        return "text"
    return "whole" if all(number is not None and number % 1 == 0 for number in numbers) else "number"


def number_of(value: Any) -> float | None:
    """Return a number, or that of a text, which may end in a percent sign; None for anything else."""
    if isinstance(value, str):
        value = value.strip().removesuffix("%")
    if isinstance(value, (bool, np.bool_)) or not is_number(value):
        return None
    return float(value)


def column_of(values: Sequence[Any]) -> Column:
    """Return the column of values of Python: a tensor of lists of numbers of one length, else an arrow array."""
    import pyarrow

    if len({len(numbers_in(value) or ()) if isinstance(value, list) else 0 for value in values} | {0}) == 2 and all(
        isinstance(value, list) and numbers_in(value) for value in values
    ):
        return torch.tensor(values, dtype=torch.float64)
    types = {type(value) for value in values if value is not None}
    if types <= {int, float}:
        with suppress(OverflowError, pyarrow.ArrowException):
            return pyarrow.array(values, pyarrow.int64() if types <= {int} else pyarrow.float64())
    return pyarrow.array([None if value is None else _as_text(value) for value in values], pyarrow.string())


def _as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value) if isinstance(value, (list, dict, bool)) else str(value)


def numbers_of(path: Path, values: Column, column: str, first_row: int) -> NDArray[np.float64]:
    """Return the numbers of a column, as numbers or as text: float64 (n,), NaN where there is none.

    Raises:
        PredictionsError: If another value is there.
    """
    if isinstance(values, np.ndarray) and values.dtype.kind != "U":
        return np.array(values, dtype=np.float64)
    import pyarrow
    from pyarrow.types import is_dictionary, is_floating, is_integer, is_string

    values = pyarrow.array(values) if isinstance(values, np.ndarray) else values
    if isinstance(values, Tensor):
        raise PredictionsError(path, f"must have one number in each row, but has {values.shape[1]}", column=column)
    if is_dictionary(values.type):
        values = values.dictionary_decode()
    if is_string(values.type):
        with suppress(pyarrow.ArrowInvalid):  # Python reads more texts as numbers
            values = values.cast(pyarrow.float64())
    if (is_floating(values.type) or is_integer(values.type)) and not values.null_count:
        return np.array(np.from_dlpack(values), dtype=np.float64)  # a copy: arrow's memory cannot be written
    numbers = []
    for row, value in enumerate(values.to_pylist(), start=first_row):
        number = np.nan if is_gap(value) else number_of(value)
        if number is None:
            raise PredictionsError(path, f"must be a number, but is {quoted(value)}", row=row, column=column)
        numbers.append(number)
    return np.array(numbers, dtype=np.float64)


def matrix_of(path: Path, batch: Batch, names: Sequence[str]) -> Tensor:
    """Return columns of numbers, or one column of lists, as a matrix (n, columns).

    Raises:
        PredictionsError: If another value is there, or lists have different lengths.
    """
    first = batch.columns[names[0]]
    values = [] if isinstance(first, (Tensor, np.ndarray)) else first[:PEEKED_ROWS].to_pylist()
    if len(names) > 1 or isinstance(first, np.ndarray) or any(not is_gap(v) and numbers_in(v) is None for v in values):
        columns = [numbers_of(path, batch.columns[name], name, batch.first_row) for name in names]
        return torch.from_numpy(np.stack(columns, axis=1))
    if isinstance(first, Tensor):
        return first
    values = first.to_pylist()
    lists = [numbers_in(value) for value in values]
    size = len(lists[0] or ()) if lists else 0
    for row, (value, numbers) in enumerate(zip(values, lists, strict=True), start=batch.first_row):
        if numbers is None or len(numbers) != size:
            rule = f"must be a list of {size} numbers as in row {batch.first_row}"
            raise PredictionsError(path, f"{rule}, but is {quoted(value)}", row=row, column=names[0])
    return torch.tensor(lists, dtype=torch.float64)


def codes_of(
    path: Path,
    values: Column,
    column: str,
    first_row: int,
    code_of: Callable[[Any], int | None],
    rule: str,
) -> Tensor:
    """Return the code of each value of a column, asking once for each distinct value: int64 (n,).

    Args:
        path: The file, for errors.
        values: The column.
        column: Its name, for errors.
        first_row: The number of its first row, for errors.
        code_of: Returns the code of a value, or None if it has none.
        rule: What a value must be, as the error begins.

    Raises:
        PredictionsError: If a value has no code.
    """
    check_single(path, values, column)
    places, distinct = _encoded(values)
    codes = [code_of(value) for value in distinct]
    bad = np.isin(places, [place for place, code in enumerate(codes) if code is None])
    if bad.any():
        row = int(bad.argmax())
        value = distinct[places[row]]
        but = f"is {quoted(value)}" if text_of(value) else "is missing (--missing drop leaves such rows out)"
        raise PredictionsError(path, f"{rule}, but {but}", row=first_row + row, column=column)
    by_place: NDArray[np.int64] = np.array([code or 0 for code in codes], dtype=np.int64)
    return torch.from_numpy(by_place[places])


def _encoded(values: Column) -> tuple[NDArray[np.int64], list[Any]]:
    """Return the place of each value among the different values, and these."""
    if isinstance(values, np.ndarray):
        different, inverse = np.unique(values, return_inverse=True)
        return inverse.astype(np.int64), different.tolist()
    from pyarrow.types import is_dictionary

    if is_dictionary(values.type) and values.null_count:
        values = values.dictionary_decode()
    encoded = values if is_dictionary(values.type) else values.dictionary_encode(null_encoding="encode")
    return np.asarray(np.from_dlpack(encoded.indices), dtype=np.int64), encoded.dictionary.to_pylist()


def check_single(path: Path, values: Column, column: str) -> None:
    """Refuse a column of several values in each row."""
    if isinstance(values, Tensor):
        raise PredictionsError(path, f"must have one value in each row, but has {values.shape[1]}", column=column)


def distinct_texts(table: Table, names: Sequence[str], most: int, *, has_gaps: bool = False) -> set[str]:
    """Return the different texts of some columns of all rows; refuse more than ``most``.

    A missing one is left out, or, if it ``has_gaps``, empty.
    """
    found = set[str]()
    for batch in table.batches(texts=names):
        for name in names:
            check_single(table.path, batch.columns[name], name)
            found |= {text_of(value) for value in batch.columns[name].unique().to_pylist()}
            if len(found) > most:
                problem = f"must have at most {most} different values, but has more"
                raise PredictionsError(table.path, problem, column=name)
    return found if has_gaps else found - {""}


def in_parts(columns: Mapping[str, Column], step: int, first_row: int = 1) -> Iterator[Batch]:
    """Yield columns in memory in batches of rows."""
    total = len(next(iter(columns.values()), ()))
    for start in range(0, total, step):
        yield Batch(first_row + start, {name: column[start : start + step] for name, column in columns.items()})
