"""Add the labels and columns of groups from a second file to a table. No column of the table is replaced."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.open_columns import OpenColumns, split_truth
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.score_columns import by_class
from mpcs_torch.evaluation.files.tables import Column, FileTable, Kind, RowIds, listed, shared_ids
from mpcs_torch.evaluation.files.words import is_index


def with_labels(table: FileTable, reading: ReadOptions) -> FileTable:
    """Add the labels in the file ``reading.labels`` to a table, and columns of groups that only that file has.

    Rows are matched by ``id_column``; if that is None, by the only column of ids in both files, or by their order if a
    file has no ids. A column of labels is renamed if the table already has a column with its name.
    """
    if reading.labels is None:
        return table
    other = open_table(reading.labels)
    identifier = reading.id_column or _shared_id(table, other)
    for each in (table, other):
        each.check_columns([identifier], "--id-column")
    of_class = _labels_in(other, reading, identifier, table.names)
    groups = [name for name in reading.columns if name in other.names and name not in table.names]
    wanted = [*([] if identifier is None else [identifier]), *of_class.values(), *groups]
    theirs = other.read(wanted)
    if not theirs.rows:
        raise PredictionsError(other.path, "has no rows")
    added = dict(zip(groups, groups, strict=True))
    for class_name, name in of_class.items():
        joined = name if other.has_names or len(other.names) > 1 else "labels"
        while joined in table.names:
            joined += f" of {other.path.name}"
        added[joined] = name
        of_class[class_name] = joined
    if identifier is None:
        places = _places_in_order(table, other, theirs.rows)
    else:
        known = RowIds.of(theirs, [identifier]).check_different()
        ids, may_lack = RowIds.of(table.read([identifier]), [identifier]), reading.missing == "drop"
        places = ids.among(known) if may_lack else ids.all_among(known, " (--missing drop leaves such rows out)")

    def load(wanted: Sequence[str], numbers: Collection[str], rows: int | None) -> dict[str, Column]:
        inner = [name for name in wanted if name not in added]
        columns = table.load(inner, numbers, rows) if inner else {}
        taken = min(map(len, columns.values()), default=None)
        return columns | {name: _take(theirs.columns[added[name]], places[:taken]) for name in wanted if name in added}

    how = f"labels of {other.path.name} by {'the order of rows' if identifier is None else quoted(identifier)}"
    return replace(
        table,
        names=[*table.names, *added],
        joined=[*added],
        label=of_class.pop("", None),
        truth=of_class,
        load=load,
        load_types=None,
        dialect=", ".join(filter(None, [table.dialect, how])),
    )


def _labels_in(other: FileTable, reading: ReadOptions, identifier: str | None, scores: Sequence[str]) -> dict[str, str]:
    """Return the column of labels under the key "", or else the columns of degrees of truth by class.

    The column of labels is named by the option, or has a usual name for labels, or is the only column.
    """
    other.check_columns([reading.label_column], "--label-column")
    columns = OpenColumns(other, ReadOptions(), None)
    columns.exclude([name for name in other.names if name in (identifier, *reading.columns) or is_index(name)])
    label = reading.label_column or columns.label_among(columns.open, *get_args(Kind))
    if label is None and len(columns.open) == 1 and (not other.has_names or not columns.of_kind("number")):
        label = columns.open[0]
    if label is not None:
        return {label if columns.kinds[label] == "list" else "": label}
    truth = dict[str, str]()
    for name in columns.of_kind("whole", "number") if other.has_names else ():
        _, class_name = split_truth(name) or ("", name)
        if any(True for _ in by_class(scores, [class_name])):
            truth[class_name] = name
    if not truth:
        has = f"has no column of labels that is known by its name; {other.it_has()}"
        raise columns.error(f"{has}: --label-column COLUMN names it")
    return truth


def _shared_id(table: FileTable, other: FileTable) -> str | None:
    """Return the only column of ids that both tables have, or None if a table has no ids; refuse all other cases."""
    shared = shared_ids([table, other])
    theirs, ours = shared_ids([other]), shared_ids([table])
    if len(shared) == 1 or not theirs or not ours:
        return shared[0] if shared else None
    has = f"has the ids {listed(theirs)}, and {table.path.name} {listed(ours)}"
    raise PredictionsError(other.path, f"{has}: name a column of both by --id-column, or leave out those of the labels")


def _places_in_order(table: FileTable, other: FileTable, count: int) -> NDArray[np.int32]:
    """Return the indices of all rows of ``table``; refuse ``other`` if its number of rows, ``count``, differs."""
    rows = table.read(table.names[:1]).rows
    if rows != count:
        header = f" below the header {listed(other.names, 3)}" if other.has_names else ""
        raise PredictionsError(other.path, f"has {count} rows{header}, but {table.path} has {rows}")
    return np.arange(rows, dtype=np.int32)


def _take(column: Column, places: NDArray[np.int32]) -> Column:
    """Return the values of ``column`` at the indices ``places``; the index -1 gives a missing value."""
    import pyarrow

    if isinstance(column, Tensor):
        values = column.double()[torch.from_numpy(places).long()]
        return values.masked_fill(torch.from_numpy(places < 0).unsqueeze(1), torch.nan)
    return column.take(pyarrow.array(places, mask=places < 0))
