"""A table of text that can be written as Markdown, CSV or HTML, and functions that format numbers for tables."""

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Self

from mpcs_torch.errors import printable


@dataclass(frozen=True)
class Table:
    """A table of text cells: a header and rows."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    @classmethod
    def from_records(cls, records: Sequence[Mapping[str, str]]) -> Self:
        """Make a table with a row for each of ``records``; the header is the keys of the first record."""
        return cls([*records[0]], [[*record.values()] for record in records])

    def markdown(self) -> str:
        """Return the table as Markdown with aligned columns; no cell breaks the table, whatever its text."""
        cells = [list(map(_markdown_cell, row)) for row in (self.header, *self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "| "
            + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            + " |"
            for row in cells
        ]
        return "\n".join(
            [
                lines[0],
                "|" + "|".join("-" * (width + 2) for width in widths) + "|",
                *lines[1:],
            ]
        )

    def csv(self) -> str:
        """Return the table as comma-separated values."""
        buffer = io.StringIO()
        csv.writer(buffer, lineterminator="\n").writerows([self.header, *self.rows])
        return buffer.getvalue()

    def records(self) -> list[dict[str, str]]:
        """Return a list with a dictionary for each row, which maps column headers to cells."""
        return [dict(zip(self.header, row, strict=True)) for row in self.rows]

    def _repr_html_(self) -> str:
        """Return the table as HTML for notebooks, with the first column aligned left and the others right."""
        header = (
            f'<th scope="col"{_align(place)}>{escape(cell)}</th>'
            for place, cell in enumerate(self.header)
        )
        rows = (
            (f"<td{_align(place)}>{escape(cell)}</td>" for place, cell in enumerate(row))
            for row in self.rows
        )
        body = "".join(f"<tr>{''.join(cells)}</tr>" for cells in rows)
        return (
            f"<table><thead><tr>{''.join(header)}</tr></thead><tbody>{body}</tbody></table>"
        )


NUMBER = re.compile(r"[-+]?\d.*|nan|-?inf|")
"""A pattern for a cell that begins with a number, such as ``0.9 (0.8 to 1)``, or is empty."""


def numeric_columns(table: Table) -> list[bool]:
    """Return, for each column, whether its cells are numbers or empty, and at least one cell is a number."""
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.header)
    return [
        all(NUMBER.fullmatch(cell) for cell in column) and any(column) for column in columns
    ]


def in_digits(value: float, digits: int, sign: str = "") -> str:
    """Format ``value`` with ``digits`` significant digits. With ``sign`` "+", positive numbers get a plus sign."""
    return f"{float(f'{value:.{digits}g}'):{sign}.15g}"


def in_table(value: float) -> str:
    """Format a number for a table, with 6 significant digits."""
    return in_digits(value, 6)


def in_percent(share: float) -> str:
    """Format a share from 0 to 1 in percent, with 3 significant digits."""
    return f"{100 * share:.3g} %"


def _markdown_cell(text: str) -> str:
    """Escape control characters and each |. Double the backslashes before a |: they would escape the escape."""
    return re.sub(r"(?<!\\)(\\*)\|", r"\1\1\\|", printable(text))


def _align(place: int) -> str:
    return f' style="text-align: {"right" if place else "left"}"'
