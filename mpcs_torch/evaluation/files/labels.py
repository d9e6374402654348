"""Give a table the labels that another file has for its rows."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.reading import ReadOptions
from mpcs_torch.evaluation.files.row_ids import RowIds, shared_ids
from mpcs_torch.evaluation.files.tables import Batch, Column, Table, decoded, listed

LABELS = "labels"
"""The name of the only column of a file of labels that does not name it."""


def with_labels(table: Table, reading: ReadOptions) -> Table:
    """Return a table with the columns of the file of labels, whose rows are matched by ids, or by their order.

    Without ``id_column``, the only id that both tables name is taken; tables without ids are matched by their order.

    Raises:
        PredictionsError: If a row has no label, an id is missing or repeated, or the numbers of rows differ.
    """
    if reading.labels is None:
        return table
    other = open_table(reading.labels)
    identifier = reading.id_column or _shared_id(table, other)
    for each in (table, other):
        each.check_columns([identifier], "--id-column")
    columns = _whole(other)
    if not other.has_names and len(columns) == 1:
        columns = {LABELS: next(iter(columns.values()))}
    if identifier is None:
        places = _places_in_order(table, other, len(next(iter(columns.values()))))
    else:
        known = RowIds.of_columns(Batch(1, columns, other.path), [identifier]).check_different()
        ids, may_lack = RowIds.of(table, identifier), reading.missing == "drop"
        places = ids.among(known) if may_lack else ids.all_among(known, " (--missing drop leaves such rows out)")
    added = [name for name in columns if name != identifier]

    def read(wanted: Sequence[str], numbers: Collection[str], part: range | None) -> Iterator[Batch]:
        inner = [name for name in wanted if name not in added]
        texts = [name for name in inner if name not in numbers] if inner else table.names[:1]
        for batch in table.batches(numbers=[name for name in inner if name in numbers], texts=texts, part=part):
            rows = places[batch.first_row - 1 :][: batch.rows]
            if len(rows) < batch.rows:
                raise PredictionsError(table.path, f"had {len(places)} rows when it was opened, but now has more")
            taken = {name: _take(columns[name], rows) for name in wanted if name in added}
            yield Batch(batch.first_row, batch.columns | taken)

    how = f"labels of {other.path.name} by {'the order of rows' if identifier is None else quoted(identifier)}"
    names = [name for name in table.names if name not in added] + added
    return replace(table, names=names, read=read, records=None, dialect=", ".join(filter(None, [table.dialect, how])))


def _shared_id(table: Table, other: Table) -> str | None:
    """Return the only id that both tables name; refuse ids by which rows cannot be matched."""
    shared = shared_ids([table, other])
    theirs, ours = shared_ids([other]), shared_ids([table])
    if len(shared) == 1 or not theirs or not ours:
        return shared[0] if shared else None
    has = f"has the ids {listed(theirs)}, and {table.path.name} {listed(ours)}"
    raise PredictionsError(other.path, f"{has}: name a column of both by --id-column, or leave out those of the labels")


def _places_in_order(table: Table, other: Table, count: int) -> NDArray[np.int32]:
    """Return the place of each row in another table of so many rows, which is that of the row itself."""
    rows = sum(batch.rows for batch in table.batches(texts=table.names[:1])) if table.rows is None else table.rows
    if rows != count:
        header = f" below the header {listed(other.names, 3)}" if other.has_names else ""
        raise PredictionsError(other.path, f"has {count} rows{header}, but {table.path} has {rows}")
    return np.arange(rows, dtype=np.int32)


def _whole(table: Table) -> dict[str, Column]:
    """Return all columns of all rows, as text, so that labels stay as they are."""
    import pyarrow

    parts = list(table.batches(texts=table.names))
    if not parts:
        raise PredictionsError(table.path, "has no rows")
    return {
        name: torch.cat([part.columns[name] for part in parts])
        if isinstance(parts[0].columns[name], Tensor)
        else pyarrow.concat_arrays([decoded(part.columns[name]) for part in parts])
        for name in table.names
    }


def _take(column: Column, places: NDArray[np.int32]) -> Column:
    """Return the values at some places; at -1, a missing one."""
    import pyarrow

    if isinstance(column, Tensor):
        values = column.double()[torch.from_numpy(places).long()]
        return values.masked_fill(torch.from_numpy(places < 0).unsqueeze(1), torch.nan)
    return column.take(pyarrow.array(places, mask=places < 0))
