"""Compare the mean costs of models, or of ways of deciding, over a grid of costs: the picture of a verdict."""

from collections.abc import Mapping, Sequence
from math import log10
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional.comparison.means import mean_of
from mpcs_torch.functional.concern.decision import least_risk

POINTS = 25
"""Of each axis of the grid."""
LOWEST_RELEASED, LOWEST_PRICE = 0.01, 0.001
"""The lowest costs of the grid, relative to a dangerous error."""
CONFIDENCE = 0.95
WAYS = ("most probable class", "by cost, no referral", "by cost, with referral")


class Verdict(NamedTuple):
    """Hold what costs least at each point of a grid of costs, relative to the highest cost of a dangerous error.

    Where no error is released, the dearest errors stand for the dangerous ones.
    """

    names: Sequence[str]
    """Of what is compared: models, or ways of deciding of one model."""
    released: Tensor
    """(X,): the highest cost of the other errors, which keep their ratios."""
    prices: Tensor
    """(Y,): the (highest) cost of a referral."""
    cheapest: Tensor
    """(Y, X), int64: the place in `names` of what costs least on these rows."""
    is_shown: Tensor
    """(Y, X), bool: whether its 95 % interval, paired with the next, shows that."""
    now: tuple[float | None, float | None]
    """The costs of the concern; None for one that it does not have."""
    against: str
    """The errors that cost 1 at most: "dangerous" ones, or where none is released, the "dearest" ones."""
    rows: int


def verdict_of(models: Mapping[str, Rows], concern: ConcernSpec) -> Verdict | None:
    """Compare what decisions cost over the costs of released errors and of a referral.

    Several models decide at each point by minimum expected cost, with referral, unless their decisions are given. One
    model is compared with itself: deciding for the most probable class, by cost, and by cost with referral. Intervals
    are those of paired differences of rows or clusters that no more than a dearest error is known of (Gaffke's bound),
    so that they hold however rare it is; each is of one point alone.

    Args:
        models: The same rows of each model, by name.
        concern: What errors cost now.

    Returns:
        None for one model whose decisions are given, which leaves nothing to compare, or for models with other rows.
    """
    first = next(iter(models.values()))
    if any(not each.ids.equal(first.ids) for each in models.values()):
        return None
    is_given = not first.probs.is_floating_point()
    if is_given and len(models) == 1:
        return None
    errors, dangerous, against = concern.matrix().fill_diagonal_(0), concern.dangerous_pairs(), "dangerous"
    if not dangerous.any() or not (errors[~dangerous] > 0).any():
        dangerous, against = errors == errors.max(), "dearest"
    unit = errors[dangerous].max().item()
    errors = errors / unit
    free = torch.where(dangerous, 0.0, errors)
    price = None if concern.refer is None else torch.as_tensor(concern.refer, dtype=torch.float64).max().item() / unit
    now = free.max().item() or None, price
    released = _points(LOWEST_RELEASED, now[0])
    prices = _points(LOWEST_PRICE, now[1])
    clusters = first.ids.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
    units = None if int(clusters.max()) + 1 == len(clusters) else clusters
    cheapest, is_shown = (torch.zeros(POINTS, POINTS, dtype=kind) for kind in (torch.int64, torch.bool))
    for x, of_released in enumerate(released.tolist()):
        pairs = torch.where(dangerous, errors, free * (of_released / (now[0] or 1)))
        for y, of_referral in enumerate(prices.tolist()):
            costs = _with_answers(concern, pairs, unit, of_referral)
            rows = _row_costs(models, costs, is_given=is_given)
            cheapest[y, x], is_shown[y, x] = _least(rows, units, costs.max().item())
    names = WAYS if len(models) == 1 else list(models)
    return Verdict(names, released, prices, cheapest, is_shown, now, against, len(first.ids))


def _points(lowest: float, now: float | None) -> Tensor:
    """Return the points of an axis, which has the costs of now well within."""
    ends = [lowest, 1.0] if not now else [min(lowest, now / 3), max(1.0, 1.5 * now)]
    return torch.logspace(log10(ends[0]), log10(ends[1]), POINTS, dtype=torch.float64)


def _with_answers(concern: ConcernSpec, pairs: Tensor, unit: float, price: float) -> Tensor:
    """Return the costs of errors (C, C) with those of coarse answers and a referral: (C, C + A + 1)."""
    by_class = torch.as_tensor(1.0 if concern.refer is None else concern.refer, dtype=torch.float64)
    by_class = by_class / by_class.max() if by_class.max() > 0 else torch.ones_like(by_class)
    referral = (price * by_class).expand(len(pairs)).unsqueeze(1)
    return torch.cat([concern.with_answers(pairs, scale=1 / unit), referral], dim=1)


def _row_costs(models: Mapping[str, Rows], costs: Tensor, *, is_given: bool) -> Tensor:
    """Return what the decision for each row costs: (M, n) for M models, or ways of deciding of one."""
    last, targets = costs.shape[1] - 1, [rows.target for rows in models.values()]
    if is_given:
        decided = [torch.where(rows.probs[:, 0] < 0, last, rows.probs[:, 0]) for rows in models.values()]
    else:
        decided = [least_risk(rows.probs, costs) for rows in models.values()]
        if len(models) == 1:
            scores = next(iter(models.values())).probs
            decided, targets = [scores.argmax(1), least_risk(scores, costs[:, : len(costs)]), *decided], targets * 3
    return torch.stack([costs[target, decisions] for target, decisions in zip(targets, decided, strict=True)])


def _least(costs: Tensor, units: Tensor | None, highest: float) -> tuple[int, bool]:
    """Return which of M costs of rows (M, n) has the lowest mean, and whether its intervals with all others show it.

    The first ones win ties. ``units`` are the clusters of rows (n,), from 0, and None if rows are independent.
    """
    totals = costs.sum(1)
    best = int((totals <= totals.min() * (1 + 1e-12)).long().argmax())
    others = [other for other in costs if not torch.equal(other, costs[best])]
    if not others:
        return best, False
    others.sort(key=lambda other: other.sum().item())  # the next one decides most often, so it is tried first
    possible = (-highest, highest)
    return best, all(mean_of(other - costs[best], possible, units).end(0, CONFIDENCE) > 0 for other in others)
