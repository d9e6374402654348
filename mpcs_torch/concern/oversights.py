"""Check a valid `ConcernSpec` for likely oversights."""

from collections.abc import Iterator, Sequence

import numpy as np

from mpcs_torch.concern.spec import ConcernSpec

MAX_PAIRS = 10
"""More would not be read."""


def oversights(spec: ConcernSpec) -> Iterator[str]:
    """Yield a sentence for each setting that is valid but rarely intended: a pair released in one direction only, etc.

    Raises:
        ValueError: If there are too many classes for a matrix of all pairs.

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
