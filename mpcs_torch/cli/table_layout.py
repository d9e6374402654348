"""Fit a table to the width of a terminal: wrap cells, and split a wide table into tables below each other."""

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
"""The maximum length of words that are never broken, and the minimum width of the first column."""
READABLE = 30
"""The minimum width of the other columns, if they have text wider than this."""
NUMBER = r"(?:[+-]?(?:\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?|inf|nan))"
BESIDE_NUMBERS = re.compile(r"(?:to|of|x|[\s%()\[\],!*/-])*")
"""A pattern for the text around the numbers of a cell, such as " of " in ``12 of 30``."""
BREAKS = re.compile(r"(?<=[\s_/])|(?<=[.-])(?=[A-Za-z])")


class Column(NamedTuple):
    """The cells of a table column, without control characters. Numbers are aligned on the decimal point."""

    header: str
    cells: Sequence[str]
    is_number: bool
    wanted: int
    """The minimum width at which no cell is wrapped."""
    least: int
    """The minimum width to which the column may shrink; numbers are never wrapped."""


def fitted_tables(table: Table, width: int) -> Iterator[RichTable]:
    """Split ``table`` by columns into tables of at most ``width``, each of which begins with the first column."""
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
    """Make a column of ``texts``: its header, then its cells. It may shrink to ``narrowest`` if its text is wide."""
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
    """Return a table of ``columns``. The widest columns shrink until all fit ``width`` or no column can shrink."""
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
    lines = [""]
    for piece in BREAKS.split(text):
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def _aligned(cells: Sequence[str]) -> list[str]:
    """Pad ``cells`` to equal width, so that their decimal points are aligned; an empty cell stays empty."""
    heads = [len(found[0]) for cell in cells if (found := re.match(r"[+-]?(?:nan|inf|[\d,]*)", cell)) is not None]
    padded = [" " * (max(heads) - head) + cell if cell else "" for head, cell in zip(heads, cells, strict=True)]
    return [cell.ljust(max(map(len, padded))) if cell else "" for cell in padded]
