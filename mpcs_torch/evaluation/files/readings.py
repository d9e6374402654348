"""List every complete way to read a file: labels, classes, and scores or predicted labels."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import cycle
from typing import Any

import torch

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.called_classes import call_classes
from mpcs_torch.evaluation.files.decision_columns import CLASS, decided, decision_columns
from mpcs_torch.evaluation.files.facts import Facts
from mpcs_torch.evaluation.files.label_columns import (
    LabelColumns,
    label_candidates,
    split_truth,
)
from mpcs_torch.evaluation.files.one_probability import (
    is_saturated,
    of_one_class,
    probabilities,
)
from mpcs_torch.evaluation.files.roles import (
    CLASS_SCORES,
    DECIDED,
    PROBABILITY,
    UNNAMED,
    Reading,
    Roles,
)
from mpcs_torch.evaluation.files.score_sets import (
    chosen_columns,
    chosen_set,
    score_lists,
    score_sets,
)
from mpcs_torch.evaluation.files.trial_readings import trial_readings
from mpcs_torch.evaluation.files.words import (
    DECISION,
    IN_PAIRS,
    TRUE,
    is_label,
    predicted_thing,
    split_words,
    stem,
)
from mpcs_torch.functional.inputs.decisions import highest_class

MIN_BEST = 5
"""The minimum number of rows, in each of which the label has the highest score, by which labels seem predicted ones."""


def find_readings(facts: Facts) -> list[Reading]:
    """Return all ways to read a file, also those that are doubted, or that fail a test on the first rows."""
    readings: list[Reading] = []
    if facts.of_trials:
        of_trials = label_candidates(facts) if facts.needs_labels else [LabelColumns()]
        for labels in of_trials:
            readings += trial_readings(facts, labels)
        return readings
    candidates = label_candidates(facts)
    of_things = _by_thing(facts, candidates)
    for labels in candidates:
        others = [names for names in of_things.values() if labels.column not in names]
        of_others = set[str]().union(*others)
        for reading in _of_labels(facts, labels, of_others):
            roles = reading.roles._replace(label=labels.column)
            labelled = reading._replace(roles=roles)
            if labels.truth:
                readings.append(_with_truth(facts, labelled, labels.truth))
            else:
                readings.append(_doubted(facts, labelled, labels))
    return [*readings, *_turned(facts, readings)]


def _by_thing(
    facts: Facts, candidates: Sequence[LabelColumns]
) -> dict[tuple[str, ...], set[str]]:
    """Return the columns of each thing that has labels and predictions, such as ``reef_true`` and ``reef_prob``."""
    predicted = defaultdict[tuple[str, ...], set[str]](set)
    for name in facts.free:
        predicted[predicted_thing(name)].add(name)
    of_things = dict[tuple[str, ...], set[str]]()
    for labels in candidates:
        thing = () if labels.column is None else stem(labels.column, IN_PAIRS)
        if labels.column is not None and thing in predicted and thing:
            of_things[thing] = predicted[thing] | {labels.column}
    return of_things


def _turned(facts: Facts, readings: Sequence[Reading]) -> list[Reading]:
    """Return the reading of two columns of labels as each other, if neither values nor names say which are true."""
    unnamed = [
        one.roles for one in readings if one.doubt and one.doubt.code == "not_decisions"
    ]
    if len(unnamed) != 1 or facts.table.label or facts.options.label_column:
        return []
    [roles] = unnamed
    if not {*split_words(str(roles.label))} <= CLASS:
        return []  # another word says what the labels are
    return [
        turned._replace(roles=turned.roles._replace(label=roles.scores[0]))
        for turned in decided(
            facts, LabelColumns(roles.scores[0]), str(roles.label), UNNAMED
        )
    ]


def clear_readings(readings: Sequence[Reading]) -> list[Reading]:
    """Return the clear readings of the greatest strength; those that mean the same count once."""
    clear = [reading for reading in readings if reading.is_clear]
    top = max((reading.strength for reading in clear), default=UNNAMED)
    # A doubted reading with names that say more is not passed over in silence for a weaker one; nor are scores that sum
    # to 1, but are of other classes than the labels.
    for one in readings:
        is_doubted = one.broken is None and one.doubt is not None
        is_of_others = one.broken is not None and one.broken.code == "no_class"
        if (is_doubted or is_of_others) and one.strength > top:
            return []
    # Where labels may be missing, a reading with a column of labels is meant before one without.
    if any(reading.roles.label for reading in clear):
        clear = [reading for reading in clear if reading.roles.label or reading.roles.truth]
    by_meaning = dict[Any, Reading]()
    for reading in clear:
        if reading.strength == top:
            by_meaning.setdefault(meaning(reading.roles), reading)
    return [*by_meaning.values()]


def meaning(roles: Roles) -> tuple[Any, ...]:
    """Return what a reading says, so that two readings are the same if this is equal."""
    names = roles.called or roles.classes
    if roles.form == "positive":
        names = [names[roles.of_class]]
    # A single column, of lists, has the scores of all classes.
    pairs = [*zip(cycle(roles.scores), names, strict=False)]
    scores = tuple(pairs) if roles.form == "lists" else frozenset(pairs)
    return roles.form, roles.label, tuple(roles.truth), scores


def _of_labels(
    facts: Facts, labels: LabelColumns, of_others: Collection[str]
) -> Iterator[Reading]:
    """Yield the readings with these labels; the columns ``of_others`` have labels or predictions of other things."""
    options = facts.options
    used = {*labels.columns, *of_others}
    others = [name for name in facts.free if name not in used]
    is_written = facts.is_written and not options.score_columns
    if options.decision_column is not None or is_written:
        yield from decided(facts, labels, options.decision_column or DECISION, DECIDED)
        return
    decisions = decision_columns(facts, labels, others)
    named = [name for name, strength in decisions if strength > UNNAMED]
    if options.score_columns:
        yield from _chosen(facts, labels, others, named)
        return
    if labels.column is not None:
        # Whole numbers named as soft labels are one-hot labels beside the labels.
        others = [
            name for name in others if facts.kind(name) != "whole" or not split_truth(name)
        ]
    sets = score_sets(facts, labels, others, is_decided=bool(named))
    lists = [
        name
        for name in facts.by_kind(others, "list")
        if labels.truth or facts.width(name) > 1
    ]
    for reading in [*sets, *score_lists(facts, labels, lists)]:
        yield from call_classes(facts, reading, labels.hard)
    if not labels.truth:
        used = set[str]()
        for one in sets:
            sums_to_1 = one.broken is None or one.broken.code != "sums"
            if sums_to_1 or _covers(facts, one.roles, labels):
                used.update(one.roles.scores)
        # Whole numbers beside predicted labels are features, unless a name says that they are probabilities.
        single = [
            name
            for name in facts.by_kind(others, "number", "whole")
            if name not in used
            and not facts.is_counter(name)
            and (not named or facts.kind(name) == "number" or is_saturated(facts, name))
        ]
        yield from probabilities(facts, labels, single, named)
    for name, strength in decisions:
        yield from decided(facts, labels, name, strength)


def _chosen(
    facts: Facts, labels: LabelColumns, free: Sequence[str], decisions: Sequence[str]
) -> Iterator[Reading]:
    """Yield the readings of the columns that ``--score-columns`` names, and of predicted labels beside them."""
    names = chosen_columns(facts, free)
    if len(names) == 1 and facts.kind(names[0]) != "list":
        if labels.column is None and facts.class_names is None:
            raise facts.error(Rule("labels_of_one_score"))
        if facts.class_names is not None and len(facts.class_names) != 2:
            raise facts.error(
                Rule("score_of_two_classes", number=len(facts.class_names)), names[0]
            )
        yield from of_one_class(facts, labels, names[0], PROBABILITY, decisions)
    else:
        if len(names) == 1:
            [reading] = score_lists(facts, labels, names)
            roles = reading.roles
        else:
            roles = chosen_set(facts, labels, names)
        yield from call_classes(facts, Reading(roles, CLASS_SCORES), labels.hard)
    for name in decisions:
        if name not in facts.options.score_columns:
            yield from decided(facts, labels, name, DECIDED)


def _covers(facts: Facts, roles: Roles, labels: LabelColumns) -> bool:
    """Return whether the columns of ``roles`` are named after the labels, even if they do not sum to 1."""
    return labels.column is not None and facts.labels(labels.column) <= {*roles.classes}


def _with_truth(facts: Facts, reading: Reading, truth: Mapping[str, str]) -> Reading:
    """Return ``reading`` with the columns of soft labels in the order of its classes."""
    roles = reading.roles
    columns = [*truth.values()]
    if len(columns) == 1 and facts.kind(columns[0]) == "list":
        size = facts.width(columns[0])
        broken = reading.broken
        if size != len(roles.classes):
            broken = Rule("other_truth", truth=columns * size, classes=roles.classes)
        return reading._replace(roles=roles._replace(truth=columns), broken=broken)
    in_order = []
    for name, column in zip(roles.classes, roles.scores, strict=False):
        # Soft labels may be named after the class, or after the column of its score.
        key = name if name in truth else column
        if key in truth:
            in_order.append(truth[key])
    if len(in_order) < len(roles.classes) or len(truth) > len(in_order):
        problem = Rule("other_truth", truth=[*truth], classes=roles.classes)
        return reading._replace(broken=problem)
    return reading._replace(roles=roles._replace(truth=in_order))


def _doubted(facts: Facts, reading: Reading, labels: LabelColumns) -> Reading:
    """Return ``reading``; doubt it if only its values say that a column has the labels."""
    label = labels.column
    roles = reading.roles
    if label is None or facts.options.label_column == label:
        return reading
    if reading.doubt or reading.broken:
        return reading if labels.is_named else reading._replace(strength=UNNAMED)
    if not labels.is_named and not _are_classes(facts, label, roles):
        return reading._replace(strength=UNNAMED, doubt=Rule("not_labels", column=label))
    is_worded = (
        is_label(label) or stem(label, TRUE) != stem(label) or not facts.table.has_names
    )
    if labels.is_named and is_worded:
        return reading
    if facts.table.label is None and _is_best(facts, roles, label):
        return reading._replace(doubt=Rule("best_class", column=label))
    return reading


def _are_classes(facts: Facts, label: str, roles: Roles) -> bool:
    """Return whether a column that no name calls labels has only names of classes; without a header also numbers."""
    texts = facts.texts(label)
    if roles.form not in ("columns", "lists"):
        return False
    if facts.kind(label) == "text":
        return texts <= {*roles.classes}
    # Numbers of which each stands once number the rows.
    is_repeated = len(texts) < len(facts.columns[label].values)
    return not facts.table.has_names and is_repeated


def _is_best(facts: Facts, roles: Roles, label: str) -> bool:
    """Return whether there are at least `MIN_BEST` labels, and each is the class with the highest score in its row."""
    labels = facts.columns[label].labels
    scores = facts.matrix(roles.scores)
    if roles.form != "columns" or len(scores) != len(labels) or len(labels) < MIN_BEST:
        return False
    highest = highest_class(torch.from_numpy(scores))[1].tolist()
    return labels == [roles.classes[place] for place in highest]
