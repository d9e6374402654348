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
        cells = [
            [_markdown_cell(cell) for cell in row] for row in (self.header, *self.rows)
        ]
        columns = zip(*cells, strict=True)
        widths = [max(map(len, column)) for column in columns]
        lines = list[str]()
        for row in cells:
            padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append(f"| {' | '.join(padded)} |")
        dashes = ["-" * (width + 2) for width in widths]
        lines.insert(1, f"|{'|'.join(dashes)}|")
        return "\n".join(lines)

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
        header = _html_row(self.header, 'th scope="col"', "th")
        body = "".join(_html_row(row, "td", "td") for row in self.rows)
        return f"<table><thead>{header}</thead><tbody>{body}</tbody></table>"


NUMBER = re.compile(r"[-+]?\d.*|nan|-?inf|")
"""A pattern for a cell that begins with a number, such as ``0.9 (0.8 to 1)``, or is empty."""


def numeric_columns(table: Table) -> list[bool]:
    """Return, for each column, whether its cells are numbers or empty, and at least one cell is a number."""
    are_numeric = list[bool]()
    for place in range(len(table.header)):
        filled = [row[place] for row in table.rows if row[place]]
        are_numbers = all(NUMBER.fullmatch(cell) for cell in filled)
        are_numeric.append(bool(filled) and are_numbers)
    return are_numeric


def in_digits(value: float, digits: int, sign: str = "") -> str:
    """Format ``value`` with ``digits`` significant digits. With ``sign`` "+", positive numbers get a plus sign."""
    rounded = float(f"{value:.{digits}g}")
    return f"{rounded:{sign}.15g}"  # without an exponent up to 15 digits


def in_table(value: float) -> str:
    """Format a number for a table, with 6 significant digits."""
    return in_digits(value, 6)


def in_percent(share: float) -> str:
    """Format a share from 0 to 1 in percent, with 3 significant digits."""
    return f"{100 * share:.3g} %"


def _markdown_cell(text: str) -> str:
    """Escape control characters, and put a backslash before each |; double the backslashes that precede a | already."""
    return re.sub(r"(?<!\\)(\\*)\|", r"\1\1\\|", printable(text))


def _html_row(row: Sequence[str], opening: str, tag: str) -> str:
    """Return a row of HTML; each of its cells begins with ``opening``, and ends with ``tag``."""
    cells = ""
    for place, cell in enumerate(row):
        side = "left" if place == 0 else "right"
        cells += f'<{opening} style="text-align: {side}">{escape(cell)}</{tag}>'
    return f"<tr>{cells}</tr>"
