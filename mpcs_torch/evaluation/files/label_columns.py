"""Find the columns that may have the labels of a classifier's file: by option, by name, or by values."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise

from mpcs_torch.errors import numbered_families
from mpcs_torch.evaluation.files.facts import (
    SEPARATOR,
    Facts,
    by_class,
    label_text,
)
from mpcs_torch.evaluation.files.score_scale import nominal_sum
from mpcs_torch.evaluation.files.words import (
    DECISIONS,
    IN_PAIRS,
    LABELS,
    NO_DECISION,
    NO_LABEL,
    POSITIVE,
    PREDICTED,
    RIGHT_OR_WRONG,
    SCORED,
    TRUTH,
    has_prediction,
    is_index,
    is_label,
    is_predicted,
    named_as,
    plain,
    predicted_thing,
    shorter_names,
    split_words,
    stem,
    target_or_not,
)

MAX_UNNAMED = 10
"""The maximum number of columns without a telling name that are tried as labels."""
MAX_FAMILIES = 10
"""The number of prefixes, such as ``target_``, and of classes, whose columns are compared with all other columns."""


@dataclass(frozen=True)
class LabelColumns:
    """The columns that may have the labels."""

    column: str | None = None
    truth: Mapping[str, str] = field(default_factory=dict[str, str])
    """The column of soft labels of each class. A single column of lists maps to itself."""
    is_named: bool = True
    """Whether a name or an option says that these are labels; if not, their values must be names of classes."""

    @property
    def columns(self) -> list[str]:
        """All columns that have labels."""
        return [*self.truth.values(), *self.hard]

    @property
    def hard(self) -> list[str]:
        """The column of labels; an empty list if there is none."""
        return [] if self.column is None else [self.column]


def label_candidates(facts: Facts) -> list[LabelColumns]:
    """Return the columns that may have the labels, all of them by the strongest sign that the file has."""
    given = facts.table.label or facts.options.label_column
    if given is not None:
        return [LabelColumns(given)]
    if facts.table.truth:
        return [LabelColumns(truth=facts.table.truth)]
    free = [name for name in facts.free if name != facts.options.decision_column]
    free = [name for name in free if name not in facts.options.score_columns]
    named = _named(facts, free)
    truth = dict[str, str]()
    if not facts.of_trials:
        truth = soft_labels(facts, free) or _one_hot(facts, free)
    # A column that is called labels is meant before soft ones, unless it is one of them.
    if truth and (not named or {*named} & {*truth.values()}):
        return [LabelColumns(truth=truth)]
    names = named or _paired(facts, free)
    if not facts.needs_labels and not facts.table.has_names:
        names = []  # the only other column may be anything, so its values must tell
    found = [LabelColumns(name) for name in names]
    if found:
        return found
    unnamed = [
        LabelColumns(name, is_named=False) for name in _by_value(facts, free)[:MAX_UNNAMED]
    ]
    if not facts.needs_labels:
        empty = facts.by_kind(named_as(free, LABELS), "empty")
        return [LabelColumns(empty[0])] if empty else [*unnamed, LabelColumns()]
    # A column that only its name calls labels: reading its rows says what is wrong with its values.
    only_named = [LabelColumns(name) for name in filter(is_label, free)]
    return only_named or unnamed


def _named(facts: Facts, free: Sequence[str]) -> list[str]:
    """Return the columns with a usual name for labels. Without names: the only column that is no score, if any.

    Without names, it takes words for targets to tell the labels of trials.
    """
    if not facts.table.has_names and facts.of_trials:
        return []
    if not facts.table.has_names:
        whole = facts.by_kind(free, "whole", "text")
        has_scores = bool(facts.by_kind(facts.free, "number", "list"))
        return whole if len(whole) == 1 and has_scores else []
    known = {*(facts.class_names or ())}
    among = [name for name in free if name not in known or facts.kind(name) == "text"]
    return facts.by_kind(filter(is_label, among), "text", "whole")


def _paired(facts: Facts, free: Sequence[str]) -> list[str]:
    """Return the columns whose name, as in ``died`` and ``prob_died``, stands in that of a score or a decision."""
    predicted = {*map(predicted_thing, free)} - {()}
    columns = facts.by_kind(free, "text", "whole")
    columns = [
        name
        for name in columns
        if stem(name, IN_PAIRS) in predicted and stem(name, PREDICTED) == stem(name)
    ]
    said = [name for name in columns if stem(name, IN_PAIRS) != stem(name)]
    return said or columns


def _by_value(facts: Facts, free: Sequence[str]) -> list[str]:
    """Return the columns that are labels if their values are names of classes: no ids, and not predicted ones.

    The labels of trials are words for targets and non-targets or, without such a column, any two words.
    """
    if facts.of_trials:
        columns = [
            name
            for name in free
            if not is_predicted(name)
            and not is_index(name)
            and not _is_right_or_wrong(facts, name)
        ]
        with_targets = [name for name in columns if _has_targets(facts, name)]
        if with_targets:
            return with_targets
        texts = facts.by_kind(columns, "text")
        return [name for name in texts if has_two_words(facts, name)]
    if not facts.table.has_names:
        return facts.by_kind(free, "whole", "text")
    # An output may be the right one, if another column is called a prediction.
    predicted = [name for name in free if has_prediction(name)]
    if not predicted:
        predicted = [*filter(is_predicted, free)]
    columns = [
        name
        for name in facts.by_kind(free, "text", "whole")
        if name not in predicted
        and not facts.names_rows(name)
        and NO_LABEL.isdisjoint(split_words(name)[-1:])
        and SCORED.isdisjoint(split_words(name))
        and not _is_right_or_wrong(facts, name)
    ]
    # First those of which another column has the name and more words, in any language, and the same values.
    longer = defaultdict[tuple[str, ...], list[str]](list)
    for name in columns + predicted:
        for words in shorter_names(name):
            longer[words].append(name)

    def has_no_twin(name: str) -> bool:
        twins = longer[tuple(split_words(name))]
        return not any(facts.texts(twin) == facts.texts(name) for twin in twins)

    return sorted(columns, key=has_no_twin)


def _is_right_or_wrong(facts: Facts, name: str) -> bool:
    """Return whether a column says of each row whether its prediction is right."""
    is_worded = not NO_DECISION.isdisjoint(split_words(name))
    return is_worded and {*map(str.lower, facts.texts(name))} <= RIGHT_OR_WRONG


def _has_targets(facts: Facts, name: str) -> bool:
    """Return whether a column has the label that is named as that of targets, or only words for targets or not."""
    texts, target = facts.texts(name), facts.options.target_label
    if target is not None:
        return label_text(target) in texts
    return (
        bool(texts) and None not in map(target_or_not, texts) and not {"0", "-1"} <= texts
    )


def has_two_words(facts: Facts, name: str) -> bool:
    """Return whether a column has two different words or digits, as labels may be, in more than two rows."""
    texts = facts.texts(name)
    are_words = all(
        (text[:1].isalpha() and not any(map(str.isdigit, text)))
        or (len(text) == 1 and text.isdecimal())
        for text in texts
    )
    return are_words and len(texts) == 2 < len(facts.columns[name].values)


def soft_labels(facts: Facts, free: Sequence[str]) -> dict[str, str]:
    """Map each class to its column of soft labels, such as ``target_a``; empty if there are none."""
    lists = facts.by_kind(named_as(free, LABELS), "list")
    if lists:
        return {lists[0]: lists[0]}
    families = defaultdict[str, dict[str, str]](dict)
    numeric = facts.by_kind(free, "whole", "number")
    for name in numeric:
        if parts := split_truth(name):
            families[parts[0]][parts[1]] = name
    kept = list[dict[str, str]]()
    for family in sorted(families.values(), key=len)[-MAX_FAMILIES:]:
        own = {*family.values()}
        others = [name for name in numeric if name not in own]
        is_numbered = any(
            {*numbers} == {*family} for _, numbers in numbered_families(others)
        )
        if len(family) == 1:  # a single class, such as the columns rain and target_rain
            [(class_name, name)] = family.items()
            kept += (
                [family]
                if class_name in others and plain(name) not in LABELS | DECISIONS | POSITIVE
                else []
            )
        elif is_numbered or any(True for _ in by_class(others, list(family))):
            kept.append(family)
    return max(kept, key=len, default=dict[str, str]())


def _one_hot(facts: Facts, free: Sequence[str]) -> dict[str, str]:
    """Map each of some columns of scores to that of its label, if as many columns of 0 and 1 stand beside them.

    Both are neighbours, and the scores of each row sum to 1 or 100, the labels to 1. They are matched by place without
    a header, and with one only if their names are numbered alike. Two columns of labels may be features.
    """
    blocks = [[*names] for _, names in groupby(free, key=facts.kind)]
    for pair in pairwise(blocks):
        by_kind = {facts.kind(names[0]): names for names in pair}
        scores, labels = by_kind.get("number", []), by_kind.get("whole", [])
        if len(scores) != len(labels) or len(labels) < 3:
            continue
        if facts.table.has_names and not _are_numbered_alike(scores, labels):
            continue
        of_scores, of_labels = facts.matrix(scores), facts.matrix(labels)
        are_labels = bool(((of_labels == 0) | (of_labels == 1)).all())
        are_scores = nominal_sum(of_scores.sum(axis=1), len(scores)) is not None
        if are_labels and are_scores and bool((of_labels.sum(axis=1) == 1).all()):
            return dict(zip(scores, labels, strict=True))
    return {}


def _are_numbered_alike(names: Sequence[str], others: Sequence[str]) -> bool:
    """Return whether the names of two sets of columns differ in numbers alone, which are the same in the same order."""
    one = [*numbered_families(names)]
    other = [*numbered_families(others)]
    if len(one) != 1 or len(other) != 1:
        return False
    in_order, numbers = one[0]
    others_in_order, other_numbers = other[0]
    are_in_order = in_order == tuple(names) and others_in_order == tuple(others)
    return are_in_order and numbers == other_numbers


def split_truth(name: str) -> tuple[str, str] | None:
    """Split the name of a column of soft labels, such as target_a, into prefix and class; None for other names."""
    first, *rest = SEPARATOR.split(name, maxsplit=1)
    return (first, rest[0]) if rest and rest[0] and plain(first) in TRUTH else None
