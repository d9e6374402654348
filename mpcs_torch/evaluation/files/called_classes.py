"""Match labels with classes: what the labels may call the classes of a reading, and in which order its scores are."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, permutations
from typing import Literal, NamedTuple

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.facts import Facts, number_or_text, numbered_families, span
from mpcs_torch.evaluation.files.problems import Code, Problem
from mpcs_torch.evaluation.files.roles import Reading, Roles
from mpcs_torch.evaluation.files.tables import is_gap, listed, to_number
from mpcs_torch.evaluation.files.words import is_positive

MAX_ORDERED = 3
"""The maximum number of classes whose orders are all listed."""


class Way(NamedTuple):
    """A way in which labels may call classes."""

    classes: Literal["unnamed", "words", "numbers"]
    """The kind of classes that are known: only that each has a score, or names that are words or numbers."""
    labels: Literal["words", "numbers"]
    names: Callable[[Facts, Roles, Sequence[str]], list[tuple[str, ...]]]
    """A function of the facts, the roles, and the columns of labels. It returns what labels may call the classes, in
    the order of the scores; several tuples if several are possible, none if this is not the way."""
    doubt: Code | None = None
    """The doubt about this way, even if only one is possible."""


def call_classes(facts: Facts, reading: Reading, columns: Sequence[str]) -> Iterator[Reading]:
    """Yield ``reading`` with all that the labels, or predicted labels, in ``columns`` may call its classes.

    Labels that are names of the classes need nothing else. For others, the first of `WAYS` counts that is possible.
    """
    roles = reading.roles
    if facts.called:
        yield reading._replace(roles=roles._replace(called=facts.called))
        return
    is_unnamed = facts.class_names is None and (roles.form == "lists" or not facts.table.has_names)
    others = [name for name in columns if is_unnamed or not facts.label_texts(name) <= {*roles.classes}]
    if not others:
        yield reading
        return
    numbered = [name for name in others if facts.kind(name) != "text"]
    are_numbers = all(to_number(name) is not None for name in roles.classes)
    classes = "unnamed" if is_unnamed else "numbers" if are_numbers else "words"
    labels = "numbers" if numbered else "words"
    for way in WAYS:
        names = way.names(facts, roles, numbered or others) if (way.classes, way.labels) == (classes, labels) else []
        if names:
            yield from _called(facts, reading, way, names, others)
            return
    # If only some labels are no classes, reading the rows names these; and decisions may be more than classes.
    is_known = labels == "words" and not is_unnamed and not facts.label_texts(others[0]).isdisjoint(roles.classes)
    if is_known or roles.form == "decisions":
        yield reading
    else:
        said = {"labels": listed(sorted(facts.label_texts(others[0]))), "classes": listed(roles.classes)}
        yield reading._replace(broken=Problem("no_class", {"column": quoted(others[0]), **said}))


def _called(
    facts: Facts, reading: Reading, way: Way, names: Sequence[tuple[str, ...]], columns: Sequence[str]
) -> Iterator[Reading]:
    """Yield ``reading`` with each of the ``names`` that labels in ``columns`` may have for its classes by this way."""
    roles = reading.roles
    fields = {"columns": span(roles.scores), "classes": listed(roles.classes), "size": len(roles.classes)}
    fields["labels"] = listed(sorted(set[str]().union(*map(facts.label_texts, columns)), key=number_or_text))
    for called in names:
        orders, doubt = _orders(facts, roles, way, called)
        if doubt is None and len(names) > 1:
            doubt = "first_number"
        problem = reading.doubt if doubt is None else Problem(doubt, {"first": called[0], **fields})
        for order in orders:
            replaced = order._replace(called=called) if way.classes == "words" else order._replace(classes=called)
            yield reading._replace(roles=replaced, doubt=problem)


def _orders(facts: Facts, roles: Roles, way: Way, called: Sequence[str]) -> tuple[list[Roles], Code | None]:
    """Return the orders of the classes that may be meant by ``called``, and the doubt if the names do not tell one."""
    is_said = facts.class_names is not None or bool(facts.options.score_columns)
    if way.doubt != "which_number":
        return [roles], way.doubt
    if is_said:
        return [roles], None
    turned = roles._replace(scores=roles.scores[::-1], classes=roles.classes[::-1])
    for order in (roles, turned):
        is_positive_last = [*map(is_positive, order.classes)] == [False, True]
        if is_positive_last and [*called] == ["0", "1"]:  # 1 is yes
            return [order], None
    return [turned, roles] if len(roles.classes) == 2 else [roles], way.doubt


def _all_labels(facts: Facts, columns: Sequence[str]) -> list[str]:
    """Return the labels in all rows, sorted; words that mean a missing value only if there are no other labels."""
    texts = set[str]().union(*map(facts.all_texts, columns))
    return sorted({text for text in texts if not is_gap(text)} or texts, key=number_or_text)


def _in_any_order(facts: Facts, roles: Roles, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the labels in each order if they are few; nothing if they are more than the scores."""
    labels, size = _all_labels(facts, columns), len(roles.classes)
    if len(labels) < size:  # the names of the others are not known
        return [tuple(roles.classes)]
    if len(labels) > size:
        return []
    return [*permutations(labels)] if size <= MAX_ORDERED else [tuple(labels)]


def _counted(facts: Facts, roles: Roles, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the numbers of the classes from 0, or from 1, or both if all rows have labels that fit both."""
    size = len(roles.classes)
    both = [tuple(str(first + place) for place in range(size)) for first in (0, 1)]
    fitting = list[tuple[str, ...]]()
    for texts_of in (facts.label_texts, facts.all_texts):
        texts = {text for name in columns for text in texts_of(name) if not is_gap(text)}
        fitting = [names for names in both if texts <= {*names}]
        if len(fitting) < 2:
            return fitting
        if facts.table.counts_from_0:
            return both[:1]
    return fitting


def _ranked(facts: Facts, roles: Roles, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the labels in the order of their numbers, if these are consecutive, or -1 and 1, or numbers from 1."""
    labels, size = _all_labels(facts, columns), len(roles.classes)
    if facts.class_names is not None:
        return []
    numbers = [number for label in labels if (number := to_number(label)) is not None and number % 1 == 0]
    steps = {two - one for one, two in pairwise(numbers)}
    if len(labels) == len(numbers) == size and (steps == {1} or numbers == [-1, 1]):
        return [tuple(labels)]
    from_1 = tuple(str(place) for place in range(1, size + 1))
    return [from_1] if {*labels} <= {*from_1} else []


def _in_columns(facts: Facts, roles: Roles, _: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the numbers in the names of the columns of scores."""
    families = [dict(zip(*each, strict=True)) for each in numbered_families(roles.scores)]
    known = next((numbers for numbers in families if len(numbers) == len(roles.scores)), None)
    if known is None or not facts.table.has_names:
        return []
    return [tuple(known[name] for name in roles.scores)]


WAYS = (
    Way("unnamed", "words", _in_any_order, "which_order"),
    Way("unnamed", "numbers", _counted),
    Way("unnamed", "numbers", _ranked, "by_place"),
    Way("numbers", "numbers", _ranked, "by_place"),
    Way("words", "numbers", _in_columns),
    Way("words", "numbers", _counted, "which_number"),
)
"""All ways in which labels that are not the names of classes may call these, the most likely first."""
