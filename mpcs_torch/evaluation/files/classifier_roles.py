"""Assign roles such as scores and labels to the columns of a classifier's file, by their names and values.

A number in the name of a column is the number of its class. A file with two possible readings is refused.
"""

from collections import defaultdict
from collections.abc import Sequence

import torch

from mpcs_torch.errors import quoted
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
from mpcs_torch.evaluation.files.score_columns import assign_scores, by_class
from mpcs_torch.evaluation.files.tables import FileTable, listed, number_of, way
from mpcs_torch.evaluation.files.words import DECISION, DECISIONS, LABELS, WRITTEN, named_as, plain, polarity_of
from mpcs_torch.functional.inputs.most_probable import highest_class


def assign_roles(
    table: FileTable,
    reading: ReadOptions,
    *,
    class_names: Sequence[str] | None = None,
    needs_labels: bool = True,
    texts: Sequence[str] = (),
) -> Roles:
    """Assign roles to the columns of a table.

    Args:
        table: The table.
        reading: The options of the user.
        class_names: The classes in order, if they are known (from a concern, for example).
        needs_labels: Whether a table without labels is refused.
        texts: Columns with another use, such as groups.
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
    if label is None and not truth and not needs_labels:  # a column of labels that are filled later
        label = next(iter(columns.of_kind("empty", among=named_as(columns.open, LABELS))), None)
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
        unread = [name for name in named_as(columns.open, LABELS) if name not in roles.scores]
        if len(named := _labels_by_value(columns, roles) or (unread if needs_labels else [])) == 1:
            label = named[0]  # a column named as labels but not used has bad values: reading its rows reports them
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
    """Refuse a column of labels that is also the column of groups, clusters, units or ids."""
    for name in names:
        if name is not None and name in reading.columns:
            raise PredictionsError(table.path, f"column {quoted(name)} cannot be labels and name groups or rows, too")


def _label(columns: OpenColumns, truth: Sequence[str]) -> str | None:
    """Return the column that is named as labels, or None if there is none or it is in ``truth``; refuse several."""
    if not columns.table.has_names:
        whole = columns.of_kind("whole", "text")
        return whole[0] if len(whole) == 1 and columns.of_kind("number", "list") else None
    known = {*(columns.class_names or ())}
    among = [name for name in columns.open if name not in known or columns.kinds[name] == "text"]
    among = [name for name in among if name != columns.options.decision_column]
    label = columns.label_among(among, "text", "whole")
    return None if label in truth else label


def _truth(columns: OpenColumns) -> dict[str, str]:
    """Return the columns of degrees of truth or votes, by class: names like ``target_a``, or lists named as labels."""
    lists = columns.of_kind("list", among=named_as(columns.open, LABELS))
    if lists:
        return {lists[0]: lists[0]}
    families = defaultdict[str, dict[str, str]](dict)
    for name in columns.of_kind("whole", "number"):
        if parts := split_truth(name):
            families[parts[0]][parts[1]] = name
    numeric, kept = columns.of_kind("whole", "number"), list[dict[str, str]]()
    for family in families.values():
        others = [name for name in numeric if name not in family.values()]
        is_numbered = any({*numbers} == {*family} for _, numbers in numbered_families(others))
        if len(family) == 1:  # a single class, such as the columns rain and target_rain
            [(class_name, name)] = family.items()
            kept += [family] if class_name in others and plain(name) not in LABELS else []
        elif is_numbered or any(True for _ in by_class(others, list(family))):
            kept.append(family)
    return max(kept, key=len, default=dict[str, str]())


def _decisions(columns: OpenColumns) -> list[str]:
    """Return the columns that are named as predicted labels; only ``decision`` if `mpcs decide apply` wrote the file.

    If the labels come from another file, a column that is named as labels has predicted labels.
    """
    known = named_as(columns.open, DECISIONS) or named_as(columns.open if columns.table.joined else [], LABELS)
    named = columns.of_kind("text", "whole", among=known)
    return [DECISION] if DECISION in named and columns.is_written else named


def _labels_by_value(columns: OpenColumns, roles: Roles) -> list[str]:
    """Return the columns of text whose values are all classes, except those named as predicted labels."""
    texts = [name for name in columns.of_kind("text") if name not in roles.scores and plain(name) not in DECISIONS]
    return [name for name in texts if columns.texts(name) <= {*roles.classes}]


def _is_best(columns: OpenColumns, roles: Roles, label: str) -> bool:
    """Return whether there are at least five rows and each label is the class of the highest score."""
    labels, scores = [label_text(value) for value in columns.values[label]], columns.matrix(roles.scores)
    if roles.form != "columns" or len(scores) != len(labels) or len(labels) < 5:
        return False
    return labels == [roles.classes[place] for place in highest_class(torch.from_numpy(scores))[1].tolist()]


def _with_called(columns: OpenColumns, roles: Roles, label: str | None) -> Roles:
    """Return ``roles`` with ``called`` set to the names of the classes in the labels: the user's names, or numbers."""
    if columns.called:
        return roles._replace(called=columns.called)
    named = [*([] if label is None else [label]), *(roles.scores if roles.form == "decisions" else ())]
    numbered = [name for name in columns.of_kind("whole", among=named) if not columns.texts(name) <= {*roles.classes}]
    if not numbered or all(number_of(name) is not None for name in roles.classes):
        return roles
    if roles.form == "decisions" and columns.class_names is None:
        return roles
    family = next((numbers for each, numbers in numbered_families(roles.scores) if {*each} == {*roles.scores}), None)
    if family is not None and columns.table.has_names:
        return roles._replace(called=family)
    scores = roles.scores if roles.form == "columns" else ()
    first = first_number(columns, numbered, len(roles.classes), scores)
    if columns.class_names is None and not columns.options.score_columns:
        polarities = [polarity_of(name) for name in roles.classes]
        if first == 1 or {*polarities} != {0, 1}:
            ways = f"{way('--score-columns', roles.scores)} names the columns in the order of their classes"
            problem = f"has labels that are numbers, and classes that have names: which class is {first}? {ways}"
            raise columns.error(problem, column=label)
        if polarities == [1, 0]:
            roles = roles._replace(scores=roles.scores[::-1], classes=roles.classes[::-1])
    return roles._replace(called=[str(first + place) for place in range(len(roles.classes))])
