"""Read columns of csv files, quickly by pyarrow, and row by row where that fails, to name the wrong row; write rows."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from mpcs_torch.scoring import chunks
from mpcs_torch.scoring.chunks import PredictionsError, check_columns, lines_of

BYTES_PER_VALUE = 64
"""The longest values that pyarrow reads in rows of very many columns: it fails where a row is larger than a block."""


class Batch(NamedTuple):
    """Columns of consecutive rows."""

    first_row: int
    columns: dict[str, Any]
    """By name: arrow arrays. Those of numbers are float64, or text if one of the numbers cannot be read."""


class CsvFile:
    """A csv file with a header; empty lines are skipped.

    Args:
        path: The file, in UTF-8.

    Raises:
        PredictionsError: If pyarrow is not installed, or there are too many columns.
    """

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
        """Yield some columns of all rows; of columns with the same name, the first one.

        Raises:
            PredictionsError: If a row has too few or too many values.
        """
        import pyarrow

        wanted, first = (*numbers, *texts), 1
        with suppress(pyarrow.ArrowException):
            for read in self._by_arrow(numbers, texts):
                yield Batch(first, dict(zip(wanted, read.columns, strict=True)))
                first += len(read)
            return
        rows, step = self.rows(start=first), chunks.rows_at_a_time(len(self.names))
        while held := list(islice(rows, step)):
            columns = list(zip(*held, strict=True))
            yield Batch(first, {name: pyarrow.array(columns[self._places[name]], pyarrow.string()) for name in wanted})
            first += len(held)

    def rows(self, start: int = 1) -> Iterator[list[str]]:
        """Yield the values of each row from a start, counted from 1 without the header.

        Raises:
            PredictionsError: If a row has too few or too many values.
        """
        with self.path.open(newline="", encoding="utf-8-sig") as file:
            for number, row in enumerate(
                row for row in csv.reader(lines_of(file, self.path)) if row
            ):  # the header is number 0
                if number >= start:
                    self._check_length(row, number)
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

    def _check_length(self, row: Sequence[str], number: int) -> None:
        names = self.names
        if len(row) < len(names):
            problem = f"is missing: the row has {len(row)} of {len(names)} values"
            raise PredictionsError(self.path, problem, row=number, column=names[len(row)])
        if len(row) > len(names):
            raise PredictionsError(
                self.path, f"has no name: the row has {len(row)} values", row=number, column=len(names)
            )


def import_pyarrow(path: Path) -> None:
    """Refuse to read a file if pyarrow is not installed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise PredictionsError(path, "requires pyarrow: pip install 'mpcs_torch[cli]'") from None


def write_csv_rows(file: BinaryIO, rows: Iterable[Iterable[object]]) -> None:
    """Write rows of values to an open file."""
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    file.write(text.getvalue().encode())
