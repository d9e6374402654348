"""Find the columns with predicted labels, and the classes of these."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from mpcs_torch.concern.checks import REFERRAL
from mpcs_torch.errors import Rule
from mpcs_torch.evaluation.files.called_classes import call_classes
from mpcs_torch.evaluation.files.facts import Facts, number_or_text
from mpcs_torch.evaluation.files.label_columns import LabelColumns
from mpcs_torch.evaluation.files.roles import DECIDED, UNNAMED, Reading, Roles
from mpcs_torch.evaluation.files.tables import to_number
from mpcs_torch.evaluation.files.words import (
    DECISIONS,
    LABELS,
    MISSING,
    NO_DECISION,
    PREDICTED,
    SIGNS,
    TRUE,
    plain,
    predicted_thing,
    shorter_names,
    signed_labels,
    split_words,
    stem,
)

WORDS = DECISIONS | {"pred", "predicted"}
CLASS = frozenset(("label", "class"))
"""Words in the name of a column that say that it has labels, but not whether they are true ones."""

MIN_ABOVE_CHANCE = 4
"""How many times as many rows as by chance must have the label of another column, if both have labels of their own."""
MAX_ALIKE = 20
"""The maximum number of columns without a telling name that are tried as predicted labels by their values."""


def decision_columns(
    facts: Facts, labels: LabelColumns, names: Sequence[str]
) -> list[tuple[str, int]]:
    """Return the columns that may have predicted labels, with their strength: by name, or only by their values.

    If the labels come from another file, a column named as labels has predicted labels.
    """
    label = labels.column
    columns = [
        name
        for name in facts.by_kind(names, "text", "whole")
        if facts.texts(name) and NO_DECISION.isdisjoint(split_words(name))
    ]
    usual = DECISIONS | LABELS if facts.table.joined else DECISIONS
    own: tuple[str, ...] = () if label is None else stem(label, TRUE)
    named = list[str]()
    for name in columns:
        words = {*split_words(name)}
        is_of_label = stem(name, PREDICTED) == own != () and stem(name) != own
        is_worded = words & WORDS and not words & (TRUE - CLASS)
        if (
            plain(name) in usual
            or is_of_label
            or (is_worded and (label is None or _may_be_equal(facts, name, label)))
        ):
            named.append(name)
    if not named and facts.table.joined and len(names) == 1:
        named = columns  # the labels are in the other file
    if not named and label is not None:
        # What the names of scores say beside words such as score: lr of lr_score.
        of_scores = {*map(predicted_thing, names)}
        worded = [name for name in columns if _is_of_model(facts, name, label)]
        # One score is enough to say that the others are labels of models, too.
        if any(stem(name, TRUE) in of_scores for name in worded):
            named = worded
    found = [(name, DECIDED) for name in named]
    if label is None or len(facts.labels(label)) < 2:
        return found
    of_label = {*split_words(label)}
    # A test compares expected with actual results, either of which may be a model's; they may all be equal.
    alike = (
        name
        for name in columns
        if name not in named
        and not facts.is_counter(name)
        and (
            _is_alike(facts, name, label)
            or {*split_words(name)} ^ of_label == {"expected", "actual"}
        )
    )
    by_value = [*islice(alike, MAX_ALIKE)]
    # Where a column is called as the label with more words, in any language, the others are features.
    own_words = tuple(split_words(label))
    twins = [name for name in by_value if own_words in shorter_names(name)]
    return [*found, *((name, UNNAMED) for name in twins or by_value)]


def _may_be_equal(facts: Facts, name: str, label: str) -> bool:
    """Return whether two columns have a text in common, in any case, or one has two words, the other two numbers."""
    texts = {text.lower() for text in facts.texts(name)}
    others = {text.lower() for text in facts.texts(label)}
    are_recoded = facts.kind(name) != facts.kind(label) and len(texts) == len(others) == 2
    return are_recoded or not texts.isdisjoint(others)


def _is_of_model(facts: Facts, name: str, label: str) -> bool:
    """Return whether a column is called label of something, as lr_label, and has true labels."""
    own = stem(name, TRUE)
    is_worded = own == stem(name, CLASS) not in ((), stem(name), stem(label, TRUE))
    return is_worded and not facts.texts(name).isdisjoint(facts.texts(label))


def _is_alike(facts: Facts, name: str, label: str) -> bool:
    """Return whether a column has the values of the labels: the same in some rows, but not in all.

    A column of a few classes in the first rows may have all classes in all rows. Texts may be some of the labels; and a
    model may predict a class that the labels lack.
    """
    own, texts = facts.labels(name), facts.labels(label)
    pairs = [*zip(facts.columns[name].labels, facts.columns[label].labels, strict=True)]
    equal = sum(one == other for one, other in pairs)
    if equal in (0, len(pairs)):
        return False
    if own == texts or not own & texts:
        return own == texts
    own = facts.labels(name, in_all=True)
    texts = facts.labels(label, in_all=True)
    if facts.kind(name) == "text" and len(own) > 1 and own <= texts:
        return True
    are_most_shared = 2 * len(own & texts) >= len(own | texts)
    if are_most_shared and len(own) >= len(texts) > 1:
        return True
    return _are_often_equal(facts, name, label, equal)


def _are_often_equal(facts: Facts, name: str, label: str, equal: int) -> bool:
    """Return whether two columns of many classes, of which each has some alone, are equal far above chance."""
    own, texts = facts.texts(name), facts.texts(label)
    decisions, labels = facts.columns[name].labels, facts.columns[label].labels
    are_repeated = 2 * max(len(own), len(texts)) <= len(labels)
    counts = Counter(labels)
    by_chance = sum(counts[text] for text in decisions) / len(labels)
    is_above_chance = equal >= MIN_ABOVE_CHANCE * by_chance
    return are_repeated and is_above_chance and 2 * len(own & texts) >= len(texts)


def decided(
    facts: Facts, labels: LabelColumns, decision: str, strength: int
) -> Iterator[Reading]:
    """Yield the readings of a column of predicted labels. Without known classes, all labels are classes."""
    doubt = None if strength > UNNAMED else Rule("not_decisions", column=decision)
    names = [decision, *labels.hard]
    if facts.class_names is not None:
        roles = Roles("decisions", [decision], tuple(facts.class_names))
        yield from call_classes(facts, Reading(roles, strength, doubt), names)
        return
    texts = facts.all_texts(decision)
    known = texts if labels.column is None else facts.all_texts(labels.column)
    if not labels.is_named and len(known) == 1 and known.isdisjoint(texts):
        return  # a constant, such as a topic
    by_lower = {text.lower(): text for text in known}
    if len(by_lower) == len(known):  # yes is Yes, if no two labels differ so
        texts = {by_lower.get(text.lower(), text) for text in texts}
    signs, called = signed_labels(known), signed_labels(texts)
    is_recoded = texts.isdisjoint(known) and {*map(str.lower, texts)} <= {*SIGNS}
    if signs and called and is_recoded:
        texts = {*signs}  # true is 1
    else:
        called = ()
    classes = [
        name
        for name in sorted(texts | known, key=number_or_text)
        if name.lower() not in MISSING
    ]
    roles = Roles("decisions", [decision], tuple(classes), called=called)
    yield Reading(roles, strength, doubt, _problem_of(facts, names, texts, known))


def _problem_of(
    facts: Facts, names: Sequence[str], texts: set[str], known: set[str]
) -> Rule | None:
    """Return the problem that predicted labels ``texts`` and labels ``known``, of ``names``, are unclear."""
    classes = sorted(texts | known, key=number_or_text)
    missing = [name for name in classes if name.lower() in MISSING]
    numbers = [number for number in map(to_number, classes) if number is not None]
    cases = Counter(name.lower() for name in classes)
    twins = [name for name in classes if cases[name.lower()] > 1]
    is_mixed = facts.kind(names[0]) == "whole" and 0 < len(numbers) < len(classes)
    column = names[0]
    if REFERRAL in classes:
        return Rule("referral", column=column)
    if missing and facts.options.missing == "error":
        place = names[-1] if missing[0] in known else column
        return Rule("label_gap", column=place, text=missing[0])
    if texts.isdisjoint(known) and len(known) > 1:
        return Rule(
            "disjoint", column=column, decisions=sorted(texts), labels=sorted(known)
        )
    if _are_two_codes(texts, known):
        return Rule(
            "two_codes",
            column=column,
            decisions=sorted(texts, key=number_or_text),
            labels=sorted(known, key=number_or_text),
        )
    if twins:
        return Rule("cases", labels=twins)
    if is_mixed or any(number % 1 for number in numbers):
        return Rule("kinds", column=column, labels=classes)
    return None


def _are_two_codes(texts: set[str], known: set[str]) -> bool:
    """Return whether numbers of classes seem to be in two codes, such as 1 to 3 beside 0 to 2.

    As one code, each set would lack a class that the other has.
    """
    size = len(texts)
    if texts == known or size != len(known) or size < 2:
        return False
    codes = [
        sorted(number for number in map(to_number, each) if number is not None)
        for each in (texts, known)
    ]
    if any(len(code) < size for code in codes):  # words are names, not codes
        return False
    are_runs = all(two - one == 1 for code in codes for one, two in pairwise(code))
    return size == 2 or are_runs


def paired_decision(name: str, decisions: Sequence[str]) -> str | None:
    """Return the predicted labels that belong to the score ``name``: of the same stem, or the only ones."""
    same = [each for each in decisions if stem(each, PREDICTED) == stem(name, PREDICTED)]
    if len(same) == 1:
        return same[0]
    return decisions[0] if len(decisions) == 1 and not same else None
