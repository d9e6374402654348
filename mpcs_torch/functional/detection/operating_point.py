"""Operating points: the target prior and the costs of errors in an application of a detector."""

from collections.abc import Sequence
from math import inf, log
from typing import Any, NamedTuple

MIN_WEIGHT = 1e-300
"""The smallest valid product of a cost and a prior; smaller ones could underflow."""


class OperatingPoint(NamedTuple):
    """The target prior and the costs of errors in an application of a detector.

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

    def label(self) -> str:
        """Return a label for figures and tables: the prior, and the costs unless both are 1."""
        costs = "" if self.c_miss == self.c_fa == 1 else f", costs {self.c_miss:.15g} and {self.c_fa:.15g}"
        return f"p = {self.p_target:.15g}{costs}"

    @property
    def weights(self) -> tuple[float, float]:
        """The cost of a miss times the target prior, and the cost of a false alarm times the non-target prior."""
        return self.c_miss * self.p_target, self.c_fa * (1 - self.p_target)

    @property
    def effective_prior(self) -> float:
        r"""The prior with which costs of 1 lead to the same decisions: sigmoid(logit(p) + log(c_miss / c_fa))."""
        miss, false_alarm = self.weights
        return miss / (miss + false_alarm)

    @property
    def bayes_threshold(self) -> float:
        """The log-likelihood ratio above which it costs less to accept: -logit of the effective prior."""
        miss, false_alarm = self.weights
        return log(false_alarm) - log(miss)


def as_points(points: OperatingPoint | Sequence[OperatingPoint]) -> tuple[OperatingPoint, ...]:
    """Validate one operating point or a sequence of them, and return a tuple."""
    several = isinstance(points, Sequence) and not isinstance(points, OperatingPoint)
    sequence: Sequence[Any] = points if several else [points]
    return tuple(check_point(point) for point in sequence)


def at_least_one_point(points: OperatingPoint | Sequence[OperatingPoint]) -> tuple[OperatingPoint, ...]:
    """Validate one operating point or a nonempty sequence of them, and return a tuple."""
    checked = as_points(points)
    if not checked:
        raise ValueError(f"points must hold at least one OperatingPoint, but got {points!r}.")
    return checked


def check_point(point: OperatingPoint) -> OperatingPoint:
    """Check that the prior is in (0, 1), costs are above 0, and costs times priors do not underflow."""
    if not isinstance(point, OperatingPoint):
        raise ValueError(f"points must be OperatingPoints, such as OperatingPoint(0.01), but got {point!r}.")
    if not 0 < point.p_target < 1:
        raise ValueError(f"p_target must be between 0 and 1, but got {point.p_target}.")
    for name in ("c_miss", "c_fa"):
        if not 0 < getattr(point, name) < inf:
            raise ValueError(f"{name} must be finite and above 0, but got {getattr(point, name)}.")
    if min(point.weights) < MIN_WEIGHT:
        rule = f"p_target * c_miss and (1 - p_target) * c_fa must be at least {MIN_WEIGHT:g}"
        raise ValueError(f"{rule}, but got {point}.")
    return point
