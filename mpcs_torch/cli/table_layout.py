"""Fit a table to the width of a terminal: set the width of each column, and move columns below the others."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from mpcs_torch.errors import printable
from mpcs_torch.tables import Table

GAP = 2
"""The number of spaces between columns."""
NARROWEST = 16
"""The length of the longest word that is never broken, and the minimum width of the first column."""
READABLE = 30
"""The minimum width of other columns of text. Sentences in narrower columns are hard to read."""
NUMBER = r"(?:[+-]?(?:\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?|inf|nan))"
BESIDE_NUMBERS = re.compile(r"(?:to|of|x|[\s%()\[\],!*/-])*")
"""The text between and after the numbers of a cell, such as ``0.95 (+0.01)`` and ``12 of 30``."""
BREAKS = re.compile(r"(?<=[\s_/])|(?<=[.-])(?=[A-Za-z])")


class Column(NamedTuple):
    """The cells of a column, without control characters; numbers are aligned on the decimal point."""

    header: str
    cells: Sequence[str]
    is_number: bool
    wanted: int
    """The least width at which no cell is wrapped."""
    least: int
    """The width below which the column is not readable; a number is never wrapped."""


def fitted_tables(table: Table, width: int) -> Iterator[RichTable]:
    """Yield tables with as many columns as fit ``width``; each begins with the first column. Markup stays as text."""
    label, *others = (
        _column([printable(cell) for cell in cells], READABLE if place else NARROWEST)
        for place, cells in enumerate(zip(table.header, *table.rows, strict=True))
    )
    group = [label]
    for column in others:
        if len(group) > 1 and sum(each.least + GAP for each in group) + column.least > width:
            yield _printed(group, width)
            group = [label]
        group.append(column)
    yield _printed(group, width)


def _column(texts: list[str], narrowest: int) -> Column:
    """Return a column from ``texts``: its header and cells. Wide text gets at least the width ``narrowest``."""
    header, *cells = texts
    numbers = [cell for cell in cells if cell not in ("", "-")]
    is_number = any(cells) and all(
        re.match(NUMBER, cell) and BESIDE_NUMBERS.fullmatch(re.sub(NUMBER, "", cell)) for cell in numbers
    )
    if is_number:
        cells = _aligned(cells)
        narrowest = max(map(len, cells))
    wanted = max(map(cell_len, (header, *cells)))
    pieces = [piece.rstrip() for text in ([header] if is_number else texts) for piece in BREAKS.split(text)]
    longest = max(map(cell_len, pieces))
    return Column(header, cells, is_number, wanted, max(min(narrowest, wanted), min(longest, NARROWEST), 1))


def _printed(columns: Sequence[Column], width: int) -> RichTable:
    """Return a table of ``columns``; the widest columns shrink until all fit ``width`` or none can shrink."""
    widths = [max(min(column.wanted, width), column.least) for column in columns]
    while sum(widths) + GAP * (len(widths) - 1) > width:
        reducible = [(wide, place) for place, wide in enumerate(widths) if wide > columns[place].least]
        if not reducible:
            break
        widths[max(reducible)[1]] -= 1
    printed = RichTable(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    cells = []
    for column, wide in zip(columns, widths, strict=True):
        header = Text(_wrapped(column.header, wide), justify="right" if column.is_number else "left")
        printed.add_column(header, overflow="fold", width=wide)
        cells.append([Text(cell.rjust(wide) if column.is_number else _wrapped(cell, wide)) for cell in column.cells])
    for row in zip(*cells, strict=True):
        printed.add_row(*row)
    return printed


def _wrapped(text: str, width: int) -> str:
    """Break a text between words, and after underscores and slashes, into lines of at most ``width`` if possible."""
    lines = [""]
    for piece in BREAKS.split(text):
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _aligned(cells: Sequence[str]) -> list[str]:
    """Pad numbers so that their decimal points are below each other."""
    heads = [len(found[0]) for cell in cells if (found := re.match(r"[+-]?(?:nan|inf|[\d,]*)", cell)) is not None]
    padded = [" " * (max(heads) - head) + cell if cell else "" for head, cell in zip(heads, cells, strict=True)]
    return [cell.ljust(max(map(len, padded))) if cell else "" for cell in padded]
