"""The range of a mean cost, if costs are known only as ranges or differ between people."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.checks import check_costs


def mean_cost_range(counts: Tensor, low: Tensor, high: Tensor) -> Tensor:
    r"""Compute the lowest and the highest total cost of decisions over a set of possible costs.

    The set is the convex hull of V boxes, one for each person. A box has one range for each cost. The total is linear
    in the costs, so its minimum and its maximum are at corners of boxes:

    .. math::
        \min_v \sum_{ij} \bigl(n^+_{ij} D^{low,v}_{ij} - n^-_{ij} D^{high,v}_{ij}\bigr), \qquad
        \max_v \sum_{ij} \bigl(n^+_{ij} D^{high,v}_{ij} - n^-_{ij} D^{low,v}_{ij}\bigr)

    where :math:`n^+` and :math:`n^-` are the positive and the negative part of n.

    Args:
        counts: n, ``(..., C, K)``: the number or share of samples of each true class (row) with each decision (column).
            To get the range of the difference between two models, pass the difference of their counts: their separate
            ranges may overlap even if one model is better at all costs.
        low: ``(C, K)``, or ``(V, C, K)`` for V boxes: the lowest costs, finite and >= 0, in one unit. K is C, or
            more as in `least_concern_decision`. The diagonal is not read. `ConcernRange.bounds` returns low and high.
        high: The highest costs, in the shape of ``low`` and >= ``low`` everywhere.

    Returns:
        ``(..., 2)``, float64: the lowest and the highest total.

    Raises:
        ValueError: If a shape or a value breaks its rule above.

    Example:
        >>> low, high = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [40.0, 0.0]])
        >>> mean_cost_range(torch.tensor([[50, 4], [1, 45]]) / 100, low, high)
        tensor([0.0500, 0.4400], dtype=torch.float64)
    """
    bounds = [as_tensor(bound, name).to(counts.device).double() for bound, name in ((low, "low"), (high, "high"))]
    if bounds[0].shape != bounds[1].shape or bounds[0].ndim not in (2, 3) or not bounds[0].numel():
        shapes = " and ".join(str(tuple(bound.shape)) for bound in bounds)
        raise ValueError(f"low and high must have one shape, (C, K) or (V, C, K), but got {shapes}.")
    low, high = (bound.clone().reshape(-1, *bound.shape[-2:]) for bound in bounds)
    for box in (*low, *high):
        check_costs(box, len(box), referral=True)
        box.fill_diagonal_(0)
    if (low > high).any():
        raise ValueError("low must nowhere be above high, but is.")
    if counts.shape[-2:] != low.shape[1:]:
        raise ValueError(
            f"counts must have shape (..., {low.shape[1]}, {low.shape[2]}), but got {tuple(counts.shape)}."
        )
    counts = counts.double().unsqueeze(-3)
    positive, negative = counts.clamp(min=0), counts.clamp(max=0)
    lowest = (positive * low + negative * high).sum((-2, -1)).amin(-1)
    return torch.stack([lowest, (positive * high + negative * low).sum((-2, -1)).amax(-1)], dim=-1)
