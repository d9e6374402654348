"""Operating points, and the detection cost (DCF), at the best threshold or at a given one."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf, isnan, log
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.detection.errors import ErrorCounts, midpoint
from mpcs_torch.functional.detection.trial_measure import (
    BinaryTrials,
    ClassAverage,
    DetectorStatistic,
)

MIN_WEIGHT = 1e-300
"""The smallest valid product of a cost and a prior; smaller ones could underflow."""


@dataclass(frozen=True)
class OperatingPoint:
    """The prior probability of a target, and the costs of errors, in one application of a detector.

    Raises:
        ValueError: If the prior is not in (0, 1), or a cost not finite and above 0.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011.

    Example:
        >>> round(OperatingPoint(0.01, c_miss=10).effective_prior, 4), round(OperatingPoint(0.01).bayes_threshold, 4)
        (0.0917, 4.5951)
    """

    p_target: float
    """The prior probability of a target, in (0, 1)."""
    c_miss: float = 1.0
    """The cost of rejecting a target, above 0."""
    c_fa: float = 1.0
    """The cost of accepting a non-target, above 0."""

    def __post_init__(self) -> None:
        """Check the prior and the costs, and that their products do not underflow."""
        is_open = 0 < self.p_target < 1
        require(is_open, "open_between", "p_target", self.p_target, minimum=0, maximum=1)
        require(0 < self.c_miss < inf, "finite_above", "c_miss", self.c_miss, minimum=0)
        require(0 < self.c_fa < inf, "finite_above", "c_fa", self.c_fa, minimum=0)
        lowest = min(self.weights)
        names = "p_target * c_miss and (1 - p_target) * c_fa"
        require(lowest >= MIN_WEIGHT, "at_least", names, lowest, minimum=MIN_WEIGHT)

    def label(self) -> str:
        """Return a label for figures and tables: the prior, and the costs unless both are 1."""
        prior = f"p = {self.p_target:.15g}"
        if self.c_miss == 1 and self.c_fa == 1:
            return prior
        return f"{prior}, costs {self.c_miss:.15g} and {self.c_fa:.15g}"

    @property
    def weights(self) -> tuple[float, float]:
        """The cost of a miss times the target prior, and the cost of a false alarm times the non-target prior."""
        return self.c_miss * self.p_target, self.c_fa * (1 - self.p_target)

    @property
    def effective_prior(self) -> float:
        r"""The prior with which costs of 1 give the same decisions: sigmoid(logit(p_target) + log(c_miss / c_fa))."""
        miss, false_alarm = self.weights
        return miss / (miss + false_alarm)

    @property
    def bayes_threshold(self) -> float:
        """The log-likelihood ratio above which accepting costs less than rejecting: -logit of the effective prior."""
        miss, false_alarm = self.weights
        return log(false_alarm) - log(miss)


EVEN = OperatingPoint(0.5)
"""The operating point whose raw cost is the half total error rate, the mean of both error rates."""


def as_points(
    points: OperatingPoint | Sequence[OperatingPoint],
) -> tuple[OperatingPoint, ...]:
    """Return one operating point, or a sequence of them, as a tuple; refuse anything else."""
    sequence: Sequence[Any] = points if isinstance(points, Sequence) else [points]
    for point in sequence:
        is_point = isinstance(point, OperatingPoint)
        require(is_point, "instance", "points", point, type="OperatingPoint")
    return tuple(sequence)


class DetectionCost(NamedTuple):
    """The detection cost at each operating point, and the threshold and error rates that give this cost: float64."""

    cost: Tensor
    """The raw cost, in the unit of c_miss and c_fa."""
    normalized: Tensor
    """The raw cost divided by that of the better constant decision (accept all or reject all)."""
    p_miss: Tensor
    p_fa: Tensor
    threshold: Tensor


def min_detection_cost(
    preds: Tensor,
    target: Tensor,
    *,
    points: OperatingPoint | Sequence[OperatingPoint],
    num_classes: int | None = None,
    normalize: bool = True,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the minimum detection cost over all thresholds, including accept all and reject all; lower is better.

    At a threshold t, the raw cost is

    .. math:: DCF(t) = c_{miss} \, p \, P_{miss}(t) + c_{fa} (1 - p) P_{fa}(t)

    The normalised cost is DCF(t) divided by :math:`\min(c_{miss} \, p, c_{fa} (1 - p))`, the cost of the better
    constant decision. A normalised cost of 1 is no better than ignoring the scores.

    `mpcs_torch.metrics.MinDetectionCost` also returns the error rates and the threshold of the minimum. There is no
    ``sample_weight``: errors are counted in whole numbers, so that equal costs can be recognized.

    ``points`` are one or several `OperatingPoint`, with p_target in (0, 1) and costs above 0. ``normalize`` is whether
    to return the normalised cost instead of the raw cost. The other arguments, errors and warnings are those of
    `equal_error_rate`, without ``method``.

    Returns:
        Float64: a scalar, or ``(P,)`` for P > 1 points. With ``average="none"``, the last dimension is the classes.

    References:
        Martin, Greenberg: The NIST 2010 speaker recognition evaluation, Interspeech 2010; Brummer, de Villiers: The
        BOSARIS toolkit user guide, 2011.

    Example:
        >>> scores, labels = torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1])
        >>> min_detection_cost(scores, labels, points=OperatingPoint(p_target=0.5))
        tensor(0.5000, dtype=torch.float64)
    """
    measure = MinDetectionCost(
        num_classes, average, ignore_index, points=points, normalize=normalize
    )
    return measure(preds, target)


@dataclass(eq=False, kw_only=True)
class CostMeasure(DetectorStatistic):
    """A measure of the detection cost at one or several operating points."""

    points: Any
    """One `OperatingPoint` or a sequence of them; stored as a tuple."""
    normalize: bool = True

    def __post_init__(self) -> None:
        """Check the settings."""
        checked = as_points(self.points)
        require(checked, "not_empty", "points")
        self.points = checked
        super().__post_init__()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of fields of `DetectionCost`, and the number of operating points."""
        return len(DetectionCost._fields), len(self.points)

    @abstractmethod
    def costs(self, trials: BinaryTrials) -> list[DetectionCost]:
        """Return the cost at each operating point."""

    def statistics(self, trials: BinaryTrials) -> Tensor:
        """Return the fields of `DetectionCost` at each operating point."""
        return torch.stack([torch.stack(cost) for cost in self.costs(trials)], dim=1)

    def details(self, by_class: Sequence[BinaryTrials]) -> DetectionCost:
        """Return the costs for P points: (P,) or, by class, (P, C); no axis P if P is 1."""
        fields = super().details(by_class)
        if len(self.points) == 1:
            fields = fields.squeeze(1)
        return DetectionCost(*fields)

    def value(self, by_class: Sequence[BinaryTrials]) -> Tensor:
        """Return the costs."""
        details = self.details(by_class)
        return self.averaged(details.normalized if self.normalize else details.cost)


class MinDetectionCost(CostMeasure):
    """The measure of `min_detection_cost`."""

    def costs(self, trials: BinaryTrials) -> list[DetectionCost]:
        """Return the minimum cost at each operating point."""
        counts = trials.errors()
        return [min_cost_from_counts(counts, point) for point in self.points]


def min_cost_from_counts(counts: ErrorCounts, point: OperatingPoint) -> DetectionCost:
    """Compute the minimum cost, and its threshold; of several, take that of `mpcs_torch.metrics.MinDetectionCost`."""
    costs = _costs_at(counts, point, slice(None)).cost
    # Rounding must not break ties: costs are equal or differ by at least one error.
    best = (costs <= costs.min() * (1 + 1e-12)).nonzero().squeeze(1)
    # Thresholds in a row with the lowest cost form a range; the widest finite range is taken, and its middle.
    breaks = best.diff() > 1
    first = best[torch.cat([breaks.new_ones(1), breaks])]
    last = best[torch.cat([breaks, breaks.new_ones(1)])]
    low = torch.where(first > 0, counts.thresholds[first - 1], -inf)
    high = counts.thresholds[last]
    widest = torch.where(low.isinf() | high.isinf(), -1.0, high - low).argmax()
    first = first[widest]
    last = last[widest]
    low = low[widest]
    high = high[widest]
    accepts_all = (first == 0) & high.isfinite()
    threshold = torch.where(accepts_all, -inf, midpoint(low, high))
    # Thresholds with tied costs can have different rates: return the rates at the chosen threshold.
    index = torch.searchsorted(counts.thresholds, threshold).clamp(first, last)
    return _costs_at(counts, point, index)._replace(threshold=threshold)


def cost_at(counts: ErrorCounts, point: OperatingPoint, threshold: float) -> DetectionCost:
    """Compute the cost of accepting scores of at least ``threshold``, at the operating point ``point``."""
    value = counts.thresholds.new_tensor(threshold)
    index = torch.searchsorted(counts.thresholds, value)
    index = index.clamp(max=len(counts.thresholds) - 1)
    return _costs_at(counts, point, index)._replace(threshold=value)


def _costs_at(
    counts: ErrorCounts, point: OperatingPoint, index: Tensor | slice
) -> DetectionCost:
    miss, false_alarm = point.weights
    p_miss = counts.misses[index].double() / counts.targets
    p_fa = counts.false_alarms[index].double() / counts.nontargets
    cost = miss * p_miss + false_alarm * p_fa
    normalized = cost / min(miss, false_alarm)
    return DetectionCost(cost, normalized, p_miss, p_fa, counts.thresholds[index])


def actual_detection_cost(
    preds: Tensor,
    target: Tensor,
    *,
    points: OperatingPoint | Sequence[OperatingPoint],
    threshold: float | None = None,
    num_classes: int | None = None,
    normalize: bool = True,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the detection cost at a given threshold, or at the Bayes threshold of each point; lower is better.

    Without ``threshold``, ``preds`` must be natural-log likelihood ratios; the result minus `min_detection_cost` is
    then the calibration loss. With ``threshold`` (not NaN), e.g. from a development set, scores may have any range, and
    a score of at least ``threshold`` is accepted at all operating points. The equation, the other arguments, the result
    and the errors are those of `min_detection_cost`.

    Example:
        >>> import torch
        >>> scores, labels = torch.tensor([-2.0, 1.0, 3.0]), torch.tensor([0, 1, 1])
        >>> actual_detection_cost(scores, labels, points=OperatingPoint(p_target=0.1))
        tensor(0.5000, dtype=torch.float64)
        >>> actual_detection_cost(scores, labels, points=OperatingPoint(p_target=0.1), threshold=0.0)
        tensor(0., dtype=torch.float64)
    """
    measure = ActualDetectionCost(
        num_classes,
        average,
        ignore_index,
        points=points,
        normalize=normalize,
        threshold=threshold,
    )
    return measure(preds, target)


def half_total_error_rate(
    preds: Tensor,
    target: Tensor,
    *,
    threshold: float | None = None,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the mean of the miss rate and the false-alarm rate at a threshold, in [0, 1]; lower is better.

    This is the raw cost of `actual_detection_cost` at p_target = 0.5; the default threshold is 0. Arguments, result and
    errors are those of `actual_detection_cost`.

    Example:
        >>> import torch
        >>> half_total_error_rate(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]), threshold=0.5)
        tensor(0.2500, dtype=torch.float64)
    """
    measure = HalfTotalErrorRate(num_classes, average, ignore_index, threshold=threshold)
    return measure(preds, target)


@dataclass(eq=False, kw_only=True)
class ActualDetectionCost(CostMeasure):
    """The measure of `actual_detection_cost`."""

    threshold: float | None = None
    thresholds_in_use: list[list[float]] = field(init=False)
    """The thresholds: one list for each class (a single list without classes), with one threshold per point."""

    def __post_init__(self) -> None:
        """Check the settings."""
        threshold = self.threshold
        is_number = (
            isinstance(threshold, int | float)
            and not isinstance(threshold, bool)
            and not isnan(threshold)
        )
        require(threshold is None or is_number, "number_or_none", "threshold", threshold)
        super().__post_init__()
        of_points = [
            point.bayes_threshold if threshold is None else float(threshold)
            for point in self.points
        ]
        self.thresholds_in_use = [of_points] * self.detectors

    def costs(self, trials: BinaryTrials) -> list[DetectionCost]:
        """Return the cost at each operating point, at the threshold for the class."""
        counts = trials.errors()
        thresholds = self.thresholds_in_use[trials.label or 0]
        return [
            cost_at(counts, point, threshold)
            for point, threshold in zip(self.points, thresholds, strict=True)
        ]


@dataclass(eq=False, kw_only=True)
class HalfTotalErrorRate(ActualDetectionCost):
    """The measure of `half_total_error_rate`."""

    points: Any = field(init=False, default=EVEN)
    normalize: bool = field(init=False, default=False)

    limits = (0.0, 1.0)
