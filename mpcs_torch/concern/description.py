"""Describe a concern in tables and sentences, and find likely oversights in it."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpcs_torch.concern.checks import MAX_READABLE_CLASSES
from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.tables import Table

MAX_ROWS, MAX_PAIRS = 40, 10
"""The maximum number of rows in a table, and of pairs in warnings."""


def described(spec: ConcernSpec) -> tuple[str, Table, str]:
    """Return a summary of the errors, a table of costs or of released pairs, and sentences on all other settings."""
    size = len(spec.classes)
    errors, harmless = size * (size - 1), int(spec.released_array().sum())
    kind = "are released" if spec.weights is None else "are not dangerous"
    counts = f"{size} classes; of {errors} errors, {errors - harmless} are dangerous, and {harmless} {kind}"
    table = spec.table() if size <= MAX_READABLE_CLASSES else _released_table(spec)
    return counts, table, "\n".join(_facts(spec))


def _released_table(spec: ConcernSpec) -> Table:
    named = ([spec.classes[other] for other in row.nonzero()[0]] for row in spec.released_array())
    rows = [
        [name, str(len(others)), ", ".join(others)] for name, others in zip(spec.classes, named, strict=True) if others
    ]
    if len(rows) > MAX_ROWS:
        rows = [*rows[:MAX_ROWS], [f"and {len(rows) - MAX_ROWS} others", "", ""]]
    return Table(["true class", "released", "predicted as"], rows)


def _facts(spec: ConcernSpec) -> list[str]:
    facts: list[str] = []
    if len(spec.classes) <= MAX_READABLE_CLASSES:
        others = "; all others are released" if spec.weights is None else ""
        facts.append(f"The cost of each error; ! marks dangerous errors{others}.")
    if spec.weights is None:
        facts.append(f"Factor: a released error costs {spec.factor:g}, a dangerous one 1.")
    elif isinstance(spec.dangerous, int | float):
        facts.append(f"Dangerous: errors with a weight of at least {spec.dangerous:g}.")
    facts.append(_fact(spec.refer, "Referral", "none, every sample is decided"))
    answers = "; ".join(f"{name} costs {cost:g}" for name, cost in spec.answers)
    facts += [f"Coarse answers: {answers}, if the true class is in it."] if answers else []
    for group, members in spec.class_groups:
        facts.append(f"Group {group}: {', '.join(spec.classes[member] for member in members)}.")
    facts.append(_fact(spec.concession, "Concession", "default of MPCS, just below 0.005"))
    return facts


def _fact(value: Any, title: str, otherwise: str) -> str:
    if isinstance(value, tuple):
        return f"{title}: {', '.join(f'{cost:g}' for cost in value)}, by true class."
    return f"{title}: {otherwise if value is None else f'{value:g}'}."


def oversights(spec: ConcernSpec) -> Iterator[str]:
    """Yield a sentence for each setting that is valid but rarely intended, such as a pair released in one direction.

    Example:
        >>> list(oversights(ConcernSpec(["red", "green"], releases=[["red", "green"]])))
        ['red for green is tolerable, green for red is dangerous: one direction of a pair is released']
    """
    released, names = spec.released_array(), spec.classes
    count, pairs = int(released.sum()), len(names) * (len(names) - 1)
    if count == 0:
        yield "no error is released, so every error is dangerous"
    if count == pairs:
        yield "every error is released, so no error is dangerous"
    if spec.weights is None and spec.factor == 1 and count:
        yield "the factor is 1, so a released error costs as much as a dangerous one"
    if spec.weights is None or not isinstance(spec.dangerous, float | int):
        # Costs often differ by direction on purpose, unless one of them is 0.
        kind, free = ("is tolerable", released) if spec.weights is None else ("costs nothing", spec.matrix_array() == 0)
        one_way = np.argwhere(free & released & ~released.T).tolist()
        yield from (
            f"{names[true]} for {names[other]} {kind}, {names[other]} for {names[true]} is dangerous: "
            "one direction of a pair is released"
            for true, other in one_way[:MAX_PAIRS]
        )
        if len(one_way) > MAX_PAIRS:
            yield f"... and {len(one_way) - MAX_PAIRS} more pairs are released in one direction only"
    if spec.refer is not None:
        highest = float(spec.matrix().fill_diagonal_(0).max())
        costs = spec.refer if isinstance(spec.refer, Sequence) else [spec.refer]
        if min(costs) >= highest:
            yield f"a referral costs at least as much as the worst error ({highest:g}), so no sample is referred"
        if max(costs) == 0:
            yield "a referral costs nothing, so every sample that could be an error is referred"
