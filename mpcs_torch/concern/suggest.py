"""Draft a `ConcernSpec` from costs, or an order of classes."""

import math
from collections.abc import Sequence

import torch

from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.errors import require


def spec_from_costs(
    costs: Sequence[Sequence[float]], classes: Sequence[str]
) -> ConcernSpec:
    """Make a spec with weights proportional to ``costs`` (rows are true classes): at most 1, and 0 on the diagonal."""
    spec = ConcernSpec(list(classes), weights=costs)
    off_diagonal = spec.mpcs_weights().fill_diagonal_(0)
    weights = off_diagonal / off_diagonal.max()
    return ConcernSpec(list(classes), weights=weights.tolist())


def spec_from_order(
    classes: Sequence[str], *, under: float = 1.0, over: float = 1.0
) -> ConcernSpec:
    """Make a spec whose weights are proportional to the distance of two ordered classes; the largest weight is 1.

    Args:
        classes: The C class names, from the lowest to the highest.
        under: The cost per step of predicting a class below the true one, finite and >= 0.
        over: The cost per step of predicting a class above the true one, finite and >= 0.

    Example:
        >>> spec_from_order(["healthy", "mild", "severe"], under=5).weights  # rows are true classes
        ((0.0, 0.1, 0.2), (0.5, 0.0, 0.1), (1.0, 0.5, 0.0))
    """
    for name, cost in (("under", under), ("over", over)):
        require(0 <= cost < math.inf, "finite_at_least", name, cost, minimum=0)
    require(under or over, "one_above_0", "under or over")
    place = torch.arange(len(classes), dtype=torch.float64)
    # As shares of the longest way; below 0 if the predicted class is below the true one.
    steps = (place.unsqueeze(0) - place.unsqueeze(1)) / max(len(classes) - 1, 1)
    highest = max(under, over)
    weights = torch.where(steps < 0, -steps * (under / highest), steps * (over / highest))
    rounded = list[list[float]]()
    for row in weights.fill_diagonal_(0).tolist():
        rounded.append([round(weight, 12) for weight in row])  # 0.14, not 0.1399
    return ConcernSpec(list(classes), weights=rounded)
