"""Fit a table to the width of a terminal: rich wraps cells, and a wide table is split into tables below each other."""

from collections.abc import Iterator, Sequence

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.table import Table as RichTable
from rich.text import Text

from mpcs_torch.errors import printable
from mpcs_torch.tables import Table, numeric_columns

GAP = 2
"""The number of spaces between columns."""
READABLE = 30
"""The width to which a column of text may shrink."""


def fitted_tables(table: Table, width: int) -> Iterator[RichTable]:
    """Split ``table`` by columns into tables of at most ``width``, each of which begins with the first column."""
    min_widths = list[int]()
    for place, is_number in enumerate(numeric_columns(table)):
        cells = [row[place] for row in (table.header, *table.rows)]
        widest = max(cell_len(printable(cell)) for cell in cells)
        min_widths.append(widest if is_number else min(widest, READABLE))
    group = [0]
    for place in range(1, len(min_widths)):
        widths = [min_widths[column] + GAP for column in [*group, place]]
        if len(group) > 1 and sum(widths) - GAP > width:
            yield _printed(table, group)
            group = [0]
        group.append(place)
    yield _printed(table, group)


def _printed(table: Table, places: Sequence[int]) -> RichTable:
    """Return a table of the columns at ``places``, with numbers to the right."""
    printed = RichTable(
        box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0)
    )
    are_numbers = numeric_columns(table)
    for place in places:
        is_number = are_numbers[place]
        header = Text(printable(table.header[place]))
        printed.add_column(
            header, justify="right" if is_number else "left", overflow="fold"
        )
    for row in table.rows:
        printed.add_row(*(Text(printable(row[place])) for place in places))
    return printed
