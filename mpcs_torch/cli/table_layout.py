"""Fit a table to the width of a terminal: the width of each column, and which columns have to go below the others."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from rich.cells import cell_len

from mpcs_torch.errors import printable
from mpcs_torch.tables import Table

GAP = 2
"""Spaces between columns."""
NARROWEST = 16
"""Words of at most this many characters are not broken, and the first column is not made narrower."""
READABLE = 30
"""No other column of text is made narrower: sentences in a narrower one are hard to read."""
NUMBER = r"(?:[+-]?(?:\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?|inf|nan))"
BESIDE_NUMBERS = re.compile(r"(?:to|of|x|[\s%()\[\],!*/-])*")
"""The text between and after the numbers of a cell, such as ``0.95 (+0.01)`` and ``12 of 30``."""
BREAKS = re.compile(r"(?<=[\s_/])|(?<=[.-])(?=[A-Za-z])")


@dataclass(frozen=True)
class Column:
    """The cells of a column, without control characters; those of numbers are aligned on the decimal point."""

    header: str
    cells: Sequence[str]
    is_number: bool
    narrowest: int = READABLE
    """Of text."""

    @cached_property
    def wanted(self) -> int:
        """The width at which nothing is wrapped."""
        return max(map(cell_len, (self.header, *self.cells)))

    @cached_property
    def least(self) -> int:
        """The width below which the column is not readable; a number is never wrapped."""
        texts = [self.header] if self.is_number else [self.header, *self.cells]
        longest = max((cell_len(piece.rstrip()) for text in texts for piece in BREAKS.split(text)), default=0)
        cells = max(map(cell_len, self.cells), default=0) if self.is_number else self.narrowest
        return max(min(cells, self.wanted), min(longest, NARROWEST), 1)

    def lines(self, width: int) -> list[str]:
        """Return the cells for a width: text is wrapped, and numbers, all of the same length, are moved right."""
        if not self.is_number:
            return [wrapped(cell, width) for cell in self.cells]
        return [" " * (width - cell_len(cell)) + cell if cell else "" for cell in self.cells]


def columns_of(table: Table) -> list[Column]:
    """Return the columns of a table, with numbers aligned."""
    columns: list[Column] = []
    for header, *cells in zip(table.header, *table.rows, strict=True):
        safe = [printable(cell) for cell in cells]
        is_number = any(safe) and all(
            re.match(NUMBER, cell) and BESIDE_NUMBERS.fullmatch(re.sub(NUMBER, "", cell))
            for cell in safe
            if cell not in ("", "-")
        )
        cells = _aligned(safe) if is_number else safe
        columns.append(Column(printable(header), cells, is_number, READABLE if columns else NARROWEST))
    return columns


def fitted(columns: Sequence[Column], width: int) -> list[int]:
    """Return the width of each column, of which the widest give way until all fit, if they can."""
    widths = [max(min(column.wanted, width), column.least) for column in columns]
    while sum(widths) + GAP * (len(widths) - 1) > width:
        reducible = [(wide, place) for place, wide in enumerate(widths) if wide > columns[place].least]
        if not reducible:
            break
        widths[max(reducible)[1]] -= 1
    return widths


def folded(columns: Sequence[Column], width: int) -> Iterator[list[Column]]:
    """Yield the columns in groups that fit, to print one below the other; each begins with the first column."""
    label, *others = columns
    group, taken = [label], label.least
    for column in others:
        if len(group) > 1 and taken + GAP + column.least > width:
            yield group
            group, taken = [label], label.least
        group.append(column)
        taken += GAP + column.least
    yield group


def wrapped(text: str, width: int) -> str:
    """Break a text between words, and after underscores, slashes and the like, into lines of at most a width.

    A longer piece without such a place stays whole.
    """
    lines = [""]
    for piece in BREAKS.split(text):
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _aligned(cells: Sequence[str]) -> list[str]:
    """Pad numbers so that their decimal points, or last digits before one would come, are below each other."""
    heads = [len(found[0]) for cell in cells if (found := re.match(r"[+-]?(?:nan|inf|[\d,]*)", cell)) is not None]
    padded = [" " * (max(heads) - head) + cell if cell else "" for head, cell in zip(heads, cells, strict=True)]
    return [cell.ljust(max(map(len, padded))) if cell else "" for cell in padded]
