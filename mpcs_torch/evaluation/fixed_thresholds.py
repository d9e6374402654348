"""Thresholds that were not chosen on the measured trials: fixed in advance, or learned from development trials."""

from collections.abc import Sequence
from math import isfinite
from numbers import Real
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional import DetectionCost, OperatingPoint
from mpcs_torch.functional.detection.area import check_rate, lowest_false_alarm, lowest_miss
from mpcs_torch.functional.detection.cost import EVEN, min_cost_from_counts
from mpcs_torch.functional.detection.equal_error_rate import equal_error_from_counts
from mpcs_torch.functional.detection.errors import (
    ErrorCounts,
    checked_scores,
    count_errors,
    midpoint,
)

Shown = Literal["cost", "half total error rate", "miss rate", "false-alarm rate"]


LIMITED = {
    "p_fa": ("miss_rate", "false alarms", lowest_miss),
    "p_miss": ("false_alarm_rate", "misses", lowest_false_alarm),
}
"""By the limit's argument: the metric of the other errors, the limited errors, and the function that returns the
thresholds with the fewest others."""


class FixedThreshold(NamedTuple):
    """A threshold, and the cost or error rate that is measured there."""

    name: str
    """The name of the value in tables."""
    title: str
    """The name of the value in sentences."""
    threshold: float
    """Trials with at least this score are accepted."""
    shown: Shown
    """The kind of value that is measured; ``"cost"`` is the normalised cost at ``point``."""
    point: OperatingPoint = EVEN

    @property
    def weights(self) -> tuple[float, float]:
        """The weights of the miss rate and of the false-alarm rate in the cost."""
        miss, false_alarm = self.point.weights
        scale = min(miss, false_alarm) if self.shown == "cost" else 1.0
        return miss / scale, false_alarm / scale

    def cost_value(self, cost: DetectionCost) -> Tensor:
        """Return the cost or error rate that ``shown`` names; ``cost`` has the costs and rates at the threshold."""
        rates = {
            "half total error rate": cost.cost,
            "miss rate": cost.p_miss,
            "false-alarm rate": cost.p_fa,
        }
        return cost.normalized if self.shown == "cost" else rates[self.shown]


Thresholds = float | FixedThreshold | Sequence[float | FixedThreshold]
"""Thresholds as arguments: a number stands for the values that `given_threshold` returns."""


def bayes_thresholds(points: Sequence[OperatingPoint]) -> list[FixedThreshold]:
    """Return the threshold of actual costs for each operating point: the Bayes threshold of log-likelihood ratios."""
    return [
        _cost("actual_cost[", "actual cost", point.bayes_threshold, point)
        for point in points
    ]


def _cost(name: str, title: str, threshold: float, point: OperatingPoint) -> FixedThreshold:
    """Return a `FixedThreshold` of the cost at ``threshold``; ``point`` is added as text to ``name`` and ``title``."""
    return FixedThreshold(
        f"{name}{point_key(point)}]", f"{title}, {point.label()}", threshold, "cost", point
    )


def point_key(point: OperatingPoint) -> str:
    """Return an operating point as text for the names of metrics, such as ``p=0.5``."""
    key = f"p={point.p_target:.15g}"
    if point.c_miss == point.c_fa == 1:
        return key
    return f"{key},c_miss={point.c_miss:.15g},c_fa={point.c_fa:.15g}"


def given_threshold(
    threshold: float, points: Sequence[OperatingPoint]
) -> list[FixedThreshold]:
    """Return the values to measure at ``threshold``: the costs at ``points``, and the half total error rate."""
    key = f"threshold={threshold:g}"
    costs = [
        _cost(f"cost[{key},", f"cost at {threshold:g}", threshold, point)
        for point in points
    ]
    name = f"half_total_error_rate[{key}]"
    title = f"half total error rate at {threshold:g}"
    return [*costs, FixedThreshold(name, title, threshold, "half total error rate")]


def as_fixed_thresholds(
    thresholds: Thresholds, points: Sequence[OperatingPoint]
) -> list[FixedThreshold]:
    """Return the values to measure at ``thresholds``; a number stands for those of `given_threshold`."""
    items: Any = thresholds
    if isinstance(items, Real | FixedThreshold):
        items = [items]
    require(isinstance(items, Sequence), "list_of_thresholds", "thresholds", thresholds)
    fixed = list[FixedThreshold]()
    for item in items:
        if isinstance(item, FixedThreshold):
            fixed.append(item)
            continue
        is_number = isinstance(item, Real) and isfinite(item)
        require(is_number, "list_of_thresholds", "thresholds", thresholds)
        fixed += given_threshold(float(item), points)
    return fixed


def learned_thresholds(
    preds: Tensor,
    target: Tensor,
    points: Sequence[OperatingPoint],
    *,
    p_fa: Sequence[float] = (),
    p_miss: Sequence[float] = (),
    at_minimum: bool = False,
) -> list[FixedThreshold]:
    """Learn thresholds from development trials: for minimum costs, equal error rates, and limits on error rates.

    Each threshold is the middle of an interval of thresholds that are equally good on these trials.

    Args:
        preds: ``(N,)`` scores of development trials. Costs and error rates are measured later, on other trials.
        target: ``(N,)`` labels of these trials, 1 or True for targets.
        points: The operating points of the minimum costs.
        p_fa: Limits on the false-alarm rate, in [0, 1]. Each limit adds the threshold with the lowest miss rate.
        p_miss: Limits on the miss rate, in [0, 1]. Each limit adds the threshold with the lowest false-alarm rate.
        at_minimum: Whether to add the threshold of the minimum half total error rate.

    Raises:
        ValueError: If the trials lack targets or non-targets, or a limit is outside [0, 1].
    """
    counts = count_errors(*checked_scores(preds, target))
    thresholds = list[FixedThreshold]()
    for point in points:
        threshold = min_cost_from_counts(counts, point).threshold.item()
        title = "cost at the development threshold"
        thresholds.append(_cost("cost[development,", title, threshold, point))
    nearest = equal_error_from_counts(counts, "nearest")
    equal = midpoint(nearest.low, nearest.high).item()
    ways = {"development": ("development threshold", equal)}
    if at_minimum:
        minimum = min_cost_from_counts(counts, EVEN).threshold.item()
        ways["development_minimum"] = ("development minimum", minimum)
    for key, (place, threshold) in ways.items():
        name = f"half_total_error_rate[{key}]"
        title = f"half total error rate at the {place}"
        thresholds.append(FixedThreshold(name, title, threshold, "half total error rate"))
    return [*thresholds, *limiting_thresholds(counts, p_fa, p_miss, are_learned=True)]


def limiting_thresholds(
    counts: ErrorCounts,
    p_fa: Sequence[float],
    p_miss: Sequence[float],
    *,
    are_learned: bool = False,
) -> list[FixedThreshold]:
    """Return, for each limit on an error rate, the threshold at which the other error rate is lowest.

    Limits in ``p_fa`` are on the false-alarm rate, limits in ``p_miss`` on the miss rate. ``counts`` are the errors of
    some trials at each threshold. With ``are_learned``, names and titles call these trials development trials.
    """
    key = "development," if are_learned else ""
    where = "the development threshold of " if are_learned else ""

    def at_limit(argument: str, limit: float, shown: Shown) -> FixedThreshold:
        check_rate(argument, limit)
        metric, limited, lowest = LIMITED[argument]
        name = f"{metric}[{key}{argument}={limit:g}]"
        title = f"{shown} at {where}{100 * limit:g} % {limited}"
        return FixedThreshold(
            name, title, _middle_threshold(counts, *lowest(counts, limit)), shown
        )

    of_misses = [at_limit("p_fa", limit, "miss rate") for limit in p_fa]
    return of_misses + [at_limit("p_miss", limit, "false-alarm rate") for limit in p_miss]


def _middle_threshold(counts: ErrorCounts, first: int, last: int) -> float:
    """Return the middle of thresholds ``first`` to ``last`` (indices); infinite if all or no trials are accepted."""
    if last == 0:
        return -torch.inf
    return midpoint(counts.thresholds[max(first - 1, 0)], counts.thresholds[last]).item()
