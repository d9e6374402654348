"""Read columns of csv and parquet files in batches of rows."""

import csv
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files import chunks
from mpcs_torch.evaluation.files.chunks import PredictionsError, check_columns, is_number, lines_of

if TYPE_CHECKING:
    import pyarrow

BYTES_PER_VALUE = 64
"""The longest values that pyarrow reads in rows of very many columns: it fails where a row is larger than a block."""


class Batch(NamedTuple):
    """Columns of consecutive rows."""

    first_row: int
    columns: dict[str, Any]
    """By name: arrow arrays. Those of numbers are float64, or text if one of the numbers cannot be read."""


class CsvFile:
    """A csv file in UTF-8 with a header; empty lines are skipped, and too many columns refused."""

    def __init__(self, path: Path) -> None:
        import_pyarrow(path)
        self.path = path
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(lines_of(file, path))
            self.header = next((row for row in reader if row), [])
            self._header_lines = reader.line_num
        check_columns(path, len(self.header))
        self.names = [name.strip() for name in self.header]
        self._places = {name: place for place, name in reversed(list(enumerate(self.names)))}

    def batches(self, *, numbers: Sequence[str], texts: Sequence[str]) -> Iterator[Batch]:
        """Yield some columns of all rows; of columns with the same name, the first one."""
        import pyarrow

        wanted, first = (*numbers, *texts), 1
        with suppress(pyarrow.ArrowException):
            for read in self._by_arrow(numbers, texts):
                yield Batch(first, dict(zip(wanted, read.columns, strict=True)))
                first += len(read)
            return
        rows, step = self.rows(start=first), chunks.rows_at_a_time(len(self.names))
        while texts_of_rows := list(islice(rows, step)):
            columns = list(zip(*texts_of_rows, strict=True))
            yield Batch(first, {name: pyarrow.array(columns[self._places[name]], pyarrow.string()) for name in wanted})
            first += len(texts_of_rows)

    def rows(self, start: int = 1) -> Iterator[list[str]]:
        """Yield the values of each row from a start, counted from 1 without the header; refuse too few or too many."""
        with self.path.open(newline="", encoding="utf-8-sig") as file:
            rows = (row for row in csv.reader(lines_of(file, self.path)) if row)
            for number, row in enumerate(islice(rows, start, None), start):  # the header is number 0
                if len(row) < len(self.names):
                    problem = f"is missing: the row has {len(row)} of {len(self.names)} values"
                    raise PredictionsError(self.path, problem, row=number, column=self.names[len(row)])
                if len(row) > len(self.names):
                    problem = f"has no name: the row has {len(row)} values"
                    raise PredictionsError(self.path, problem, row=number, column=len(self.names))
                yield row

    def _by_arrow(self, numbers: Sequence[str], texts: Sequence[str]) -> Any:
        import pyarrow
        from pyarrow import csv as arrow_csv

        repeated = pyarrow.dictionary(pyarrow.int32(), pyarrow.string())
        types = {str(self._places[name]): pyarrow.float64() for name in numbers}
        types |= {str(self._places[name]): repeated for name in texts}
        return arrow_csv.open_csv(
            self.path,
            arrow_csv.ReadOptions(
                block_size=max(8 * chunks.VALUES, BYTES_PER_VALUE * len(self.names)),
                skip_rows=self._header_lines,
                column_names=[str(place) for place in range(len(self.names))],  # names may be repeated
            ),
            arrow_csv.ParseOptions(newlines_in_values=True),
            # Without null_values, an empty text and "NaN" are read as Python reads them.
            arrow_csv.ConvertOptions(column_types=types, include_columns=list(types), null_values=[]),
        )


def import_pyarrow(path: Path) -> Any:
    """Return pyarrow; refuse to read a file if it is not installed."""
    try:
        import pyarrow
    except ImportError:
        raise PredictionsError(path, "requires pyarrow: pip install 'mpcs_torch[cli]'") from None
    return pyarrow


def write_csv_rows(file: BinaryIO, rows: Iterable[Iterable[object]]) -> None:
    """Write rows of values to an open file."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write(text.getvalue().encode())


def parquet_names(path: Path) -> list[str]:
    """Return the names of the columns; refuse too many."""
    import_pyarrow(path)
    from pyarrow import parquet

    names = list(parquet.read_schema(path).names)
    check_columns(path, len(names))
    return names


def parquet_rows(path: Path) -> int:
    """Return the number of rows."""
    from pyarrow import parquet

    return int(parquet.read_metadata(path).num_rows)


def parquet_batches(
    path: Path, step: int, columns: Sequence[str] | None = None, part: range | None = None
) -> Iterator[Batch]:
    """Yield all columns, or some, of all rows, or of a part, in batches of at most ``step`` rows."""
    from pyarrow import parquet

    file = parquet.ParquetFile(path)
    part = range(file.metadata.num_rows) if part is None else part
    groups, start, end = list[int](), 0, 0
    for number in range(file.num_row_groups):
        begin, end = end, end + file.metadata.row_group(number).num_rows
        if begin < part.stop and end > part.start:
            start = start if groups else begin
            groups.append(number)
    for read in file.iter_batches(step, row_groups=groups, columns=columns):
        low, high = max(start, part.start), min(start + len(read), part.stop)
        if low < high:
            kept = read.slice(low - start, high - low)
            yield Batch(low + 1, dict(zip(kept.schema.names, kept.columns, strict=True)))
        start += len(read)


def numbers_of(path: Path, values: "pyarrow.Array", column: str, first_row: int) -> NDArray[np.float64]:
    """Return the numbers that a column holds, as numbers or as text: float64; refuse any other value."""
    import pyarrow
    from pyarrow.types import is_floating, is_integer, is_string

    if is_string(values.type):
        with suppress(pyarrow.ArrowInvalid):  # Python reads more texts as numbers
            values = values.cast(pyarrow.float64())
    if (is_floating(values.type) or is_integer(values.type)) and not values.null_count:
        return np.array(np.from_dlpack(values), dtype=np.float64)  # a copy: arrow's memory cannot be written
    given = values.to_pylist()
    try:
        return np.array([float(value) for value in given])
    except (TypeError, ValueError, OverflowError):
        row = next(row for row, value in enumerate(given) if not is_number(value))
        problem = "is missing" if given[row] in (None, "") else f"must be a number, but is {quoted(given[row])}"
        raise PredictionsError(path, problem, row=first_row + row, column=column) from None


def labels_of(
    path: Path,
    values: "pyarrow.Array",
    column: str,
    first_row: int,
    label_of: Callable[[Any], int | None],
    rule: str,
    hint: Callable[[Any], str] = lambda _: "",
) -> NDArray[np.int64]:
    """Return the labels of a column, asking once for each distinct value: int64; refuse a value without a label.

    Args:
        path: The file, for errors.
        values: The column.
        column: Its name, for errors.
        first_row: The number of its first row, for errors.
        label_of: Returns the label of a value, or None if it has none.
        rule: What a value must be, as the error begins.
        hint: Returns how the error ends for a value without a label.
    """
    from pyarrow.types import is_dictionary

    if is_dictionary(values.type) and values.null_count:
        values = values.dictionary_decode()
    encoded = values if is_dictionary(values.type) else values.dictionary_encode(null_encoding="encode")
    places: NDArray[np.int64] = np.asarray(np.from_dlpack(encoded.indices), dtype=np.int64)
    distinct = encoded.dictionary.to_pylist()
    labels = [label_of(value) for value in distinct]
    bad = np.isin(places, [place for place, label in enumerate(labels) if label is None])
    if bad.any():
        row = int(bad.argmax())
        value = distinct[places[row]]
        problem = f"{rule}, but is {quoted(value)}{hint(value)}"
        raise PredictionsError(path, problem, row=first_row + row, column=column)
    by_place: NDArray[np.int64] = np.array([label or 0 for label in labels], dtype=np.int64)
    return by_place[places]
