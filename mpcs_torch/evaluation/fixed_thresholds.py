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
    return [FixedThreshold(f"actual cost, {point.label()}", point.bayes_threshold, "cost", point) for point in points]


def given_threshold(threshold: float, points: Sequence[OperatingPoint]) -> list[FixedThreshold]:
    """Return a threshold with the cost of each operating point, and with the half total error rate."""
    costs = [FixedThreshold(f"cost at {threshold:g}, {point.label()}", threshold, "cost", point) for point in points]
    return [*costs, FixedThreshold(f"half total error rate at {threshold:g}", threshold, "half total error rate")]


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
        name = f"cost at the development threshold, {point.label()}"
        thresholds.append(FixedThreshold(name, threshold, "cost", point))
    nearest = equal_error_of(counts, "nearest")
    threshold = middle_of(nearest.low, nearest.high).item()
    name = "half total error rate at the development threshold"
    thresholds.append(FixedThreshold(name, threshold, "half total error rate"))
    if at_minimum:
        threshold = min_cost_of(counts, vertices, EVEN).threshold.item()
        name = "half total error rate at the development minimum"
        thresholds.append(FixedThreshold(name, threshold, "half total error rate"))
    return [*thresholds, *limiting_thresholds(counts, p_fa, p_miss, "the development threshold of ")]


def limiting_thresholds(
    counts: ErrorCounts, p_fa: Sequence[float], p_miss: Sequence[float], where: str = ""
) -> list[FixedThreshold]:
    """Return the thresholds of the lowest miss rates under limits on false alarms, and the reverse.

    Args:
        counts: Of the trials by which they are chosen.
        p_fa: As in `learned_thresholds`, and so is ``p_miss``.
        p_miss: The highest miss rates.
        where: Stands before a rate in the names.

    Raises:
        ValueError: If a rate breaks its rule.
    """
    thresholds = []
    for limit in p_fa:
        check_rate("p_fa", limit)
        threshold = _middle_of(counts, *lowest_miss(counts, limit))
        name = f"miss rate at {where}{100 * limit:g} % false alarms"
        thresholds.append(FixedThreshold(name, threshold, "miss rate"))
    for limit in p_miss:
        check_rate("p_miss", limit)
        threshold = _middle_of(counts, *lowest_false_alarm(counts, limit))
        name = f"false-alarm rate at {where}{100 * limit:g} % misses"
        thresholds.append(FixedThreshold(name, threshold, "false-alarm rate"))
    return thresholds


def _middle_of(counts: ErrorCounts, first: int, last: int) -> float:
    """Return the middle of equally good thresholds; infinite to accept or reject all."""
    if last == 0:
        return -torch.inf
    return middle_of(counts.thresholds[max(first - 1, 0)], counts.thresholds[last]).item()
