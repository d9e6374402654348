"""Join the labels of a separate file to a table, by ids or in order."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.facts import Facts, affixes
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.label_columns import MAX_FAMILIES, split_truth
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.tables import Column, FileTable, Kind, RowIds, choices, listed
from mpcs_torch.evaluation.files.words import LABELS, is_index, named_as

MAX_IDS = 5
"""The maximum number of columns of ids in each file that are compared with those of the other file."""


def with_labels(table: FileTable, reading: ReadOptions) -> FileTable:
    """Return ``table`` with the labels in the file ``reading.labels``, and with groups that only that file has.

    Rows are matched by ``reading.id_column``, else by the columns of ids of both files, whatever their names, whose
    values are the same. If either file has no ids, rows are matched in order. An added column is renamed if the table
    already has a column with its name.
    """
    if reading.labels is None:
        return table
    other = open_table(reading.labels)
    ours, theirs_id = _id_columns(table, other, reading)
    of_class = _labels_in(other, reading, theirs_id, table.names)
    groups = [name for name in reading.columns if name in other.names and name not in table.names]
    wanted = [*([] if theirs_id is None else [theirs_id]), *of_class.values(), *groups]
    theirs = other.read(wanted)
    if not theirs.rows:
        raise PredictionsError(other.path, "has no rows")
    added = dict(zip(groups, groups, strict=True))
    for class_name, name in of_class.items():
        joined = name if other.has_names else "labels"
        while joined in table.names:
            joined += f" of {other.path.name}"
        added[joined] = name
        of_class[class_name] = joined
    if ours is None or theirs_id is None:
        places = _places_in_order(table, other, theirs.rows)
    else:
        known = RowIds.of(theirs, [theirs_id]).check_different()
        ids, may_lack = RowIds.of(table.read([ours]), [ours]), reading.missing == "drop"
        places = ids.among(known) if may_lack else ids.all_among(known, " (--missing drop leaves such rows out)")

    def load(wanted: Sequence[str], numbers: Collection[str], rows: int | None) -> dict[str, Column]:
        inner = [name for name in wanted if name not in added]
        columns = table.load(inner, numbers, rows) if inner else {}
        taken = min(map(len, columns.values()), default=None)
        return columns | {name: _take(theirs.columns[added[name]], places[:taken]) for name in wanted if name in added}

    by = "the order of rows" if ours is None else quoted(ours)
    by += "" if ours == theirs_id else f" = {quoted(theirs_id)}"
    how = f"labels of {other.path.name} by {by}"
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
    """Map "" to the column of labels in ``other``; without such a column, map each class to its column of soft labels.

    The column of labels is ``reading.label_column``, or has a usual name for labels, or is the only column.
    """
    other.check_columns([reading.label_column], "--label-column")
    facts = Facts(other, ReadOptions())
    free = [name for name in other.names if name not in (identifier, *reading.columns) and not is_index(name)]
    named = facts.by_kind(named_as(free, LABELS), *get_args(Kind))
    if len(named) > 1 and reading.label_column is None:
        problem = f"has several columns that may be the labels, {listed(named)}: {choices('--label-column', named[:2])}"
        raise facts.error(problem)
    label = reading.label_column or next(iter(named), None)
    if label is None and len(free) == 1 and (not other.has_names or facts.kinds[free[0]] != "number"):
        label = free[0]
    if label is not None:
        return {label if facts.kinds[label] == "list" else "": label}
    numbers = facts.by_kind(free, "whole", "number") if other.has_names else ()
    by_name = {(split_truth(name) or ("", name))[1]: name for name in numbers}
    lower = {name.lower() for name in scores}
    # All columns of scores have the same affixes, which the first classes tell.
    around = {affix for name in islice(by_name, MAX_FAMILIES) for affix in affixes(lower, name.lower())[:MAX_FAMILIES]}
    truth = {
        class_name: name
        for class_name, name in by_name.items()
        if any(f"{before}{class_name.lower()}{after}" in lower for before, after in around)
    }
    if not truth:
        has = f"has no column of labels that is known by its name; {other.it_has()}"
        raise facts.error(f"{has}: --label-column COLUMN names it")
    return truth


def _id_columns(table: FileTable, other: FileTable, reading: ReadOptions) -> tuple[str | None, str | None]:
    """Return the column of ids of each table; None twice if rows are matched in order, because a table has no ids.

    Raises:
        PredictionsError: If both tables have ids, but not one pair of columns with the same values.
    """
    if reading.id_column is not None:
        for each in (table, other):
            each.check_columns([reading.id_column], "--id-column")
        return reading.id_column, reading.id_column
    ours, theirs = (_ids_of(each) for each in (table, other))
    if not ours or not theirs:
        return None, None
    chosen = [(name, name) for name in ours if name in theirs]
    if len(chosen) != 1:
        known = {name: _named_rows(other, name) for name in theirs}
        ids = {name: _named_rows(table, name) for name in ours}
        chosen = [(one, two) for one in ours for two in theirs if _match(ids[one], known[two])]
    if len(chosen) != 1:
        has = f"has the ids {listed(theirs)}, and {table.path.name} {listed(ours)}"
        rule = "name a column of both by --id-column, or leave out those of the labels"
        raise PredictionsError(other.path, f"{has}: {rule}")
    return chosen[0]


def _ids_of(table: FileTable) -> list[str]:
    """Return the first columns of a table whose names are usual for ids, such as ``filename``."""
    return [name for name in table.names if table.has_names and is_index(name)][:MAX_IDS]


def _named_rows(table: FileTable, name: str) -> RowIds | None:
    """Return the ids of all rows in a column; None if one is missing."""
    try:
        return RowIds.of(table.read([name]), [name])
    except PredictionsError:
        return None


def _match(ids: RowIds | None, known: RowIds | None) -> bool:
    """Return whether all ``ids`` are, once each, among the ``known`` ones."""
    if ids is None or known is None or known.repeated():
        return False
    return bool((ids.among(known) >= 0).all())


def _places_in_order(table: FileTable, other: FileTable, count: int) -> NDArray[np.int32]:
    """Return the row indices 0 to N - 1 of ``table``; raise an error unless ``other`` has as many rows (``count``)."""
    rows = table.read(table.names[:1]).rows
    if rows != count:
        header = f" below the header {listed(other.names, 3)}" if other.has_names else ""
        raise PredictionsError(other.path, f"has {count} rows{header}, but {table.path} has {rows}")
    return np.arange(rows, dtype=np.int32)


def _take(column: Column, places: NDArray[np.int32]) -> Column:
    """Return the values of ``column`` at the indices ``places``; index -1 gives a missing value."""
    import pyarrow

    if isinstance(column, Tensor):
        values = column.double()[torch.from_numpy(places).long()]
        return values.masked_fill(torch.from_numpy(places < 0).unsqueeze(1), torch.nan)
    return column.take(pyarrow.array(places, mask=places < 0))
