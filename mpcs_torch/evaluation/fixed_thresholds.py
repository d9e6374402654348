"""Thresholds that were not chosen on the trials that are measured: given ones, and those of development trials."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional import DetectionCost, OperatingPoint
from mpcs_torch.functional.detection.area import check_rate, lowest_false_alarm, lowest_miss
from mpcs_torch.functional.detection.cost import min_cost_of
from mpcs_torch.functional.detection.equal_error_rate import equal_error_of
from mpcs_torch.functional.detection.errors import ErrorCounts, checked_scores, count_errors, hull_vertices, middle_of

Shown = Literal["cost", "half total error rate", "miss rate", "false-alarm rate"]
EVEN = OperatingPoint(0.5)
"""Its raw cost is the half total error rate."""


class FixedThreshold(NamedTuple):
    """A threshold, and which of its consequences is measured."""

    name: str
    """Of the value, as tables show it."""
    title: str
    """Of the value, as a sentence says it."""
    threshold: float
    """Scores of at least this are accepted."""
    shown: Shown
    """``"cost"``: the normalised cost at the operating point."""
    point: OperatingPoint = EVEN

    @property
    def weights(self) -> tuple[float, float]:
        """The weights of the miss rate and of the false-alarm rate in what is measured."""
        miss, false_alarm = self.point.weights
        scale = min(miss, false_alarm) if self.shown == "cost" else 1.0
        return miss / scale, false_alarm / scale

    def value_of(self, cost: DetectionCost) -> Tensor:
        """Return what is measured, from the costs and rates at the threshold."""
        rates = {"half total error rate": cost.cost, "miss rate": cost.p_miss, "false-alarm rate": cost.p_fa}
        return cost.normalized if self.shown == "cost" else rates[self.shown]


def bayes_thresholds(points: Sequence[OperatingPoint]) -> list[FixedThreshold]:
    """Return the thresholds for log-likelihood ratios, with the actual costs there."""
    return [
        FixedThreshold(
            f"actual_cost[{key_of(point)}]", f"actual cost, {point.label()}", point.bayes_threshold, "cost", point
        )
        for point in points
    ]


def key_of(point: OperatingPoint) -> str:
    """Return an operating point as the name of a metric has it."""
    costs = "" if point.c_miss == point.c_fa == 1 else f",c_miss={point.c_miss:.15g},c_fa={point.c_fa:.15g}"
    return f"p={point.p_target:.15g}{costs}"


def given_threshold(threshold: float, points: Sequence[OperatingPoint]) -> list[FixedThreshold]:
    """Return a threshold with the cost of each operating point, and with the half total error rate."""
    key = f"threshold={threshold:g}"
    costs = [
        FixedThreshold(
            f"cost[{key},{key_of(point)}]", f"cost at {threshold:g}, {point.label()}", threshold, "cost", point
        )
        for point in points
    ]
    half = f"half total error rate at {threshold:g}"
    return [*costs, FixedThreshold(f"half_total_error_rate[{key}]", half, threshold, "half total error rate")]


def learned_thresholds(
    preds: Tensor,
    target: Tensor,
    points: Sequence[OperatingPoint],
    *,
    p_fa: Sequence[float] = (),
    p_miss: Sequence[float] = (),
    at_minimum: bool = False,
) -> list[FixedThreshold]:
    """Learn thresholds from development trials: of minimum costs, of equal error rates, and of limited error rates.

    Each is the middle of the interval of thresholds that are equally good: scores near its ends can be far from as good
    on other trials.

    Args:
        preds: ``(N,)`` scores, by the same detector, of trials that are not those to be measured.
        target: ``(N,)`` their labels, 1 or True for targets.
        points: The operating points of the minimum costs.
        p_fa: The highest false-alarm rates at which the miss rate is wanted, each in [0, 1].
        p_miss: The highest miss rates at which the false-alarm rate is wanted, each in [0, 1].
        at_minimum: Whether the half total error rate is wanted at the threshold of its minimum, too.

    Raises:
        ValueError: If the trials lack targets or non-targets, or a rate breaks its rule.
    """
    counts, thresholds = count_errors(*checked_scores(preds, target)), list[FixedThreshold]()
    vertices = hull_vertices(counts)
    for point in points:
        threshold = min_cost_of(counts, vertices, point).threshold.item()
        title = f"cost at the development threshold, {point.label()}"
        thresholds.append(FixedThreshold(f"cost[development,{key_of(point)}]", title, threshold, "cost", point))
    nearest = equal_error_of(counts, "nearest")
    threshold = middle_of(nearest.low, nearest.high).item()
    name, half = "half_total_error_rate[development]", "half total error rate"
    thresholds.append(FixedThreshold(name, f"{half} at the development threshold", threshold, "half total error rate"))
    if at_minimum:
        threshold = min_cost_of(counts, vertices, EVEN).threshold.item()
        name = "half_total_error_rate[development_minimum]"
        title = f"{half} at the development minimum"
        thresholds.append(FixedThreshold(name, title, threshold, "half total error rate"))
    return [*thresholds, *limiting_thresholds(counts, p_fa, p_miss, are_learned=True)]


def limiting_thresholds(
    counts: ErrorCounts, p_fa: Sequence[float], p_miss: Sequence[float], *, are_learned: bool = False
) -> list[FixedThreshold]:
    """Return the thresholds of the lowest miss rates under limits on false alarms, and the reverse.

    Args:
        counts: Of the trials by which they are chosen.
        p_fa: As in `learned_thresholds`, and so is ``p_miss``.
        p_miss: The highest miss rates.
        are_learned: Whether they are those of development trials, as names say.

    Raises:
        ValueError: If a rate breaks its rule.
    """
    thresholds = []
    key, where = ("development,", "the development threshold of ") if are_learned else ("", "")
    for limit in p_fa:
        check_rate("p_fa", limit)
        threshold = _middle_of(counts, *lowest_miss(counts, limit))
        title = f"miss rate at {where}{100 * limit:g} % false alarms"
        thresholds.append(FixedThreshold(f"miss_rate[{key}p_fa={limit:g}]", title, threshold, "miss rate"))
    for limit in p_miss:
        check_rate("p_miss", limit)
        threshold = _middle_of(counts, *lowest_false_alarm(counts, limit))
        title = f"false-alarm rate at {where}{100 * limit:g} % misses"
        name = f"false_alarm_rate[{key}p_miss={limit:g}]"
        thresholds.append(FixedThreshold(name, title, threshold, "false-alarm rate"))
    return thresholds


def _middle_of(counts: ErrorCounts, first: int, last: int) -> float:
    """Return the middle of equally good thresholds; infinite to accept or reject all."""
    if last == 0:
        return -torch.inf
    return middle_of(counts.thresholds[max(first - 1, 0)], counts.thresholds[last]).item()
