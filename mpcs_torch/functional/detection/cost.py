"""What misses and false alarms cost at an operating point: DCF, its minimum, and what a threshold makes of it."""

from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.convex_hull import hull_vertices
from mpcs_torch.functional.detection.curve import ErrorCounts, middle_of, observed_errors
from mpcs_torch.functional.detection.operating_point import OperatingPoint, check_point


class DetectionCost(NamedTuple):
    """Costs at an operating point, and where they come from: float64 scalars."""

    cost: Tensor
    """As it stands, in units of c_miss and c_fa."""
    normalized: Tensor
    """The cost as a share of what always accepting or always rejecting costs, whichever is less."""
    p_miss: Tensor
    p_fa: Tensor
    threshold: Tensor
    """The one that the rates are of."""


def detection_cost(
    preds: Tensor, target: Tensor, *, threshold: float, p_target: float, c_miss: float = 1.0, c_fa: float = 1.0
) -> DetectionCost:
    r"""The detection cost at a threshold, such as one from a development set; lower is better.

    .. math:: DCF(t) = c_{miss} \, p \, P_{miss}(t) + c_{fa} (1 - p) P_{fa}(t)

    It comes with its share of :math:`\min(c_{miss} \, p, c_{fa} (1 - p))`, which a constant decision costs:
    ``normalized``, which is 1 where it is no better not to look at the scores.

    Args:
        preds: ``(N,)`` scores, floating point, higher for targets; of any range.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for nontargets; both must occur.
        threshold: Scores of at least this are accepted; not NaN.
        p_target: p, the frequency of targets in use, in (0, 1).
        c_miss: Cost of rejecting a target, above 0.
        c_fa: Cost of accepting a nontarget, above 0.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Martin, Greenberg: The NIST 2010 speaker recognition evaluation, Interspeech 2010; Brummer, de Villiers: The
        BOSARIS toolkit user guide, 2011.

    Example:
        >>> cost = detection_cost(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]), threshold=0.5, p_target=0.5)
        >>> cost.cost
        tensor(0.2500, dtype=torch.float64)
    """
    point = check_point(OperatingPoint(p_target, c_miss, c_fa))
    check_threshold(threshold)
    return cost_at(observed_errors(preds, target), point, threshold)


def min_detection_cost(
    preds: Tensor, target: Tensor, *, p_target: float, c_miss: float = 1.0, c_fa: float = 1.0
) -> DetectionCost:
    """The least detection cost that a threshold can have on these scores, those that accept or reject all included.

    The threshold that is reported is the middle of the best interval (where several tie, of the widest bounded one):
    thresholds that are equally good here can differ widely on new scores, and the middle is farthest from where they
    stop being good. It is infinite where accepting or rejecting all is best; to reject all is a choice even where a
    score of +inf would be accepted at every threshold.

    Arguments and errors are those of `detection_cost`.

    Example:
        >>> cost = min_detection_cost(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]), p_target=0.5)
        >>> cost.cost, cost.threshold
        (tensor(0., dtype=torch.float64), tensor(0.2500, dtype=torch.float64))
    """
    point = check_point(OperatingPoint(p_target, c_miss, c_fa))
    counts = observed_errors(preds, target)
    return min_cost_of(counts, hull_vertices(counts), point)


def cost_at(counts: ErrorCounts, point: OperatingPoint, threshold: float) -> DetectionCost:
    """The cost at a threshold."""
    wanted = counts.thresholds.new_tensor(threshold)
    place = torch.searchsorted(counts.thresholds, wanted).clamp(max=len(counts.thresholds) - 1)
    return _costs_of(counts, point, place)._replace(threshold=wanted)


def min_cost_of(counts: ErrorCounts, vertices: Tensor, point: OperatingPoint) -> DetectionCost:
    """The least cost, at the middle of the best interval: a bounded one if there is one, and of those the widest.

    Args:
        counts: Of all thresholds.
        vertices: Where those of their convex hull are: no threshold costs less than the best of these.
        point: Checked.
    """
    tied = _where_least(counts, point, vertices)
    between = torch.arange(int(tied[0]), int(tied[-1]) + 1, device=tied.device)  # no others can tie with these
    best = _where_least(counts, point, between)
    breaks = best.diff() > 1
    first, last = best[torch.cat([breaks.new_ones(1), breaks])], best[torch.cat([breaks, breaks.new_ones(1)])]
    low = torch.where(first > 0, counts.thresholds[first - 1], -inf)
    high = counts.thresholds[last]
    widest = torch.where(low.isinf() | high.isinf(), -1.0, high - low).argmax()
    first, last, low, high = first[widest], last[widest], low[widest], high[widest]
    accepts_all = (first == 0) & high.isfinite()
    threshold = torch.where(accepts_all, -inf, middle_of(low, high))
    # Thresholds that tie may differ in their rates: those of this one.
    place = torch.searchsorted(counts.thresholds, threshold).clamp(first, last)
    return _costs_of(counts, point, place)._replace(threshold=threshold)


def check_threshold(threshold: float) -> None:
    """Refuse what is no number."""
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or threshold != threshold:
        raise ValueError(f"threshold must be a number, but got {threshold!r}.")


def _costs_of(counts: ErrorCounts, point: OperatingPoint, places: Tensor) -> DetectionCost:
    """At thresholds of the curve."""
    miss, false_alarm = point.weights
    p_miss = counts.misses[places].double() / counts.targets
    p_fa = counts.false_alarms[places].double() / counts.nontargets
    cost = miss * p_miss + false_alarm * p_fa
    return DetectionCost(cost, cost / min(miss, false_alarm), p_miss, p_fa, counts.thresholds[places])


def _where_least(counts: ErrorCounts, point: OperatingPoint, places: Tensor) -> Tensor:
    costs = _costs_of(counts, point, places).cost
    # Rounding must not part thresholds that tie: their costs differ by whole errors, or not at all.
    return places[costs <= costs.min() * (1 + 1e-12)]
