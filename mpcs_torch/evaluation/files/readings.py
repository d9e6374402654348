"""List every complete way to read a classifier's file: labels, classes, and scores or predicted labels."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import pairwise, permutations
from typing import Any, NamedTuple

import numpy as np
import torch

from mpcs_torch.concern.checks import MAX_CLASSES, REFERRAL
from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.facts import (
    NUMBERED,
    SEPARATOR,
    Facts,
    by_class,
    label_text,
    named_class,
    nominal_sum,
    number_or_text,
    numbered_families,
    span,
)
from mpcs_torch.evaluation.files.label_columns import MAX_UNNAMED, Labels, label_candidates, split_truth
from mpcs_torch.evaluation.files.problems import Code, Problem
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.tables import is_gap, listed, numbers_in, to_number, to_text
from mpcs_torch.evaluation.files.words import (
    DECISION,
    DECISIONS,
    LABELS,
    MISSING,
    NO_PROBABILITY,
    POSITIVE,
    PREDICTED,
    TRUE,
    is_label,
    is_positive,
    named_as,
    plain,
    split_words,
    stem,
)
from mpcs_torch.functional.inputs.decisions import highest_class

CLASS_SCORES, PROBABILITY, DECIDED, UNNAMED = 3, 2, 1, 0
"""The strength of names and sums as signs of a score for each class, of one probability, and of predicted labels. A
column without a sign is never used without being asked for."""
SCORES = POSITIVE | {"softmax", "conf", "confidence"} - {"distance", "similarity", "cosine"}
"""Words that may stand before or after the class name in the name of a column of scores, such as ``prob_red``."""
MAX_ORDERED = 3
"""The maximum number of classes whose orders are all listed."""


class Reading(NamedTuple):
    """One complete way to read a file."""

    roles: Roles
    strength: int
    doubt: Problem | None = None
    """The reason why the file is not read so unless the options ask for it."""
    broken: Problem | None = None
    """The test that the values of the file fail; the file cannot be read so."""

    @property
    def is_clear(self) -> bool:
        """Whether names and values say clearly that the file is to be read so."""
        return self.strength > UNNAMED and self.doubt is None and self.broken is None


def find_readings(facts: Facts, *, needs_labels: bool) -> list[Reading]:
    """Return all ways to read a file, also those that are doubted, or that fail a test on the first rows."""
    found = list[Reading]()
    for labels in label_candidates(facts, needs_labels=needs_labels):
        for reading in _of_labels(facts, labels):
            roles = reading.roles._replace(label=labels.column)
            if labels.truth:
                found.append(_with_truth(facts, reading._replace(roles=roles), labels.truth))
            else:
                found.append(_doubted(facts, reading._replace(roles=roles), labels))
    return found


def _doubted(facts: Facts, reading: Reading, labels: Labels) -> Reading:
    """Return ``reading``; doubt it if only its values say that a column has the labels."""
    label, roles = labels.column, reading.roles
    if label is None or facts.options.label_column == label:
        return reading
    if reading.doubt or reading.broken:
        return reading if labels.is_named else reading._replace(strength=UNNAMED)
    is_usual = labels.is_named and (is_label(label) or stem(label, TRUE) != stem(label) or not facts.table.has_names)
    if not labels.is_named and not _are_classes(facts, label, roles):
        return reading._replace(strength=UNNAMED, doubt=_problem("not_named", column=quoted(label), what="labels"))
    if not is_usual and facts.table.label is None and _is_best(facts, roles, label):
        return reading._replace(doubt=_problem("best_class", column=quoted(label)))
    return reading


def _are_classes(facts: Facts, label: str, roles: Roles) -> bool:
    """Return whether a column that no name calls labels has only names of classes; without a header also numbers."""
    texts, size = facts.texts(label), len(roles.classes)
    if roles.form not in ("columns", "lists"):
        return False
    if facts.kinds[label] == "text" or facts.table.has_names:
        return facts.kinds[label] == "text" and texts <= {*roles.classes}
    from_0, from_1 = ({*map(str, range(first, first + size))} for first in (0, 1))
    is_number = ("0" in texts and texts <= from_0) or (str(size) in texts and texts <= from_1)
    is_called = texts <= {*roles.classes} or all(to_number(each) is None for each in roles.classes)
    return is_number and is_called and len(texts) < len(facts.values[label])


def _is_best(facts: Facts, roles: Roles, label: str) -> bool:
    """Return whether there are at least five labels, and each is the class with the highest score in its row."""
    labels, scores = [label_text(value) for value in facts.values[label]], facts.matrix(roles.scores)
    if roles.form != "columns" or len(scores) != len(labels) or len(labels) < 5:
        return False
    return labels == [roles.classes[place] for place in highest_class(torch.from_numpy(scores))[1].tolist()]


def _with_truth(facts: Facts, reading: Reading, truth: Mapping[str, str]) -> Reading:
    """Return ``reading`` with the columns of soft labels in the order of its classes."""
    roles = reading.roles
    if len(truth) == 1 and facts.kinds[next(iter(truth.values()))] == "list":
        return reading._replace(roles=roles._replace(truth=[*truth.values()]))
    names = [name if name in truth else column for name, column in zip(roles.classes, roles.scores, strict=False)]
    in_order = [truth[name] for name in names if name in truth]
    if len(in_order) < len(roles.classes) or len(truth) > len(in_order):
        said = {"truth": listed([*truth]), "classes": listed(roles.classes)}
        return reading._replace(broken=_problem("other_truth", **said))
    return reading._replace(roles=roles._replace(truth=in_order))


def _of_labels(facts: Facts, labels: Labels) -> Iterator[Reading]:
    """Yield the readings with these labels."""
    options = facts.options
    others = [name for name in facts.free if name not in labels.columns]
    if options.decision_column is not None or (facts.is_written and not options.score_columns):
        yield from _decided(facts, labels, options.decision_column or DECISION, DECIDED)
        return
    if options.score_columns:
        yield from _chosen(facts, labels, others)
        for name, strength in _decision_columns(facts, labels, others):
            if strength > UNNAMED and name not in options.score_columns:  # beside the scores
                yield from _decided(facts, labels, name, strength)
        return
    decisions = _decision_columns(facts, labels, others)
    named_decisions = [name for name, strength in decisions if strength > UNNAMED]
    decided = {*named_decisions}
    others = [name for name in others if facts.kinds[name] == "number" or name not in decided]
    if labels.column is not None:  # whole numbers named as soft labels are one-hot labels beside the labels
        others = [name for name in others if facts.kinds[name] != "whole" or not split_truth(name)]
    others = [name for name in others if not facts.is_counter(name)]
    sets = _class_columns(facts, labels, others, is_decided=bool(named_decisions))
    lists = [name for name in facts.by_kind(others, "list") if labels.truth or len(first_list(facts, name)) > 1]
    for roles, broken in [*sets, *_lists(facts, labels, lists)]:
        broken = broken or _falls(facts, roles)
        for reading in _with_labels(facts, Reading(roles, CLASS_SCORES), labels.column):
            yield reading._replace(broken=broken or reading.broken)
    if not labels.truth:
        scored = {
            name for roles, broken in sets if broken is None or _covers(facts, roles, labels) for name in roles.scores
        }
        single = [name for name in others if name not in scored]
        single = facts.by_kind(single, "number") if named_decisions else single  # whole numbers are features then
        yield from _probabilities(facts, labels, single, named_decisions)
    if labels.column is not None or labels.truth or not sets:
        for name, strength in decisions:
            yield from _decided(facts, labels, name, strength)


def _covers(facts: Facts, roles: Roles, labels: Labels) -> bool:
    """Return whether the columns of ``roles`` are named after the labels, even if they do not sum to 1."""
    return labels.column is not None and facts.label_texts(labels.column) <= {*roles.classes}


# Scores of each class


def _class_columns(
    facts: Facts, labels: Labels, names: Sequence[str], *, is_decided: bool
) -> list[tuple[Roles, Problem | None]]:
    """Return the sets of columns with a score of each class; with the test that a set fails, if no set passes."""
    sets = list(_column_sets(facts, labels, names))
    passing = [roles for roles in sets if labels.truth or _sums(facts, roles) is None]
    if is_decided:  # whole numbers are then features or one-hot labels, not scores
        passing = [roles for roles in passing if facts.by_kind(roles.scores, "number")]
    words = _words(facts, labels.column)
    passing = [roles for roles in passing if words <= {*roles.classes}] or passing
    if facts.options.from_logits:  # any columns may be logits, so names must tell
        passing = [roles for roles in passing if words == {*roles.classes}] or passing
    passing = [roles for roles in passing if _common_words(roles)] or passing
    numbered = [roles for roles in passing if roles.is_numbered]
    if not facts.options.from_logits:  # the larger set: a class whose scores are 0 changes no sum
        passing = _largest(passing)
    distinct = dict[frozenset[str], Roles]()
    for roles in numbered or passing:
        distinct.setdefault(frozenset(roles.scores), roles)
    if distinct:
        return [(roles, None) for roles in distinct.values()]
    failed = [(roles, _sums(facts, roles)) for roles in sets]
    named = [
        (roles, problem)
        for roles, problem in failed
        if problem and (roles.is_numbered or (words and words <= {*roles.classes}) or _common_words(roles) & SCORES)
    ]
    return [*named[:1]]


def _column_sets(facts: Facts, labels: Labels, names: Sequence[str]) -> Iterator[Roles]:
    """Yield each set of columns that names, or a common range of values, mark as the scores of the classes."""
    filled = facts.by_kind(names, "number", "whole", "empty")  # the scores of a class may be missing in first rows
    known = [name for name in filled if not {*split_words(name)} & {"distance", "dist", "loss"}]
    numeric, fractions = facts.by_kind(known, "number", "whole"), facts.by_kind(known, "number")
    classes, families = facts.class_names, list(numbered_families(known))
    if classes is not None:
        named = [Roles("columns", columns, tuple(classes)) for columns in _by_known_class(facts, known)]
        groups = [each for each, _ in families] if facts.table.has_names else [tuple(numeric), tuple(fractions)]
        fitting = [Roles("columns", each, tuple(classes), is_numbered=True) for each in groups]
        yield from named or [roles for roles in fitting if len(roles.scores) == len(classes)]
        return
    if labels.truth:
        yield from _sets_of_truth(facts, labels.truth, numeric)
        return
    for columns, numbers in families:
        yield Roles("columns", columns, numbers, is_numbered=True)
    words = sorted(_words(facts, labels.column))
    for columns in by_class(numeric, words) if len(words) > 1 else ():
        class_of = dict(zip(columns, words, strict=True))
        in_order = tuple(name for name in numeric if name in class_of)
        yield Roles("columns", in_order, tuple(class_of[name] for name in in_order))
    in_unit = [name for name in numeric if _is_in_unit(facts, name)]
    known_families = {tuple(sorted(columns)) for columns, _ in families}
    for group in [numeric, in_unit, fractions, *_with_common_word(numeric)]:
        if len(group) < 2:
            continue
        called = _class_names(group, {*words})
        # A family such as grade0, grade1 has numbered classes, unless the labels are these names.
        if tuple(sorted(group)) not in known_families or (words and {*words} <= {*called}):
            yield Roles("columns", tuple(group), called)


def _sets_of_truth(facts: Facts, truth: Mapping[str, str], numeric: Sequence[str]) -> Iterator[Roles]:
    """Yield the sets of columns with scores for the classes that have soft labels."""
    is_list = len(truth) == 1 and facts.kinds[next(iter(truth.values()))] == "list"
    classes = [] if is_list else list(truth)
    named = [Roles("columns", columns, tuple(classes)) for columns in by_class(numeric, classes)]
    numbered = [Roles("columns", *each) for each in numbered_families(numeric) if {*each[1]} == {*classes}]
    if named or numbered:
        yield from named or numbered
    elif numeric:
        yield Roles("columns", tuple(numeric), tuple(numeric))


def _is_in_unit(facts: Facts, name: str) -> bool:
    numbers = facts.matrix([name])
    return bool(numbers.size) and numbers.min() >= 0 and numbers.max() <= 1


def _sums(facts: Facts, roles: Roles) -> Problem | None:
    """Return the problem that scores of the first rows do not sum to about 1 or 100; None for logits."""
    matrix = facts.matrix(roles.scores)
    if facts.options.from_logits:
        return None
    sums = matrix.sum(axis=1)
    if matrix.size and matrix.min() >= 0 and nominal_sum(sums, matrix.shape[1]) is not None:
        return None
    low, high = (float(sums.min()), float(sums.max())) if len(sums) else (np.nan, np.nan)
    return _problem("sums", columns=span(roles.scores), low=low, high=high)


def _largest(sets: Sequence[Roles]) -> list[Roles]:
    """Return the sets whose columns are no proper subset of the columns of another set."""
    having = defaultdict[str, list[set[str]]](list)
    for roles in sets:
        columns = {*roles.scores}
        for name in columns:
            having[name].append(columns)
    return [one for one in sets if not any({*one.scores} < columns for columns in having[one.scores[0]])]


def _by_known_class(facts: Facts, names: Sequence[str]) -> list[tuple[str, ...]]:
    """Return sets of columns that are named after the known classes, or after the file's names for these."""
    return list(by_class(names, facts.class_names or ())) or list(by_class(names, facts.called))


def _words(facts: Facts, label: str | None) -> set[str]:
    """Return the distinct labels in the first rows or, for logits, in all rows. Numbers give an empty set."""
    if label is None or facts.kinds[label] != "text":
        return set()
    if not facts.options.from_logits:
        return facts.label_texts(label)
    texts = facts.all_texts(label)
    return {text for text in texts if not is_gap(text)} or texts


def _with_common_word(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield each group of columns whose names begin or end with the same word, such as ``prob`` or ``score``."""
    for place in (0, -1):
        groups = defaultdict[str, list[str]](list)
        for name in names:
            parts = SEPARATOR.split(name)
            if len(parts) > 1 and plain(parts[place]) in SCORES:
                groups[parts[place]].append(name)
        yield from groups.values()
    by_rest = defaultdict[tuple[str, ...], list[str]](list)
    for name in names:  # rf_a and rf_b, beside svm_a and svm_b
        by_rest[tuple(SEPARATOR.split(name)[:1])].append(name)
    yield from by_rest.values()


def _common_words(roles: Roles) -> set[str]:
    """Return the words, such as ``prob``, that the names of all score columns have."""
    return set.intersection(*({plain(part) for part in SEPARATOR.split(name)} for name in roles.scores))


def _class_names(names: Sequence[str], labels: set[str]) -> tuple[str, ...]:
    """Return the class of each column in ``names``: its name without a shared first or last word such as ``prob``."""
    if labels and labels <= {*names}:
        return tuple(names)
    for place in (0, -1):
        word, *others = {SEPARATOR.split(name)[place] for name in names}
        size = len(word) + 1
        short = [name[size:] if place == 0 else name[:-size] for name in names]
        is_score = plain(word) in SCORES
        if not others and all(short) and (is_score or (labels and labels <= {*short})):
            return tuple(short)
    shortest = min(map(len, names))
    starts = [size for size in range(shortest + 1) if len({name[:size] for name in names}) == 1]
    rest = tuple(name[starts[-1] :] for name in names)  # of Predictioncat and Predictiondog
    return rest if labels and labels <= {*rest} else tuple(names)


def first_list(facts: Facts, name: str) -> Sequence[float]:
    """Return the first list of numbers in the column ``name``; empty if there is none."""
    return next((numbers for value in facts.values[name] if (numbers := numbers_in(value))), ())


def _lists(facts: Facts, labels: Labels, names: Sequence[str]) -> Iterator[tuple[Roles, Problem | None]]:
    """Yield roles for columns of lists of scores, with the test that they fail. Unknown classes are numbered."""
    for name in names:
        size, classes = len(first_list(facts, name)), facts.class_names
        if size > MAX_CLASSES:
            raise facts.error(f"must have at most {MAX_CLASSES} classes, but has {size}")
        if classes is not None and len(classes) != size:
            raise facts.error(f"has lists of {size} scores, but there are {len(classes)} classes", column=name)
        roles = Roles("lists", [name], tuple(classes or map(str, range(size))))
        yield roles, None if labels.truth else _sums(facts, roles)


def _falls(facts: Facts, roles: Roles) -> Problem | None:
    """Return the problem that scores seem to be those of the best classes of each row, not those of fixed classes."""
    matrix = facts.matrix(roles.scores)
    falls = bool(len(matrix)) and bool((np.diff(matrix, axis=1) <= 0).all())
    if roles.form == "lists":
        falls = falls and len(matrix) >= 20 and matrix.shape[1] > 2 and bool((matrix[:, 0] > matrix[:, -1]).all())
        return _problem("falling", columns=quoted(roles.scores[0])) if falls and not facts.table.counts_from_0 else None
    # The scores are score1 and score2, and top1 and top2 name the classes.
    numbers = {match[2] for name in roles.scores if (match := NUMBERED.fullmatch(name))}
    families = defaultdict[tuple[str, str], set[str]](set)
    for name in facts.by_kind(facts.table.names, "whole", "text"):
        if (match := NUMBERED.fullmatch(name)) and name not in roles.scores:
            families[match[1], match[3]].add(match[2])
    is_beside = roles.is_numbered and numbers in families.values()
    return _problem("falling", columns=span(roles.scores)) if falls and is_beside else None


# The classes of the labels


def _with_labels(facts: Facts, reading: Reading, label: str | None) -> Iterator[Reading]:
    """Yield ``reading`` with each meaning that the labels may have: names of its classes, or numbers of them."""
    roles, named = reading.roles, facts.class_names is not None
    texts = set[str]() if label is None else facts.label_texts(label)
    if facts.called:
        yield reading._replace(roles=roles._replace(called=facts.called))
        return
    by_place = roles.form == "lists" or not facts.table.has_names
    if (not by_place or named) and texts <= {*roles.classes}:
        yield reading
        return
    if label is None:
        yield reading
    elif facts.kinds[label] == "text" and by_place and not named:
        yield from _in_some_order(facts, reading, label)
    elif facts.kinds[label] == "text":
        is_other = texts.isdisjoint(roles.classes)  # if only some labels are no classes, reading the rows names them
        yield reading._replace(broken=_no_class(facts, label, roles)) if is_other else reading
    elif by_place and not named:
        for first in _first_numbers(facts, label, len(roles.classes)):
            classes = tuple(str(first + place) for place in range(len(roles.classes)))
            yield _unless_ambiguous(facts, reading._replace(roles=roles._replace(classes=classes)), label)
        if not _first_numbers(facts, label, len(roles.classes)):
            yield _by_place(facts, reading, label)
    elif all(to_number(name) is not None for name in roles.classes):
        yield _by_place(facts, reading, label)
    else:
        yield from _numbered_labels(facts, reading, label)


def _no_class(facts: Facts, label: str, roles: Roles) -> Problem:
    said = {"labels": listed(sorted(facts.label_texts(label))), "classes": listed(roles.classes)}
    return _problem("no_class", column=quoted(label), **said)


def _in_some_order(facts: Facts, reading: Reading, label: str) -> Iterator[Reading]:
    """Yield ``reading``, whose scores have no names, with the labels as classes, in each order if they are few."""
    texts = facts.all_texts(label)
    names = sorted({text for text in texts if not is_gap(text)} or texts)
    size = len(reading.roles.classes)
    if len(names) > size:
        yield reading._replace(broken=_no_class(facts, label, reading.roles))
        return
    orders = permutations(names) if len(names) <= MAX_ORDERED else [tuple(names)]
    doubt = _problem("which_order", columns=span(reading.roles.scores), labels=listed(names), size=size)
    if len(names) < size:  # the names of the others are not known
        yield reading._replace(doubt=doubt)
        return
    for order in orders:
        yield reading._replace(roles=reading.roles._replace(classes=tuple(order)), doubt=doubt)


def _first_numbers(facts: Facts, label: str, size: int) -> list[int]:
    """Return the numbers that the first of ``size`` classes may have, 0 or 1, if labels are numbers of classes.

    If the first rows do not tell, all rows do; arrays count from 0.
    """
    for texts in (facts.label_texts(label), None):
        known = facts.all_texts(label) if texts is None else texts
        numbers = {int(number) for text in known if (number := to_number(text)) is not None and not is_gap(text)}
        possible = [first for first in (0, 1) if numbers <= {*range(first, first + size)}]
        if len(possible) < 2:
            return possible
        if facts.table.counts_from_0:
            return [0]
    return possible


def _unless_ambiguous(facts: Facts, reading: Reading, label: str) -> Reading:
    """Return ``reading``; doubt it if the first class may be 0 or 1."""
    size = len(reading.roles.classes)
    is_one = len(_first_numbers(facts, label, size)) < 2
    return reading if is_one else reading._replace(doubt=_problem("first_number", size=size))


def _by_place(facts: Facts, reading: Reading, label: str) -> Reading:
    """Return ``reading`` with the labels, in the order of their numbers, as the classes: to be asked for."""
    roles, size = reading.roles, len(reading.roles.classes)
    names = sorted((text for text in facts.all_texts(label) if not is_gap(text)), key=number_or_text)
    from_1 = [str(place) for place in range(1, size + 1)]
    numbers = [to_number(name) for name in names]
    steps = {two - one for one, two in pairwise(numbers) if one is not None and two is not None}
    is_counted = len(names) == size and (steps == {1} or numbers == [-1, 1])
    if facts.class_names is not None or not (is_counted or {*names} <= {*from_1}):
        return reading._replace(broken=_no_class(facts, label, roles))
    doubt = _problem("by_place", labels=listed(names), classes=listed(roles.classes))
    classes = tuple(names if is_counted else from_1)
    return reading._replace(roles=roles._replace(classes=classes), doubt=doubt)


def _numbered_labels(facts: Facts, reading: Reading, label: str) -> Iterator[Reading]:
    """Yield ``reading``, whose classes have names, with the labels as numbers of its classes."""
    roles, size = reading.roles, len(reading.roles.classes)
    families = [numbers for each, numbers in numbered_families(roles.scores) if {*each} == {*roles.scores}]
    if families and facts.table.has_names:
        yield reading._replace(roles=roles._replace(called=families[0]))
        return
    possible = _first_numbers(facts, label, size)
    if not possible:
        yield reading._replace(broken=_no_class(facts, label, roles))
    for first in possible:
        called = tuple(str(first + place) for place in range(size))
        kept = _unless_ambiguous(facts, reading._replace(roles=roles._replace(called=called)), label)
        if facts.class_names is None and not facts.options.score_columns:
            polarities = [is_positive(name) for name in roles.classes]
            if first == 0 and {*polarities} == {False, True}:  # 1 is yes
                if polarities[0]:
                    turned = roles._replace(scores=roles.scores[::-1], classes=roles.classes[::-1], called=called)
                    kept = kept._replace(roles=turned)
            else:
                doubt = _problem("which_number", columns=span(roles.scores), first=first)
                kept = kept._replace(doubt=doubt)
                if size == 2:
                    turned = roles._replace(scores=roles.scores[::-1], classes=roles.classes[::-1], called=called)
                    yield kept._replace(roles=turned)
        yield kept


# One probability


def _probabilities(facts: Facts, labels: Labels, names: Sequence[str], decisions: Sequence[str]) -> Iterator[Reading]:
    """Yield the readings of a column with the probability of one of two classes."""
    known, label = facts.class_names, labels.column
    if (known is None and label is None) or (known is not None and len(known) != 2):
        return
    is_binary = label is None or known is not None or len(facts.label_texts(label)) <= 2
    for name in facts.by_kind(names, "number", "whole"):
        strength = _strength_of_probability(facts, labels, name)
        is_in_range = facts.kinds[name] == "number" and (_is_in_unit(facts, name) or _is_percent(facts, name))
        is_possible = is_binary and is_in_range
        if {*split_words(name)} & NO_PROBABILITY:  # such as a distance, or the confidence of the predicted label
            continue
        if strength > UNNAMED or is_possible:
            yield from _probability(facts, label, name, strength, decisions)


def _strength_of_probability(facts: Facts, labels: Labels, name: str) -> int:
    """Return how strongly the name of a column says that it has the probability of one class."""
    words, label = {*split_words(name)}, labels.column
    usual = POSITIVE | LABELS if facts.table.joined else POSITIVE
    of_label = label is not None and bool(words & PREDICTED) and stem(name, PREDICTED) == stem(label, TRUE) != ()
    classes = facts.class_names or ([] if label is None else [*facts.texts(label)])
    is_usual = plain(name) in usual or of_label or bool(named_class(name, classes))
    if is_usual:
        return PROBABILITY
    return PROBABILITY if facts.kinds[name] == "number" and words & POSITIVE else UNNAMED


def _probability(
    facts: Facts, label: str | None, name: str, strength: int, decisions: Sequence[str]
) -> Iterator[Reading]:
    """Yield readings of ``name`` as the probability of one class: the class in its name, or that predicted labels say.

    Without either, it is the probability of 1, of a positive word, or of the last class that the user named; and of
    other classes, either.
    """
    roles = Roles("positive", [name], facts.class_names or (), is_percent=_is_percent(facts, name))
    strange = None if strength > UNNAMED else _problem("not_named", column=quoted(name), what="a probability")
    if facts.class_names is None and label is not None:
        classes, broken = _two_labels(facts, name, label)
        roles = roles._replace(classes=classes)
        if broken is not None:
            yield Reading(roles, strength, broken=broken)
            return
    doubt = strange or _above_half(facts, roles, label)
    beside = paired_decision(name, decisions)
    shown = [0, 1] if beside is None else _shown_classes(facts, roles, beside)
    if not shown:
        broken = _problem("unordered", column=quoted(name), decision=quoted(beside))
        yield Reading(roles, strength, broken=broken)
        return
    named = [place for names in (facts.called, roles.classes) for place in named_class(name, names)]
    polarities = [is_positive(text) for text in roles.classes]
    if named:
        of_class = named[0]
    elif len(shown) == 1:
        of_class = shown[0]
    elif facts.class_names is not None or polarities == [False, True]:
        of_class = 1
    else:
        doubt = doubt or _problem("which_class", column=quoted(name))
        for order in (roles.classes, roles.classes[::-1]):
            yield Reading(roles._replace(classes=tuple(order)), strength, doubt)
        return
    yield from _with_labels(facts, Reading(roles._replace(of_class=of_class), strength, doubt), label)


def _is_percent(facts: Facts, name: str) -> bool:
    """Return whether a single column has percentages: its values have the sign, or its name says so."""
    scores = facts.matrix([name])
    has_sign = any(str(value).strip().endswith("%") for value in facts.values[name])
    is_beyond = bool(len(scores)) and scores.max() > 1
    return has_sign or (is_beyond and ("%" in name or "percent" in name.lower()))


def _above_half(facts: Facts, roles: Roles, label: str | None) -> Problem | None:
    """Return the doubt that no score is below one half: it may be the score of the predicted label."""
    if facts.options.classes or facts.options.from_logits or (label is not None and len(facts.texts(label)) < 2):
        return None
    scores, half = facts.matrix(roles.scores), 50 if roles.is_percent else 0.5
    is_high = len(scores) > 3 and scores.min() >= half and scores.max() <= 2 * half
    return _problem("above_half", column=quoted(roles.scores[0])) if is_high else None


def paired_decision(name: str, decisions: Sequence[str]) -> str | None:
    """Return the predicted labels that belong to the score ``name``: of the same stem, or the only ones."""
    same = [each for each in decisions if stem(each, PREDICTED) == stem(name, PREDICTED)]
    if len(same) == 1:
        return same[0]
    return decisions[0] if len(decisions) == 1 and not same else None


def _shown_classes(facts: Facts, roles: Roles, decision: str) -> list[int]:
    """Return the classes whose probability a score may be: high where ``decision`` predicts the class, low elsewhere.

    Predicted labels that are alike, or no classes, show nothing: both are possible. None is possible if the score does
    not order the predicted labels.
    """
    scores: dict[str, list[float]] = {name: [] for name in roles.classes}
    for value, text in zip(facts.values[decision], facts.values[roles.scores[0]], strict=True):
        score, predicted = to_number(text), label_text(value)
        if score is not None and predicted in scores:
            scores[predicted].append(score)
    first, last = scores.values()
    if not first or not last:
        return [0, 1]
    is_last = max(first) <= min(last)
    is_first = max(last) <= min(first)
    return [place for place, is_possible in enumerate((is_first, is_last)) if is_possible]


def _two_labels(facts: Facts, score: str, label: str) -> tuple[tuple[str, ...], Problem | None]:
    """Return the two labels in the column ``label``, the positive class last; or the problem that they are not two."""
    known = facts.all_texts(label)
    classes = known if len(known) <= 2 else {text for text in known if not is_gap(text)}
    if classes <= {"0", "1"}:
        return ("0", "1"), None
    names = sorted(classes, key=number_or_text)
    if len(names) == 1:
        return tuple(names), _problem("one_label", column=quoted(label), labels=listed(names))
    if len(names) == 2:
        is_turned = [is_positive(name) for name in names] == [True, False]
        return tuple(names[::-1] if is_turned else names), None
    rows = Counter(label_text(value) for value in facts.table.read([label]).columns[label].to_pylist())
    rare = min(names, key=lambda name: rows[name])
    said = {"score": quoted(score), "labels": listed(names), "rare": quoted(rare), "number": rows[rare]}
    return tuple(names), _problem("many_labels", column=quoted(label), **said)


# Predicted labels


def _decision_columns(facts: Facts, labels: Labels, names: Sequence[str]) -> list[tuple[str, int]]:
    """Return the columns that may have predicted labels, with their strength: by name, or only by their values.

    If the labels come from another file, a column named as labels has predicted labels.
    """
    columns = [name for name in facts.by_kind(names, "text", "whole") if not _is_empty(facts, name)]
    usual = named_as(columns, DECISIONS) or named_as(columns if facts.table.joined else [], LABELS)
    own = () if labels.column is None else stem(labels.column, TRUE)
    paired = [name for name in columns if own and stem(name, PREDICTED) == own != stem(name)]
    worded = [name for name in columns if {*split_words(name)} & (DECISIONS | {"pred", "predicted"})]
    worded = [name for name in worded if not {*split_words(name)} & (TRUE - {"label", "class"})]
    worded = [name for name in worded if not _is_disjoint(facts, labels, name)]
    named = usual or paired or worded
    texts = set[str]() if labels.column is None else facts.label_texts(labels.column)
    by_name = {*named}
    by_value = [name for name in columns if name not in by_name and len(facts.texts(name)) > 1 and len(texts) > 1]
    by_value = [name for name in by_value if facts.texts(name) <= texts and not facts.is_counter(name)]
    by_value = [name for name in by_value if facts.kinds[name] == "text" or facts.texts(name) == texts]
    by_value = [name for name in by_value if facts.values[name] != facts.values[labels.column or name]]
    return [*((name, DECIDED) for name in named), *((name, UNNAMED) for name in by_value[:MAX_UNNAMED])]


def _is_empty(facts: Facts, name: str) -> bool:
    return not facts.texts(name)


def _is_disjoint(facts: Facts, labels: Labels, name: str) -> bool:
    """Return whether no predicted label in the first rows is a label."""
    return labels.column is not None and facts.texts(name).isdisjoint(facts.texts(labels.column))


def _decided(facts: Facts, labels: Labels, decision: str, strength: int) -> Iterator[Reading]:
    """Yield the readings of a column of predicted labels. Without known classes, all labels are classes."""
    doubt = None if strength > UNNAMED else _problem("not_named", column=quoted(decision), what="predicted labels")
    label = labels.column
    if facts.class_names is not None:
        reading = Reading(Roles("decisions", [decision], tuple(facts.class_names)), strength, doubt)
        yield from _numbers_of_classes(facts, reading, [decision, *([] if label is None else [label])])
        return
    names = [decision, *([] if label is None else [label])]
    of_columns = [facts.all_texts(name) for name in names]
    if label is not None:  # yes is Yes, if no two labels differ so
        by_lower = {text.lower(): text for text in of_columns[1]}
        is_clear = len(by_lower) == len(of_columns[1])
        of_columns[0] = {by_lower.get(text.lower(), text) if is_clear else text for text in of_columns[0]}
    classes = sorted(set.union(*of_columns), key=number_or_text)
    missing = [name for name in classes if name.lower() in MISSING]
    numbers = [number for name in classes if (number := to_number(name)) is not None]
    cases = Counter(name.lower() for name in classes)
    twins = [name for name in classes if cases[name.lower()] > 1]
    is_mixed = facts.kinds[decision] == "whole" and 0 < len(numbers) < len(classes)
    broken = None
    if REFERRAL in classes:
        broken = _problem("referral", column=quoted(decision))
    elif missing and facts.options.missing == "error":
        column = names[-1] if missing[0] in of_columns[-1] else names[0]
        broken = _problem("label_gap", column=quoted(column), text=quoted(missing[0]))
    elif of_columns[0].isdisjoint(of_columns[-1]) and len(of_columns[-1]) > 1:
        said = {"decisions": listed(sorted(of_columns[0])), "labels": listed(sorted(of_columns[-1]))}
        broken = _problem("disjoint", column=quoted(decision), **said)
    elif twins:
        broken = _problem("cases", labels=listed(twins))
    elif is_mixed or any(number % 1 for number in numbers):
        broken = _problem("kinds", column=quoted(decision), labels=listed(classes))
    kept = tuple(name for name in classes if name not in missing)
    yield Reading(Roles("decisions", [decision], kept), strength, doubt, broken)


def _numbers_of_classes(facts: Facts, reading: Reading, names: Sequence[str]) -> Iterator[Reading]:
    """Yield ``reading`` of decisions; if columns in ``names`` have numbers, they are those of the known classes."""
    roles = reading.roles
    if facts.called:
        yield reading._replace(roles=roles._replace(called=facts.called))
        return
    numbered = [name for name in facts.by_kind(names, "whole") if not facts.label_texts(name) <= {*roles.classes}]
    if not numbered or all(to_number(name) is not None for name in roles.classes):
        yield reading
        return
    size = len(roles.classes)
    possible = [first for first in (0, 1) if all(first in _first_numbers(facts, name, size) for name in numbered)]
    if not possible:
        yield reading
    for first in possible:
        called = tuple(str(first + place) for place in range(size))
        doubt = _problem("first_number", size=size) if len(possible) > 1 else reading.doubt
        yield reading._replace(roles=roles._replace(called=called), doubt=doubt)


# Columns that the user named


def _chosen(facts: Facts, labels: Labels, free: Sequence[str]) -> Iterator[Reading]:
    """Yield the readings of the score columns that ``--score-columns`` names, with their classes."""
    table, options, names = facts.table, facts.options, list[str]()
    for pattern in options.score_columns:
        matched = [name for name in free if fnmatchcase(name, pattern)] if "*" in pattern else [pattern]
        table.check_columns(matched or [pattern], "--score-columns")
        names += [name for name in matched if name not in names]
    both = next((name for name in names if name in labels.columns), None)
    if both is not None:
        raise facts.error("cannot be labels and predictions, too", column=both)
    bad = next((name for name in names if facts.kinds[name] == "text"), None)
    if bad is not None:
        value = next(value for value in facts.values[bad] if to_text(value) and to_number(value) is None)
        raise facts.error(f"must be numbers, but has {quoted(value)}", column=bad)
    if len(names) == 1 and facts.kinds[names[0]] == "list":
        for roles, _ in _lists(facts, labels, names):
            yield from _with_labels(facts, Reading(roles, CLASS_SCORES), labels.column)
        return
    if len(names) == 1:
        yield from _chosen_probability(facts, labels, names[0], free)
        return
    classes = facts.class_names
    family = next((each for each in numbered_families(names) if {*each[0]} == {*names}), None)
    if classes is not None:
        named = _by_known_class(facts, names) if facts.called or not options.classes else []
        if not named and len(classes) != len(names):
            problem = f"has {len(names)} columns of scores, but there are {len(classes)} classes: {listed(classes)}"
            raise facts.error(problem)
        roles = Roles("columns", named[0] if named else names, tuple(classes))
    elif family is not None:
        roles = Roles("columns", *family, is_numbered=True)
    else:
        roles = Roles("columns", names, _class_names(names, _words(facts, labels.column)))
    if labels.truth:
        yield Reading(roles, CLASS_SCORES)
    else:
        yield from _with_labels(facts, Reading(roles, CLASS_SCORES), labels.column)


def _chosen_probability(facts: Facts, labels: Labels, name: str, free: Sequence[str]) -> Iterator[Reading]:
    if labels.column is None and facts.class_names is None:
        raise facts.error("one column of scores needs labels: --label-column COLUMN")
    if facts.class_names is not None and len(facts.class_names) != 2:
        problem = f"has one score for each row, but there are {len(facts.class_names)} classes"
        raise facts.error(problem, column=name)
    decisions = [each for each, strength in _decision_columns(facts, labels, free) if strength > UNNAMED]
    yield from _probability(facts, labels.column, name, PROBABILITY, decisions)


def _problem(code: Code, **fields: Any) -> Problem:
    return Problem(code, fields)
