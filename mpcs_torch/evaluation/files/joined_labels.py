"""Join the labels of a separate file to a table, by ids or in order."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, product

import numpy as np
from numpy.typing import NDArray

from mpcs_torch.errors import Rule, listed, quoted
from mpcs_torch.evaluation.files.facts import Facts, affixes, label_text
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.label_columns import (
    MAX_FAMILIES,
    LabelColumns,
    label_candidates,
)
from mpcs_torch.evaluation.files.read_options import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.row_ids import (
    Ids,
    RowIds,
    check_as_many,
    shared_keys,
    trial_ids,
)
from mpcs_torch.evaluation.files.tables import Column, FileTable, choices, take_rows
from mpcs_torch.evaluation.files.words import is_index

MAX_IDS = 5
"""The maximum number of columns of ids in each file that are compared with those of the other file."""
COMPARED = 1000
"""The number of rows whose ids are compared to find the columns by which two files can be matched."""


def with_labels(
    table: FileTable, options: ReadOptions, scores: Sequence[str] = ()
) -> tuple[FileTable, Ids]:
    """Return ``table`` with the labels in the file ``options.labels``, and with groups that only that file has.

    If ``scores`` names the scores of a detector, this file is a list of trials, all of which must have a score. Also
    return the columns by which rows were matched: ``options.id_column``, else the ids of both files; see `join`.
    """
    if options.labels is None:
        return table, ()
    other = open_table(options.labels)
    is_list = bool(scores)
    labels = _labels_in(other, options, table, of_trials=is_list)
    groups = [
        name for name in options.columns if name in other.names and name not in table.names
    ]
    if scores:
        ours = trial_ids(table, scores, options, is_matched=True)
        theirs = trial_ids(other, labels.values(), options, is_matched=True)
    else:
        ours = _ids_of(table, options)
        theirs = _ids_of(other, options)
        if not (ours and theirs):
            ours = theirs = shared_keys(table, other, [*labels.values()])
    ids = ours, theirs
    may_lack = options.missing == "drop" or MATRIX in table.dialect
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
    our_ids: Ids = ()
    their_ids: Ids = ()
    if all(ids):
        our_ids, their_ids = best_match(table, other, *ids)
    theirs = other.read([*their_ids, *labels.values(), *groups])
    if not theirs.rows:
        raise PredictionsError(other.path, Rule("rows"))
    added = {name: name for name in groups}
    of_class = dict(labels)
    for class_name, name in labels.items():
        joined = name if other.has_names else "labels"
        while joined in table.names:
            joined += f" of {other.path.name}"
        added[joined] = name
        of_class[class_name] = joined
    if our_ids:
        by = quoted(" and ".join(our_ids))
        by_theirs = quoted(" and ".join(their_ids))
        if by_theirs != by:
            by += f" = {by_theirs}"
        labelled = RowIds.of(theirs, their_ids).check_different()
        rows_here = RowIds.of(table.read(our_ids), our_ids)
        if not may_lack:
            rows_here.all_among(labelled, Rule("or_drop"))
        places = rows_here.among(labelled)
        if is_list:
            labelled.all_among(rows_here.check_different())
    else:
        by = "the order of rows"
        rows = table.read(table.names[:1]).rows
        header = Rule("below_header", names=other.names) if other.has_names else ""
        check_as_many(other.path, theirs.rows, table.path, rows, header)
        places = np.arange(rows, dtype=np.int32)

    def load(
        wanted: Sequence[str], numbers: Collection[str], rows: int | None
    ) -> dict[str, Column]:
        inner = [name for name in wanted if name not in added]
        columns = table.load(inner, numbers, rows) if inner else {}
        # Of the joined columns, take as many rows as were read; without other columns, all.
        number = min(map(len, columns.values()), default=None)
        joined_columns = {
            name: take_rows(theirs.columns[added[name]], places[:number])
            for name in wanted
            if name in added
        }
        return columns | joined_columns

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
    return with_added, our_ids


def best_match(
    table: FileTable, other: FileTable, ours: Sequence[Ids], theirs: Sequence[Ids]
) -> tuple[Ids, Ids]:
    """Return the columns of ``table`` and of ``other`` that name the same rows.

    Columns that name each row of ``other`` once go before others, then columns with the same names, more columns, and
    columns with more names in common.

    Raises:
        PredictionsError: If no columns have names in common, or two pairs of columns match rows differently.
    """
    here = table.read([*chain(*ours)])
    there = other.read([*chain(*theirs)])
    # What speaks for a pair, compared from the left: each item decides if those before it are equal.
    best = (False, False, 0, 0)
    chosen: list[tuple[Ids, Ids]] = []
    all_places: list[NDArray[np.int32]] = []
    for our_ids, their_ids in product(ours, theirs):
        is_same = table.has_names and our_ids == their_ids
        size = len(our_ids)
        best_possible = (True, is_same, size, COMPARED)
        if size != len(their_ids) or best > best_possible:
            continue
        try:
            others = RowIds.of(there, their_ids)
            places = RowIds.of(here, our_ids).among(others)
        except PredictionsError:  # a row has no name
            continue
        common = int((places[:COMPARED] >= 0).sum())
        match = (not others.repeated(), is_same, size, common)
        if not common or match < best:
            continue
        if match > best:
            best = match
            chosen = []
            all_places = []
        chosen.append((our_ids, their_ids))
        all_places.append(places)
    if not chosen or any((places != all_places[0]).any() for places in all_places):
        name = table.path.name
        rule = Rule("ids_of_both", other=name, ids=[*there.columns], others=[*here.columns])
        raise PredictionsError(other.path, rule)
    return chosen[0]


def _labels_in(
    other: FileTable, options: ReadOptions, table: FileTable, *, of_trials: bool = False
) -> dict[str, str]:
    """Map "" to the column of labels in ``other``; without such a column, map each class to its column of soft labels.

    The columns of soft labels are named as such, or as the classes of the columns of ``table``, except for trials.
    """
    other.check_columns([options.label_column], "--label-column")
    taken = [*filter(is_index, other.names), *options.columns]
    of_labels = ReadOptions(
        label_column=options.label_column, target_label=options.target_label
    )
    facts = Facts(other, of_labels, None, taken, of_trials=of_trials)
    candidates = label_candidates(facts)
    named = [labels for labels in candidates if labels.is_named or of_trials]
    if not named and options.label_column is None:
        named = _differing(facts, table)
    if len(named) > 1:
        columns = [name for labels in named for name in labels.columns]
        ways = choices("--label-column", columns[:2])
        raise facts.error(Rule("one_column_of_labels", columns=columns, ways=ways))
    hard: Sequence[str] = named[0].hard if named else ()
    # A column without any other has the labels, unless it has a name and decimal numbers.
    has_scores = other.has_names and bool(facts.by_kind(facts.free, "number"))
    if not named and len(facts.free) == 1 and not has_scores:
        hard = facts.free
    if hard:
        column = hard[0]
        return {column if facts.kind(column) == "list" else "": column}
    scores = () if of_trials else table.names
    truth = dict(named[0].truth) if named else _soft_labels(facts, scores)
    if not truth:
        raise facts.error(Rule("column_of_labels", columns=other.names_in_file))
    return truth


def _differing(facts: Facts, table: FileTable) -> list[LabelColumns]:
    """Return the labels of a file with the columns of ``table``: the only column with other values than there."""
    other = facts.table
    if not (other.has_names and table.has_names) or {*other.names} != {*table.names}:
        return []
    theirs = table.peek()
    differing = []
    for name in other.names:
        texts = [label_text(value) for value in theirs[name]]
        if texts != facts.columns[name].labels:
            differing.append(LabelColumns(name))
    return differing if len(differing) == 1 else []


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


def _ids_of(table: FileTable, options: ReadOptions) -> list[Ids]:
    """Return the column that ``options`` names, or the first columns whose names are usual for ids."""
    table.check_columns([options.id_column], "--id-column")
    if options.id_column is not None:
        return [(options.id_column,)]
    names = [*filter(is_index, table.names)] if table.has_names else []
    return [(name,) for name in names[:MAX_IDS]]
