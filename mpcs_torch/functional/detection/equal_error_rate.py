"""The equal error rate: the rate at which misses are as frequent as false alarms."""

from collections.abc import Sequence
from math import inf
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.binary_trials import (
    BinaryTrials,
    ClassAverage,
    average_classes,
    split_batch,
    stack_classes,
)
from mpcs_torch.functional.detection.convex_hull import edge_of_equal_rates
from mpcs_torch.functional.detection.errors import ErrorCounts, ErrorRates

EqualErrorMethod = Literal["rocch", "interpolated", "nearest"]


class EqualError(NamedTuple):
    """An equal error rate in [0, 1], and the thresholds on both sides of it (the same if one threshold has that rate).

    With ``method="nearest"``, all thresholds of the interval (low, high] have the rate.
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
    """Compute the rate at which misses and false alarms are equally frequent, in [0, 1]; lower is better.

    Often no threshold has exactly equal rates. ``"rocch"`` takes the point of equal rates on the convex hull of the
    curve: it is unique, the same for mirrored scores, at most 1/2, and recommended in the literature for small data.
    ``"interpolated"`` takes it on straight lines between the points of the curve. ``"nearest"`` takes the mean of both
    rates at the threshold where they differ least (the lowest such threshold).

    There is no ``sample_weight``: trials are counted in whole numbers, so that ties and crossings are exact.

    Args:
        preds: ``(N, ...)`` scores, floating point, higher for targets; of any range. With classes ``(N, C, ...)``.
        target: ``(N, ...)`` integers or bools: 1 for targets, 0 for non-targets; with classes, class indices. Both
            targets and non-targets must occur, with classes for each class.
        num_classes: None, or C to evaluate each class against the rest.
        method: ``"rocch"``, ``"interpolated"`` or ``"nearest"``, as above.
        average: With classes: ``"macro"`` for the mean over classes, ``"micro"`` for one detector of all N x C scores,
            ``"none"`` for one value per class.
        ignore_index: Label of trials to ignore.

    Returns:
        Float64: a scalar, or ``(C,)`` with ``average="none"``.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Warns:
        ReversedScoresWarning: If an area under the ROC is below 1/2.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 4 (ROCCH-EER).

    Example:
        >>> scores = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 2.5, 3.5])
        >>> labels = torch.tensor([1, 1, 1, 1, 1, 0, 0, 0])
        >>> [f"{equal_error_rate(scores, labels, method=m):.4f}" for m in ("rocch", "interpolated", "nearest")]
        ['0.3158', '0.4000', '0.3667']
    """
    details = equal_error_rate_details(
        preds, target, num_classes=num_classes, method=method, average=average, ignore_index=ignore_index
    )
    return average_classes(details.rate, num_classes=num_classes, average=average)


def equal_error_rate_details(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    method: EqualErrorMethod = "rocch",
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> EqualError:
    """Compute the equal error rate and the thresholds on both sides of it.

    Arguments and errors are those of `equal_error_rate`.

    Returns:
        Float64 scalars; with classes ``(C,)``, unless ``average="micro"``.

    Example:
        >>> scores, labels = torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1])
        >>> details = equal_error_rate_details(scores, labels, method="nearest")
        >>> details.rate, details.low, details.high
        (tensor(0.5000, dtype=torch.float64), tensor(0.3000, dtype=torch.float64), tensor(0.4000, dtype=torch.float64))
    """
    check_method(method)
    found = split_batch(preds, target, num_classes=num_classes, average=average, ignore_index=ignore_index)
    return equal_error_of_trials(found, method)


def equal_error_of_trials(found: Sequence[BinaryTrials], method: EqualErrorMethod) -> EqualError:
    """Compute the equal errors of binary trials, stacked; NaN if targets or non-targets are missing."""
    values = [
        equal_error_of(trials.errors(), method) if trials.missing is None else EqualError(*[trials.nan] * 3)
        for trials in found
    ]
    return EqualError(*(stack_classes(field) for field in zip(*values, strict=True)))


def equal_error_of(counts: ErrorCounts, method: EqualErrorMethod) -> EqualError:
    """Compute the equal error rate of counted errors."""
    if method == "nearest":
        curve = counts.rates()
        nearest = nearest_to_equal(counts)
        below = torch.cat([curve.thresholds.new_tensor([-inf]), curve.thresholds])
        rate = (curve.p_miss[nearest] + curve.p_fa[nearest]) / 2
        return EqualError(rate, below[nearest], curve.thresholds[nearest])
    if method == "rocch":
        edge = edge_of_equal_rates(counts)
        both_ends = edge.new_tensor([0, -1])  # rates are shares of all misses and of all false alarms
        counts = counts.at(torch.cat([both_ends[:1], edge, both_ends[1:]]))
    return crossing_of(counts.rates())


def nearest_to_equal(counts: ErrorCounts) -> Tensor:
    """Return the index of the lowest threshold where the rates differ least: int64 scalar."""
    return (counts.misses * counts.nontargets - counts.false_alarms * counts.targets).abs().argmin()


def check_method(method: str) -> None:
    """Refuse an unknown method."""
    if method not in ("rocch", "interpolated", "nearest"):
        raise ValueError(f"method must be 'rocch', 'interpolated' or 'nearest', but got {method!r}.")


def crossing_of(curve: ErrorRates) -> EqualError:
    """Return the point of equal rates on the straight lines between the points of a curve or a hull."""
    gap = curve.p_miss - curve.p_fa  # rises from -1 to 1
    after = (gap >= 0).int().argmax()
    before = torch.where(gap[after] == 0, after, after - 1)
    share = torch.where(before == after, 0.0, -gap[before] / (gap[after] - gap[before]))
    rate = curve.p_miss[before] + share * (curve.p_miss[after] - curve.p_miss[before])
    return EqualError(rate, curve.thresholds[before], curve.thresholds[after])
