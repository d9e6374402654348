"""Join the labels of a separate file to a table, by ids or in order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, product

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import Rule, listed, quoted
from mpcs_torch.evaluation.files.facts import Facts, affixes
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.label_columns import MAX_FAMILIES, label_candidates
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.row_ids import Ids, RowIds, check_as_many, trial_ids
from mpcs_torch.evaluation.files.tables import Column, FileTable, choices, take_rows
from mpcs_torch.evaluation.files.words import is_index

MAX_IDS = 5
"""The maximum number of columns of ids in each file that are compared with those of the other file."""
COMPARED = 1000
"""The number of rows whose ids are compared to find the columns by which two files can be matched."""


def with_labels(
    table: FileTable, reading: ReadOptions, scores: Sequence[str] = ()
) -> tuple[FileTable, Ids]:
    """Return ``table`` with the labels in the file ``reading.labels``, and with groups that only that file has.

    If ``scores`` names the scores of a detector, this file is a list of trials, all of which must have a score. Also
    return the columns by which rows were matched: ``reading.id_column``, else the ids of both files; see `join`.
    """
    if reading.labels is None:
        return table, ()
    other, is_list = open_table(reading.labels), bool(scores)
    labels = _labels_in(other, reading, () if scores else table.names, of_trials=is_list)
    groups = [
        name for name in reading.columns if name in other.names and name not in table.names
    ]
    ids = _ids_of(table, reading), _ids_of(other, reading)
    if scores:
        ids = (
            trial_ids(table, scores, reading, is_matched=True),
            trial_ids(other, labels.values(), reading, is_matched=True),
        )
    may_lack = reading.missing == "drop" or MATRIX in table.dialect
    return join(table, other, labels, groups, ids, may_lack=may_lack, is_list=is_list)


def join(
    table: FileTable,
    other: FileTable,
    labels: Mapping[str, str],
    groups: Sequence[str],
    ids: tuple[Sequence[Ids], Sequence[Ids]],
    *,
    may_lack: bool,
    is_list: bool = False,
) -> tuple[FileTable, Ids]:
    """Add columns of the table ``other`` to ``table``; return it, and the columns by which its rows were matched.

    Args:
        table: The table.
        other: The table with the labels of the same rows.
        labels: The columns of ``other`` to add as soft labels, by class, or as labels by the name "". A column is
            renamed if ``table`` already has one with its name.
        groups: Further columns to add.
        ids: Sets of columns of ``table``, and of ``other``, whose texts may name the rows, the most likely first. If
            either has none, rows are matched in order.
        may_lack: Whether rows of ``table`` that ``other`` lacks have no label, or are refused.
        is_list: Whether ``table`` must have each row of ``other``, as a list of trials.
    """
    names = best_match(table, other, *ids) if all(ids) else ((), ())
    theirs = other.read([*names[1], *labels.values(), *groups])
    if not theirs.rows:
        raise PredictionsError(other.path, Rule("rows"))
    added, of_class = dict(zip(groups, groups, strict=True)), dict(labels)
    for class_name, name in labels.items():
        joined = name if other.has_names else "labels"
        while joined in table.names:
            joined += f" of {other.path.name}"
        added[joined] = name
        of_class[class_name] = joined
    if names[0]:
        by = " = ".join(dict.fromkeys(quoted(" and ".join(each)) for each in names))
        known = RowIds.of(theirs, names[1]).check_different()
        own = RowIds.of(table.read(names[0]), names[0])
        if not may_lack:
            own.all_among(known, Rule("or_drop"))
        places = own.among(known)
        if is_list:
            known.all_among(own.check_different())
    else:
        by, rows = "the order of rows", table.read(table.names[:1]).rows
        header = Rule("below_header", names=other.names) if other.has_names else ""
        check_as_many(other.path, theirs.rows, table.path, rows, header)
        places = np.arange(rows, dtype=np.int32)

    def load(
        wanted: Sequence[str], numbers: Collection[str], rows: int | None
    ) -> dict[str, Column]:
        inner = [name for name in wanted if name not in added]
        columns = table.load(inner, numbers, rows) if inner else {}
        taken = min(map(len, columns.values()), default=None)
        return columns | {
            name: take_rows(theirs.columns[added[name]], places[:taken])
            for name in wanted
            if name in added
        }

    column = "" if other.has_names else f" {listed([*labels.values()])}"
    how = f"labels{column} of {other.path.name} by {by}"
    with_added = replace(
        table,
        names=[*table.names, *added],
        joined=[*added],
        label=of_class.pop("", None),
        truth=of_class,
        load=load,
        load_types=None,
        dialect=", ".join(filter(None, [table.dialect, how])),
    )
    return with_added, names[0]


def best_match(
    table: FileTable, other: FileTable, ours: Sequence[Ids], theirs: Sequence[Ids]
) -> tuple[Ids, Ids]:
    """Return the columns of ``table`` and of ``other`` that name the same rows.

    Columns that name each row of ``other`` once go before others, then columns with the same names, more columns, and
    columns with more names in common.

    Raises:
        PredictionsError: If no columns have names in common, or two pairs of columns match rows differently.
    """
    own, known = table.read([*chain(*ours)]), other.read([*chain(*theirs)])
    best, chosen = (False, False, 0, 0), list[tuple[Ids, Ids]]()
    all_places = list[NDArray[np.int32]]()
    for pair in product(ours, theirs):
        is_same, size = table.has_names and pair[0] == pair[1], len(pair[0])
        if size != len(pair[1]) or best > (True, is_same, size, COMPARED):
            continue
        try:
            others = RowIds.of(known, pair[1])
            places = RowIds.of(own, pair[0]).among(others)
        except PredictionsError:  # a row has no name
            continue
        match = (not others.repeated(), is_same, size, int((places[:COMPARED] >= 0).sum()))
        if match[-1] and match > best:
            best, chosen, all_places = match, [], []
        if match[-1] and match == best:
            chosen.append(pair)
            all_places.append(places)
    if not chosen or any((each != all_places[0]).any() for each in all_places):
        raise PredictionsError(
            other.path,
            Rule(
                "ids_of_both",
                other=table.path.name,
                ids=[*known.columns],
                others=[*own.columns],
            ),
        )
    return chosen[0]


def _labels_in(
    other: FileTable,
    reading: ReadOptions,
    scores: Sequence[str],
    *,
    of_trials: bool = False,
) -> dict[str, str]:
    """Map "" to the column of labels in ``other``; without such a column, map each class to its column of soft labels.

    The columns of soft labels are named as such, or as the classes of the columns of ``scores``.
    """
    other.check_columns([reading.label_column], "--label-column")
    taken = [*filter(is_index, other.names), *reading.columns]
    options = ReadOptions(
        label_column=reading.label_column, target_label=reading.target_label
    )
    facts = Facts(other, options, None, taken, of_trials=of_trials)
    named = [each for each in label_candidates(facts) if each.is_named or of_trials]
    if len(named) > 1:
        columns = [name for each in named for name in each.columns]
        ways = choices("--label-column", columns[:2])
        raise facts.error(Rule("one_column_of_labels", columns=columns, ways=ways))
    labels = [name for each in named for name in each.hard]
    if (
        not named
        and len(facts.free) == 1
        and (not other.has_names or not facts.by_kind(facts.free, "number"))
    ):
        labels = facts.free
    if labels:
        return {labels[0] if facts.kind(labels[0]) == "list" else "": labels[0]}
    truth = dict(named[0].truth) if named else _soft_labels(facts, scores)
    if not truth:
        raise facts.error(Rule("column_of_labels", columns=other.names_in_file))
    return truth


def _soft_labels(facts: Facts, scores: Sequence[str]) -> dict[str, str]:
    """Map each class in the names of ``scores`` to the column of numbers that is named after it."""
    numbers = facts.by_kind(facts.free, "whole", "number") if facts.table.has_names else ()
    lower = {name.lower() for name in scores}
    classes = {name: name.lower() for name in numbers}
    # All columns of scores have the same affixes, which the first classes tell.
    first = islice(classes.values(), MAX_FAMILIES)
    around = {affix for name in first for affix in affixes(lower, name)[:MAX_FAMILIES]}
    return {
        name: name
        for name, text in classes.items()
        if any(f"{before}{text}{after}" in lower for before, after in around)
    }


def _ids_of(table: FileTable, reading: ReadOptions) -> list[Ids]:
    """Return the column that ``reading`` names, or the first columns whose names are usual for ids."""
    table.check_columns([reading.id_column], "--id-column")
    if reading.id_column is not None:
        return [(reading.id_column,)]
    names = [*filter(is_index, table.names)] if table.has_names else []
    return [(name,) for name in names[:MAX_IDS]]
