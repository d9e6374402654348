"""Find the columns with the probability of one of two classes, and the class that each is of."""

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.called_classes import call_classes
from mpcs_torch.evaluation.files.decision_columns import paired_decision
from mpcs_torch.evaluation.files.facts import Facts, label_text, number_or_text
from mpcs_torch.evaluation.files.label_columns import LabelColumns
from mpcs_torch.evaluation.files.roles import (
    PROBABILITY,
    UNNAMED,
    Reading,
    Roles,
    label_numbers,
)
from mpcs_torch.evaluation.files.score_sets import is_in_unit
from mpcs_torch.evaluation.files.words import (
    IN_PAIRS,
    LABELS,
    NO_PROBABILITY,
    POSITIVE,
    PREDICTED,
    SCORED,
    TRUE,
    is_positive,
    plain,
    split_words,
    stem,
)


def probabilities(
    facts: Facts, labels: LabelColumns, names: Sequence[str], decisions: Sequence[str]
) -> Iterator[Reading]:
    """Yield the readings of each column in ``names`` that may have the probability of one of two classes.

    ``decisions`` are the columns of predicted labels, which show the class that a probability is of.
    """
    known = facts.class_names
    label = labels.column
    if (known is None and label is None) or (known is not None and len(known) != 2):
        return
    is_binary = known is not None
    if known is None and label is not None:
        is_binary = len(facts.labels(label)) <= 2
    thing = () if label is None else stem(label, IN_PAIRS)
    own = [name for name in names if stem(name, PREDICTED) == thing != ()]
    # Beside is_fraud and fraud_probability, the probability of another thing is a feature, or of other labels.
    for name in facts.by_kind(own or names, "number", "whole"):
        # Such as a distance, or the confidence of the predicted label.
        if {*split_words(name)} & NO_PROBABILITY:
            continue
        strength = name_strength(facts, labels, name)
        is_possible = (
            is_binary and facts.kind(name) == "number" and _is_in_range(facts, name)
        )
        if strength > UNNAMED or is_possible:
            yield from of_one_class(facts, labels, name, strength, decisions)


def of_one_class(
    facts: Facts, labels: LabelColumns, name: str, strength: int, decisions: Sequence[str]
) -> Iterator[Reading]:
    """Yield readings of ``name`` as the probability of one class: the class in its name, or that predicted labels say.

    Without either, it is the probability of 1, of a positive word, or of the last class that the user named; and of
    other classes, either.
    """
    label = labels.column
    roles = Roles(
        "positive", [name], facts.class_names or (), is_percent=_is_percent(facts, name)
    )
    doubt = None if strength > UNNAMED else Rule("not_probability", column=name)
    if facts.class_names is None and label is not None:
        classes, broken = _two_labels(facts, name, label)
        roles = roles._replace(classes=classes)
        if broken is not None:
            yield Reading(roles, strength, broken=broken)
            return
    # Predicted labels can be measured instead; without them, reading the rows names the first score beyond the range.
    if decisions and not facts.options.from_logits and not _is_in_range(facts, name):
        yield Reading(roles, strength, broken=Rule("beyond", column=name))
        return
    above = _above_half(facts, roles, label)
    if above is not None and doubt is None:
        strength = UNNAMED  # its name says nothing about the class
    doubt = doubt or above
    beside = paired_decision(name, decisions)
    shown = [0, 1] if beside is None else shown_classes(facts, roles, beside)
    if not shown and name in facts.options.score_columns:
        shown, beside = [0, 1], None  # the decisions are those of another score
    if not shown:
        broken = Rule("unordered", column=name, decision=beside)
        yield Reading(roles, strength, broken=broken)
        return
    of_class = _class_of(facts, roles, shown)
    if of_class is None:
        doubt = doubt or Rule("which_class", column=name)
        for order in (roles.classes, roles.classes[::-1]):
            yield Reading(roles._replace(classes=tuple(order)), strength, doubt)
        return
    is_shown = beside is not None or bool(_named_classes(facts, roles))
    reading = Reading(roles._replace(of_class=of_class, is_shown=is_shown), strength, doubt)
    if facts.class_names is None:  # the classes are the labels
        yield reading
    else:
        yield from call_classes(facts, reading, labels.hard)


def _class_of(facts: Facts, roles: Roles, shown: Sequence[int]) -> int | None:
    """Return the index of the class that a single column has the probability of; None if nothing tells it.

    The first of these tells it: the name of the column; the only class that is ``shown``, because predicted labels are
    ordered by the column; and the last class, if the user named the classes, or if the other one is its negation, as 0
    and 1 are.
    """
    named = _named_classes(facts, roles)
    if named:
        return named[0]
    if len(shown) == 1:
        return shown[0]
    is_last_positive = [*map(is_positive, roles.classes)] == [False, True]
    return 1 if facts.class_names is not None or is_last_positive else None


def _named_classes(facts: Facts, roles: Roles) -> list[int]:
    """Return the indices of the classes in the name of a single column of scores."""
    name = roles.scores[0]
    return facts.named_class(name, facts.called) + facts.named_class(name, roles.classes)


def name_strength(facts: Facts, labels: LabelColumns, name: str) -> int:
    """Return how strongly the name of a column says that it has the probability of one class."""
    words = {*split_words(name)}
    label = labels.column
    usual = POSITIVE | LABELS if facts.table.joined else POSITIVE
    of_label = (
        label is not None
        and bool(words & PREDICTED)
        and stem(name, PREDICTED) == stem(label, TRUE) != ()
    )
    classes = facts.class_names or ([] if label is None else [*facts.texts(label)])
    has_fractions = facts.kind(name) == "number"
    is_worded = is_saturated(facts, name) or (has_fractions and bool(words & POSITIVE))
    is_usual = plain(name) in usual or of_label or bool(facts.named_class(name, classes))
    return PROBABILITY if is_usual or is_worded else UNNAMED


def is_saturated(facts: Facts, name: str) -> bool:
    """Return whether a column is called one of scores and has 0 and 1 alone, as some trees predict."""
    is_scored = not SCORED.isdisjoint(split_words(name))
    return is_scored and facts.kind(name) == "whole" and is_in_unit(facts, name)


def _is_in_range(facts: Facts, name: str) -> bool:
    """Return whether the numbers of a column in the first rows may be probabilities, or percentages."""
    return is_in_unit(facts, name) or _is_percent(facts, name)


def _is_percent(facts: Facts, name: str) -> bool:
    """Return whether a single column has percentages: its values have the sign, or its name says so."""
    scores = facts.matrix([name])
    has_sign = any(str(value).strip().endswith("%") for value in facts.columns[name].values)
    is_beyond = bool(len(scores)) and bool(scores.max() > 1)
    return has_sign or (is_beyond and ("%" in name or "percent" in name.lower()))


def _above_half(facts: Facts, roles: Roles, label: str | None) -> Rule | None:
    """Return the doubt that no score is below one half: it may be the score of the predicted label."""
    if (
        facts.options.classes
        or facts.options.from_logits
        or (label is not None and len(facts.texts(label)) < 2)
    ):
        return None
    scores = facts.matrix(roles.scores)
    half = 50 if roles.is_percent else 0.5
    is_high = len(scores) > 3 and scores.min() >= half and scores.max() <= 2 * half
    return Rule("above_half", column=roles.scores[0]) if is_high else None


def shown_classes(facts: Facts, roles: Roles, decision: str) -> list[int]:
    """Return the classes whose probability a score may be: high where ``decision`` predicts the class, low elsewhere.

    Predicted labels that are alike, or no classes, show nothing: both are possible. None is possible if the score does
    not order the predicted labels.
    """
    scores = facts.columns[roles.scores[0]].numbers
    class_number = label_numbers(roles, has_signs=True)
    predicted = np.array([*map(class_number, facts.columns[decision].labels)])
    is_known = ~np.isnan(scores)
    first = scores[(predicted == 0) & is_known]
    last = scores[(predicted == 1) & is_known]
    if not len(first) or not len(last):
        return [0, 1]
    possible = []
    if last.max() <= first.min():
        possible.append(0)
    if first.max() <= last.min():
        possible.append(1)
    return possible


def _two_labels(
    facts: Facts, score: str, label: str
) -> tuple[tuple[str, ...], Rule | None]:
    """Return the two labels in the column ``label``, the positive class last; or the problem that they are not two."""
    known = facts.all_texts(label)
    classes = known if len(known) <= 2 else facts.labels(label, in_all=True)
    if classes <= {"0", "1"}:
        return ("0", "1"), None
    names = tuple(sorted(classes, key=number_or_text))
    if len(names) == 2:
        if [*map(is_positive, names)] == [True, False]:
            names = names[::-1]
        return names, None
    if len(names) == 1:
        return names, Rule("one_label", column=label, labels=names)
    values = facts.table.read([label]).columns[label].to_pylist()
    rows = Counter(map(label_text, values))
    rare = min(names, key=lambda name: rows[name])
    return names, Rule(
        "many_labels", column=label, score=score, labels=names, rare=rare, number=rows[rare]
    )
