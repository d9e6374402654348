"""Match labels with classes: what the labels may call the classes of a reading, and in which order its scores are."""

from collections.abc import Iterator, Sequence
from itertools import pairwise, permutations
from typing import Any

from mpcs_torch.errors import Rule, numbered_families
from mpcs_torch.evaluation.files.facts import Facts, number_or_text
from mpcs_torch.evaluation.files.roles import Reading, Roles, label_numbers
from mpcs_torch.evaluation.files.tables import to_number
from mpcs_torch.evaluation.files.words import is_negated, is_positive, signed_labels

MAX_ORDERED = 3
"""The maximum number of classes whose orders are all listed."""


def call_classes(
    facts: Facts, reading: Reading, columns: Sequence[str]
) -> Iterator[Reading]:
    """Yield ``reading`` with all that the labels, or predicted labels, in ``columns`` may call its classes.

    Labels that are names of the classes need nothing else.
    """
    roles = reading.roles
    if facts.called:
        yield reading._replace(roles=roles._replace(called=facts.called))
        return
    is_unnamed = facts.class_names is None and (
        roles.form == "lists" or not facts.table.has_names
    )
    number = label_numbers(roles)
    others = [
        name for name in columns if is_unnamed or None in map(number, facts.labels(name))
    ]
    if not others:
        yield reading
        return
    numbered = [name for name in others if facts.kind(name) != "text"]
    ways: list[Roles] = []
    doubt: str | None = "which_order"
    if numbered:
        ways, doubt = _by_number(facts, roles, numbered, is_unnamed=is_unnamed)
    elif is_unnamed:
        ways = _in_any_order(facts, roles, others)
    elif facts.class_names is not None and len(roles.classes) == 2:
        # As 0 and 1, false and true are the classes in the order that the user names.
        signed = signed_labels(facts.labels(*others, in_all=True))
        doubt = None
        if signed:
            ways = [roles._replace(called=signed)]
    labels = sorted(facts.labels(*others), key=number_or_text)
    said: dict[str, Any] = {
        "columns": roles.scores,
        "labels": labels,
        "classes": roles.classes,
        "size": len(roles.classes),
    }
    for way in ways:
        first = (way.called or way.classes)[0]
        problem = Rule(doubt, **said, first=first) if doubt else reading.doubt
        yield reading._replace(roles=way, doubt=problem)
    # If only some labels are no classes, reading the rows names these; and decisions may be more than classes.
    is_decided = roles.form == "decisions"
    texts = facts.labels(others[0], in_all=is_decided)
    is_known = not numbered and not is_unnamed and {*map(number, texts)} != {None}
    may_be_further = is_decided and (bool(numbered) or facts.is_written)
    if not ways and (is_known or may_be_further):
        yield reading
    elif not ways:
        problem = Rule("no_class", labels=labels, column=others[0], classes=roles.classes)
        yield reading._replace(broken=reading.broken or problem)


def _in_any_order(facts: Facts, roles: Roles, columns: Sequence[str]) -> list[Roles]:
    """Return the roles with the labels as classes, in each order if they are few; none if they are too many."""
    labels = sorted(facts.labels(*columns, in_all=True), key=number_or_text)
    size = len(roles.classes)
    if len(labels) < size:  # the names of the others are not known
        return [roles]
    if len(labels) > size:
        return []
    orders = permutations(labels) if size <= MAX_ORDERED else iter([labels])
    return [roles._replace(classes=tuple(names)) for names in orders]


def _by_number(
    facts: Facts, roles: Roles, columns: Sequence[str], *, is_unnamed: bool
) -> tuple[list[Roles], str | None]:
    """Return the roles with each way in which numbers may call the classes, and the doubt if names do not tell one."""
    are_words = not is_unnamed and any(to_number(name) is None for name in roles.classes)
    if not are_words and facts.class_names is not None:
        return [], None
    names = _counted(facts, len(roles.classes), columns)
    doubt = None if is_unnamed else "by_place"
    if not names and not are_words:
        names = _ranked(facts, len(roles.classes), columns)
        doubt = "by_place"
    if not are_words:
        doubt = "first_number" if len(names) > 1 else doubt
        return [roles._replace(classes=called) for called in names], doubt
    families = [*numbered_families(roles.scores)]
    if facts.table.has_names and families and len(families[0][0]) == len(roles.scores):
        # The names of the columns have the numbers of the classes.
        columns_in_order, numbers = families[0]
        number_of = dict(zip(columns_in_order, numbers, strict=True))
        called = tuple(number_of[name] for name in roles.scores)
        return [roles._replace(called=called)], None
    orders, is_doubted = _orders(facts, roles, names)
    doubt = None
    if is_doubted:
        doubt = "which_number"
    elif len(names) > 1:
        doubt = "first_number"
    return [order._replace(called=called) for called in names for order in orders], doubt


def _orders(
    facts: Facts, roles: Roles, names: Sequence[Sequence[str]]
) -> tuple[list[Roles], bool]:
    """Return the orders of the classes that numbers may mean, and whether it takes the user to tell which one."""
    if facts.class_names is not None or facts.options.score_columns:
        return [roles], False
    turned = roles._replace(scores=roles.scores[::-1], classes=roles.classes[::-1])
    for order in (roles, turned):
        is_positive_last = [*map(is_positive, order.classes)] == [False, True]
        if is_positive_last and ("0", "1") in names:  # 1 is yes
            return [order], False
    if len(roles.classes) == 2:  # more likely, 1 is what 0 is not
        return sorted(
            [roles, turned], key=lambda order: not is_negated(order.classes[0])
        ), True
    return [roles], True


def _counted(facts: Facts, size: int, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the numbers of the classes from 0, or from 1, or both if all rows have labels that fit both."""
    fitting = [tuple(str(first + place) for place in range(size)) for first in (0, 1)]
    for in_all in (False, True):
        labels = facts.labels(*columns, in_all=in_all)
        fitting = [names for names in fitting if labels <= {*names}]
        if len(fitting) < 2 or facts.table.counts_from_0:
            break
    return fitting[:1] if facts.table.counts_from_0 else fitting


def _ranked(facts: Facts, size: int, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the labels in the order of their numbers, if these are consecutive, or -1 and 1."""
    labels = sorted(facts.labels(*columns, in_all=True), key=number_or_text)
    numbers = [
        number
        for number in map(to_number, labels)
        if number is not None and number % 1 == 0
    ]
    if not len(labels) == len(numbers) == size:
        return []
    are_steps = all(high - low == 1 for low, high in pairwise(numbers))
    return [tuple(labels)] if are_steps or numbers == [-1, 1] else []
