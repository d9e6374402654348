"""Assign roles such as scores and labels to a classifier's columns; labels may come from a second file."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice
from typing import get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.open_columns import (
    OpenColumns,
    Roles,
    classes_by_place,
    first_number,
    label_text,
    numbered_families,
    split_truth,
)
from mpcs_torch.evaluation.files.reading import PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.score_columns import affixes, assign_scores, by_class
from mpcs_torch.evaluation.files.tables import Column, FileTable, Kind, RowIds, listed, shared_ids, to_number, way
from mpcs_torch.evaluation.files.words import (
    DECISION,
    DECISIONS,
    LABELS,
    WRITTEN,
    is_index,
    named_as,
    plain,
    target_or_not,
)
from mpcs_torch.functional.inputs.decisions import highest_class

MAX_FAMILIES = 10
"""The number of prefixes, such as ``target_``, and of classes, whose columns are compared with all other columns."""


def assign_roles(
    table: FileTable,
    reading: ReadOptions,
    *,
    class_names: Sequence[str] | None = None,
    needs_labels: bool = True,
    texts: Sequence[str] = (),
) -> Roles:
    """Assign roles, such as scores and labels, to the columns of ``table``; refuse missing labels if ``needs_labels``.

    ``class_names`` are the classes in index order, if known. ``texts`` are columns with another use, such as groups.
    """
    table.check_columns([reading.label_column] * (reading.labels is None), "--label-column")
    for option in ("decision_column", "id_column", "by", "cluster", "crossed", "weight", "frequency", "unit"):
        value = getattr(reading, option)
        table.check_columns(value if option == "by" else [value], f"--{option.replace('_', '-')}")
    table.check_columns(reading.cost_columns, "--cost-columns")
    _check_uses(table, reading, [table.label or reading.label_column, reading.decision_column])
    columns = OpenColumns(table, reading, class_names)
    columns.exclude([*texts, *(WRITTEN[1:] if columns.is_written else ())])
    label = table.label or reading.label_column
    truth = {} if label is not None else table.truth or _truth(columns)
    if label is None and not table.truth and (needs_labels or table.has_names):
        label = _label(columns, [*truth.values()])
    if label is None and not truth and not needs_labels:  # an empty column for labels
        label = next(iter(columns.by_kind("empty", among=named_as(columns.open, LABELS))), None)
    truth = truth if label is None else {}
    of_labels = [*truth.values(), *([] if label is None else [label])]
    both = next((name for name in (*reading.score_columns, reading.decision_column) if name in of_labels), None)
    if both is not None:
        raise columns.error("cannot be labels and predictions, too", column=both)
    columns.exclude(of_labels)
    decisions = [reading.decision_column] if reading.decision_column else _decisions(columns)
    roles = assign_scores(columns, label, truth, decisions)
    if columns.class_names is None and not table.has_names and roles.form == "columns":
        roles = roles._replace(classes=classes_by_place(columns, label, len(roles.scores)))
    if label is None and not truth:
        scores = {*roles.scores}
        unread = [name for name in named_as(columns.open, LABELS) if name not in scores]
        if len(named := _labels_by_value(columns, roles) or (unread if needs_labels else [])) == 1:
            label = named[0]  # bad values in this column are reported when its rows are read
            if plain(label) not in LABELS and _is_best(columns, roles, label):
                problem = f"has {quoted(label)}, always the class of the highest score: are these the predicted labels?"
                ways = f"{way('--label-column', [label])} takes it for the labels, --labels FILE gives a file of labels"
                raise columns.error(f"{problem} {ways}")
        elif needs_labels:
            _check_uses(table, reading, named_as(reading.columns, LABELS))
            read = f" ({table.dialect})" if table.dialect else ""
            has = f"has no column of labels that is known by its name{read}; {table.it_has()}"
            raise columns.error(f"{has}: --label-column COLUMN names it, --labels FILE gives a file of labels")
    used = {*roles.scores, *truth.values(), label, *reading.columns, *texts}
    roles = roles._replace(label=label, unused=[name for name in table.names if name not in used])
    roles = roles._replace(first_scores=columns.matrix(roles.scores))
    if truth:
        lists = len(truth) == 1 and columns.kinds[next(iter(truth.values()))] == "list"
        names = [name if name in truth else column for name, column in zip(roles.classes, roles.scores, strict=False)]
        in_order = list(truth.values()) if lists else [truth[name] for name in names if name in truth]
        if not lists and (len(in_order) < len(roles.classes) or len(truth) > len(in_order)):
            problem = f"has degrees of truth for {listed([*truth])}, but scores for {listed(roles.classes)}"
            raise columns.error(problem)
        return roles._replace(truth=in_order)
    return _with_called(columns, roles, label)


def _check_uses(table: FileTable, reading: ReadOptions, names: Sequence[str | None]) -> None:
    """Raise an error if ``reading`` also uses a column in ``names`` for groups, clusters, units or ids."""
    for name in names:
        if name is not None and name in reading.columns:
            raise PredictionsError(table.path, f"column {quoted(name)} cannot be labels and name groups or rows, too")


def _label(columns: OpenColumns, truth: Sequence[str]) -> str | None:
    """Return the column with a usual name for labels, or None if it is missing or in ``truth``; refuse several."""
    if not columns.table.has_names:
        whole = columns.by_kind("whole", "text")
        return whole[0] if len(whole) == 1 and columns.by_kind("number", "list") else None
    known = {*(columns.class_names or ())}
    among = [name for name in columns.open if name not in known or columns.kinds[name] == "text"]
    among = [name for name in among if name != columns.options.decision_column]
    label = columns.label_among(among, "text", "whole")
    return None if label in truth else label


def _truth(columns: OpenColumns) -> dict[str, str]:
    """Map each class to its column of soft labels, such as ``target_a``. A single column of lists maps to itself."""
    lists = columns.by_kind("list", among=named_as(columns.open, LABELS))
    if lists:
        return {lists[0]: lists[0]}
    families = defaultdict[str, dict[str, str]](dict)
    for name in columns.by_kind("whole", "number"):
        if parts := split_truth(name):
            families[parts[0]][parts[1]] = name
    numeric, kept = columns.by_kind("whole", "number"), list[dict[str, str]]()
    for family in sorted(families.values(), key=len)[-MAX_FAMILIES:]:
        own = {*family.values()}
        others = [name for name in numeric if name not in own]
        is_numbered = any({*numbers} == {*family} for _, numbers in numbered_families(others))
        if len(family) == 1:  # a single class, such as the columns rain and target_rain
            [(class_name, name)] = family.items()
            kept += [family] if class_name in others and plain(name) not in LABELS else []
        elif is_numbered or any(True for _ in by_class(others, list(family))):
            kept.append(family)
    return max(kept, key=len, default=dict[str, str]())


def _decisions(columns: OpenColumns) -> list[str]:
    """Return the columns that are named as predicted labels; in a file of `mpcs decide apply`, only ``decision``.

    If the true labels come from another file, a column named as labels counts as predicted labels.
    """
    known = named_as(columns.open, DECISIONS) or named_as(columns.open if columns.table.joined else [], LABELS)
    if columns.is_written and DECISION in known:  # even if all classes look like missing values, such as none
        return [DECISION]
    return columns.by_kind("text", "whole", among=known)


def _labels_by_value(columns: OpenColumns, roles: Roles) -> list[str]:
    """Return the columns of text whose values are all class names, except columns named as predicted labels.

    If the file has no header, its only other column may also have numbers of classes.
    """
    scores = {*roles.scores}
    texts = [name for name in columns.by_kind("text") if name not in scores and plain(name) not in DECISIONS]
    labels = [name for name in texts if columns.texts(name) <= {*roles.classes}]
    others = [] if columns.table.has_names else columns.by_kind("whole", "text")
    if len(others) == 1 and others[0] not in scores and _are_numbers(columns, others[0], roles.classes):
        return others
    return labels


def _are_numbers(columns: OpenColumns, name: str, classes: Sequence[str]) -> bool:
    """Return whether the values of a column repeat, and are clearly numbers of classes: with 0, or from 1 to the last.

    If the classes themselves are called by numbers, the values must be among these.
    """
    texts, size = columns.texts(name), len(classes)
    from_0, from_1 = ({*map(str, range(first, first + size))} for first in (0, 1))
    is_clear = ("0" in texts and texts <= from_0) or (str(size) in texts and texts <= from_1)
    is_called = texts <= {*classes} or all(to_number(each) is None for each in classes)
    return is_clear and is_called and len(texts) < len(columns.values[name])


def _is_best(columns: OpenColumns, roles: Roles, label: str) -> bool:
    """Return whether there are at least five labels, and each is the class with the highest score in its row."""
    labels, scores = [label_text(value) for value in columns.values[label]], columns.matrix(roles.scores)
    if roles.form != "columns" or len(scores) != len(labels) or len(labels) < 5:
        return False
    return labels == [roles.classes[place] for place in highest_class(torch.from_numpy(scores))[1].tolist()]


def _with_called(columns: OpenColumns, roles: Roles, label: str | None) -> Roles:
    """Return ``roles`` with ``called``, the names that labels use for the classes: given by the user, or numbers."""
    if columns.called:
        return roles._replace(called=columns.called)
    named = [*([] if label is None else [label]), *(roles.scores if roles.form == "decisions" else ())]
    numbered = [name for name in columns.by_kind("whole", among=named) if not columns.texts(name) <= {*roles.classes}]
    if not numbered or all(to_number(name) is not None for name in roles.classes):
        return roles
    if roles.form == "decisions" and columns.class_names is None:
        return roles
    family = next((numbers for each, numbers in numbered_families(roles.scores) if {*each} == {*roles.scores}), None)
    if family is not None and columns.table.has_names:
        return roles._replace(called=family)
    scores = roles.scores if roles.form == "columns" else ()
    first = first_number(columns, numbered, len(roles.classes), scores)
    if columns.class_names is None and not columns.options.score_columns:
        polarities = [target_or_not(name) for name in roles.classes]
        if first == 1 or {*polarities} != {0, 1}:
            ways = f"{way('--score-columns', roles.scores)} names the columns in the order of their classes"
            problem = f"has labels that are numbers, and classes that have names: which class is {first}? {ways}"
            raise columns.error(problem, column=label)
        if polarities == [1, 0]:
            roles = roles._replace(scores=roles.scores[::-1], classes=roles.classes[::-1])
    return roles._replace(called=[str(first + place) for place in range(len(roles.classes))])


def with_labels(table: FileTable, reading: ReadOptions) -> FileTable:
    """Return ``table`` with the labels in the file ``reading.labels``, and with groups that only that file has.

    Rows are matched by ``reading.id_column``, else by the only column of ids in both files. If either file has no ids,
    rows are matched in order. An added column is renamed if the table already has a column with its name.
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
        joined = name if other.has_names else "labels"
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
    """Map "" to the column of labels in ``other``; without such a column, map each class to its column of soft labels.

    The column of labels is ``reading.label_column``, or has a usual name for labels, or is the only column.
    """
    other.check_columns([reading.label_column], "--label-column")
    columns = OpenColumns(other, ReadOptions(), None)
    columns.exclude([name for name in other.names if name in (identifier, *reading.columns) or is_index(name)])
    label = reading.label_column or columns.label_among(columns.open, *get_args(Kind))
    if label is None and len(columns.open) == 1 and (not other.has_names or not columns.by_kind("number")):
        label = columns.open[0]
    if label is not None:
        return {label if columns.kinds[label] == "list" else "": label}
    numbers = columns.by_kind("whole", "number") if other.has_names else ()
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
        raise columns.error(f"{has}: --label-column COLUMN names it")
    return truth


def _shared_id(table: FileTable, other: FileTable) -> str | None:
    """Return the column of ids that both tables have; None if a table has no ids.

    If both tables have ids, but share no column of ids or several, raise a PredictionsError.
    """
    shared = shared_ids([table, other])
    theirs, ours = shared_ids([other]), shared_ids([table])
    if len(shared) == 1 or not theirs or not ours:
        return shared[0] if shared else None
    has = f"has the ids {listed(theirs)}, and {table.path.name} {listed(ours)}"
    raise PredictionsError(other.path, f"{has}: name a column of both by --id-column, or leave out those of the labels")


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
