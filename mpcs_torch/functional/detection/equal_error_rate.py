"""The equal error rate of scores, and of Gaussian score distributions."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.errors import ErrorCounts, ErrorRates, convex_hull
from mpcs_torch.functional.detection.trial_measure import (
    BinaryTrials,
    ClassAverage,
    ErrorStatistic,
)
from mpcs_torch.functional.inputs.checks import check_choice

EqualErrorMethod = Literal["rocch", "interpolated", "nearest"]


class EqualError(NamedTuple):
    """An equal error rate in [0, 1], and the thresholds ``low`` and ``high`` between which it is reached.

    ``low`` equals ``high`` if miss and false-alarm rate are equal at this threshold. But with ``method="nearest"``,
    ``low`` is always below ``high``, and every threshold t with low < t <= high has the returned rate.
    """

    rate: Tensor
    low: Tensor
    high: Tensor


def equal_error_rate(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    method: EqualErrorMethod = "rocch",
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the error rate at the threshold where miss and false-alarm rates are equal; in [0, 1], lower is better.

    Often no threshold has exactly equal rates. Therefore, ``method`` chooses a point of the curve of the miss rate
    against the false-alarm rate. ``"rocch"`` interpolates on the lower convex hull of the curve: the result is unique
    and at most 1/2, and the literature recommends it for small data. ``"interpolated"`` interpolates linearly between
    the points of the curve. ``"nearest"`` is the mean of both rates at the lowest threshold where they differ least.

    `mpcs_torch.metrics.EqualErrorRate` also returns thresholds. Samples cannot be weighted.

    Args:
        preds: ``(N, ...)`` floating point scores, higher for targets, any range; ``(N, C, ...)`` with ``num_classes``.
        target: ``(N, ...)`` integers or bools: 1 for targets, 0 for non-targets; with ``num_classes``, class indices.
            Targets and non-targets must both occur (for each class).
        num_classes: C to evaluate each class against the rest; None for a single detector of targets.
        method: ``"rocch"``, ``"interpolated"`` or ``"nearest"``, as above.
        average: With ``num_classes``: ``"macro"`` for the mean over classes, ``"micro"`` for one detector of all N x C
            scores, ``"none"`` for one value per class.
        ignore_index: Label of trials to ignore.

    Returns:
        Float64: a scalar, or ``(C,)`` with ``average="none"``.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Warns:
        ReversedScoresWarning: If the area under the ROC curve (of any class) is below 1/2 by more than chance explains.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 4 (ROCCH-EER).

    Example:
        >>> scores = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 2.5, 3.5])
        >>> labels = torch.tensor([1, 1, 1, 1, 1, 0, 0, 0])
        >>> [f"{equal_error_rate(scores, labels, method=m):.4f}" for m in ("rocch", "interpolated", "nearest")]
        ['0.3158', '0.4000', '0.3667']
    """
    return EqualErrorRate(num_classes, average, ignore_index, method=method)(preds, target)


@dataclass(eq=False, kw_only=True)
class EqualErrorRate(ErrorStatistic):
    """The measure of `equal_error_rate`."""

    method: EqualErrorMethod = "rocch"

    limits = (0.0, 1.0)

    def __post_init__(self) -> None:
        """Check the settings."""
        check_choice("method", self.method, EqualErrorMethod)
        super().__post_init__()

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of fields of `EqualError`."""
        return (len(EqualError._fields),)

    def from_counts(self, counts: ErrorCounts) -> Tensor:
        """Return the fields of `EqualError`."""
        return torch.stack(equal_error_from_counts(counts, self.method))

    def details(self, by_class: Sequence[BinaryTrials]) -> EqualError:
        """Return the rate and its thresholds: (C,), or scalars for a single detector."""
        return EqualError(*super().details(by_class))

    def value(self, by_class: Sequence[BinaryTrials]) -> Tensor:
        """Return the rate."""
        return self.averaged(self.details(by_class).rate)


def equal_error_from_counts(counts: ErrorCounts, method: EqualErrorMethod) -> EqualError:
    """Compute the equal error rate from error counts."""
    if method == "nearest":
        return _nearest_threshold(counts)
    return error_crossing((convex_hull(counts) if method == "rocch" else counts).rates())


def _nearest_threshold(counts: ErrorCounts) -> EqualError:
    """Return the mean of both rates at the lowest threshold where they differ least."""
    gaps = (counts.misses * counts.nontargets - counts.false_alarms * counts.targets).abs()
    # PyTorch documents that the first of several minima is returned.
    nearest = gaps.argmin()
    below = torch.where(nearest > 0, counts.thresholds[nearest - 1], -inf)
    rates = counts.rates()
    return EqualError(
        (rates.p_miss[nearest] + rates.p_fa[nearest]) / 2, below, counts.thresholds[nearest]
    )


def error_crossing(curve: ErrorRates | ErrorCounts) -> EqualError:
    """Interpolate ``curve`` linearly to the point with equal miss and false-alarm rates (or numbers, of counts)."""
    misses = curve[0].double()
    alarms = curve[1].double()
    thresholds = curve[2]
    gap = misses - alarms  # rises from a value below 0 to one above 0
    after = (gap >= 0).int().argmax()
    before = torch.where(gap[after] == 0, after, after - 1)
    ends = torch.stack([before, after])
    gap_before, gap_after = gap[ends]
    misses_before, misses_after = misses[ends]
    share = torch.where(before == after, 0.0, -gap_before / (gap_after - gap_before))
    return EqualError(
        misses_before + share * (misses_after - misses_before), *thresholds[ends]
    )
