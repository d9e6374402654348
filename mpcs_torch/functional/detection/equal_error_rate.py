"""Where misses are as frequent as false alarms."""

from math import inf
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.curve import ErrorCounts, ErrorRates, hull_of, observed_errors

EqualErrorMethod = Literal["rocch", "interpolated", "nearest"]


class EqualError(NamedTuple):
    """A rate in [0, 1], and the thresholds between which it lies (equal where one of them meets it).

    For the nearest rate they are the ends of the interval, open below, whose thresholds all have it.
    """

    rate: Tensor
    low: Tensor
    high: Tensor


def equal_error_rate(preds: Tensor, target: Tensor, *, method: EqualErrorMethod = "rocch") -> EqualError:
    """The rate at which misses and false alarms are equally frequent; lower is better.

    Few thresholds, or none, have equal rates. ``"rocch"`` crosses the convex hull of the curve: it is unique, the same
    for mirrored scores, at most 1/2, and what the literature prescribes for small data. ``"interpolated"`` crosses the
    straight lines between the points of the curve. ``"nearest"`` takes the mean of both rates where they differ least
    (at the lowest such threshold).

    Args:
        preds: ``(N,)`` scores, floating point, higher for targets; of any range.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for nontargets; both must occur.
        method: As above.

    Returns:
        Float64 scalars.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 4 (ROCCH-EER).

    Example:
        >>> scores = torch.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 2.5, 3.5])
        >>> labels = torch.tensor([1, 1, 1, 1, 1, 0, 0, 0])
        >>> [f"{equal_error_rate(scores, labels, method=m).rate:.4f}" for m in ("rocch", "interpolated", "nearest")]
        ['0.3158', '0.4000', '0.3667']
    """
    check_method(method)
    return equal_error_of(observed_errors(preds, target), method)


def equal_error_of(counts: ErrorCounts, method: EqualErrorMethod) -> EqualError:
    """The equal error rate of counted errors."""
    if method == "nearest":
        curve = counts.rates()
        nearest = (counts.misses * counts.nontargets - counts.false_alarms * counts.targets).abs().argmin()
        below = torch.cat([curve.thresholds.new_tensor([-inf]), curve.thresholds])
        rate = (curve.p_miss[nearest] + curve.p_fa[nearest]) / 2
        return EqualError(rate, below[nearest], curve.thresholds[nearest])
    return crossing_of((hull_of(counts) if method == "rocch" else counts).rates())


def check_method(method: str) -> None:
    """Refuse an unknown method."""
    if method not in ("rocch", "interpolated", "nearest"):
        raise ValueError(f"method must be 'rocch', 'interpolated' or 'nearest', but got {method!r}.")


def crossing_of(curve: ErrorRates) -> EqualError:
    """Where the straight lines between the points of a curve or a hull have equal rates."""
    gap = curve.p_miss - curve.p_fa  # rises from -1 to 1
    after = (gap >= 0).int().argmax()
    before = torch.where(gap[after] == 0, after, after - 1)
    share = torch.where(before == after, 0.0, -gap[before] / (gap[after] - gap[before]))
    rate = curve.p_miss[before] + share * (curve.p_miss[after] - curve.p_miss[before])
    return EqualError(rate, curve.thresholds[before], curve.thresholds[after])
