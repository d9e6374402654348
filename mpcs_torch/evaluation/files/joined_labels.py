"""Join the labels of a separate file to a table, by ids or in order."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.facts import Facts, affixes
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.label_columns import MAX_FAMILIES, label_candidates
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.row_ids import RowIds, check_as_many
from mpcs_torch.evaluation.files.tables import Column, FileTable, choices, listed
from mpcs_torch.evaluation.files.words import is_index

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
    pair = _id_columns(table, other, reading)
    ids = [] if pair is None else [pair[1]]
    of_class = _labels_in(other, reading, ids, table.names)
    groups = [name for name in reading.columns if name in other.names and name not in table.names]
    theirs = other.read([*ids, *of_class.values(), *groups])
    if not theirs.rows:
        raise PredictionsError(other.path, "has no rows")
    added = dict(zip(groups, groups, strict=True))
    for class_name, name in of_class.items():
        joined = name if other.has_names else "labels"
        while joined in table.names:
            joined += f" of {other.path.name}"
        added[joined] = name
        of_class[class_name] = joined
    if pair is None:
        by = "the order of rows"
        rows, header = table.read(table.names[:1]).rows, f" below the header {listed(other.names, 3)}"
        check_as_many(other.path, theirs.rows, table.path, rows, header if other.has_names else "")
        places = np.arange(rows, dtype=np.int32)
    else:
        by = " = ".join(dict.fromkeys(map(quoted, pair)))
        known, own = RowIds.of(theirs, ids).check_different(), RowIds.of(table.read(pair[:1]), pair[:1])
        may_lack = reading.missing == "drop"
        places = own.among(known) if may_lack else own.all_among(known, " (--missing drop leaves such rows out)")

    def load(wanted: Sequence[str], numbers: Collection[str], rows: int | None) -> dict[str, Column]:
        inner = [name for name in wanted if name not in added]
        columns = table.load(inner, numbers, rows) if inner else {}
        taken = min(map(len, columns.values()), default=None)
        return columns | {name: _take(theirs.columns[added[name]], places[:taken]) for name in wanted if name in added}

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


def _labels_in(other: FileTable, reading: ReadOptions, ids: Sequence[str], scores: Sequence[str]) -> dict[str, str]:
    """Map "" to the column of labels in ``other``; without such a column, map each class to its column of soft labels.

    The columns of soft labels are named as such, or as the classes of the columns of ``scores``.
    """
    other.check_columns([reading.label_column], "--label-column")
    taken = [*ids, *filter(is_index, other.names), *reading.columns]
    facts = Facts(other, ReadOptions(label_column=reading.label_column), None, taken)
    named = [each for each in label_candidates(facts) if each.is_named]
    if len(named) > 1:
        columns = [name for each in named for name in each.columns]
        ways = choices("--label-column", columns[:2])
        raise facts.error(f"has several columns that may be the labels, {listed(columns)}: {ways}")
    labels = [name for each in named for name in each.hard]
    if not named and len(facts.free) == 1 and (not other.has_names or not facts.by_kind(facts.free, "number")):
        labels = facts.free
    if labels:
        return {labels[0] if facts.kind(labels[0]) == "list" else "": labels[0]}
    truth = dict(named[0].truth) if named else _soft_labels(facts, scores)
    if not truth:
        has = f"has no column of labels that is known by its name; {other.it_has()}"
        raise facts.error(f"{has}: --label-column COLUMN names it")
    return truth


def _soft_labels(facts: Facts, scores: Sequence[str]) -> dict[str, str]:
    """Map each class in the names of ``scores`` to the column of numbers that is named after it."""
    numbers = facts.by_kind(facts.free, "whole", "number") if facts.table.has_names else ()
    lower, classes = {name.lower() for name in scores}, {name: name.lower() for name in numbers}
    # All columns of scores have the same affixes, which the first classes tell.
    first = islice(classes.values(), MAX_FAMILIES)
    around = {affix for name in first for affix in affixes(lower, name)[:MAX_FAMILIES]}
    return {
        name: name
        for name, text in classes.items()
        if any(f"{before}{text}{after}" in lower for before, after in around)
    }


def _id_columns(table: FileTable, other: FileTable, reading: ReadOptions) -> tuple[str, str] | None:
    """Return the column of ids of each table; None if rows are matched in order, because a table has no ids.

    Raises:
        PredictionsError: If both tables have ids, but not one pair of columns with the same values.
    """
    if reading.id_column is not None:
        for each in (table, other):
            each.check_columns([reading.id_column], "--id-column")
        return reading.id_column, reading.id_column
    ours, theirs = (_ids_of(each) for each in (table, other))
    if not ours or not theirs:
        return None
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


def _take(column: Column, places: NDArray[np.int32]) -> Column:
    """Return the values of ``column`` at the indices ``places``; index -1 gives a missing value."""
    import pyarrow

    if isinstance(column, Tensor):
        values = column.double()[torch.from_numpy(places).long()]
        return values.masked_fill(torch.from_numpy(places < 0).unsqueeze(1), torch.nan)
    return column.take(pyarrow.array(places, mask=places < 0))
