"""Decisions and costs where costs are known as ranges, or differ between people: regret, and ranges of mean costs."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.concern.decision import (
    as_decisions,
    at_least_float,
    in_order_of,
    rounding_of,
    unlabelled_samples,
)
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.checks import check_costs


class RegretDecisions(NamedTuple):
    """The decisions by minimax regret for N samples."""

    decision: Tensor
    """(N,), int64: columns of the costs."""
    regret: Tensor
    """(N,): the worst regret of the decision."""
    is_settled: Tensor
    """(N,), bool: whether the decision costs least at all costs of the set, beside others that always cost the same."""


def minimax_regret_decision(preds: Tensor, low: Tensor, high: Tensor, *, from_logits: bool = True) -> Tensor:
    r"""Decide for the class whose worst regret over a set of costs is lowest.

    The regret of a decision is how much more it costs than the best decision, in expectation. Its worst regret over a
    set :math:`\mathcal{D}` of cost matrices is

    .. math::
        R_j = \max_{D \in \mathcal{D}} \Bigl( \sum_i p_i D_{ij} - \min_k \sum_i p_i D_{ik} \Bigr), \qquad
        \hat{y} = \arg\min_j R_j

    The set is the convex hull of V boxes, in each of which every cost may take any value between its low and its high
    one: V people whose costs differ, one box of ranges, or people with ranges. The regret is convex in D, so its
    maximum over the hull is that over the boxes, and within a box the columns are independent:

    .. math:: R_j = \max_v \max\Bigl(0, \max_{k \ne j} \sum_i p_i \bigl(D^{high,v}_{ij} - D^{low,v}_{ik}\bigr)\Bigr)

    Where low and high costs are equal, the decision is that of `least_concern_decision`. A worst regret of 0 means that
    the decision is best at all costs of the set. The regret is an expectation by the probabilities: as for every
    decision by cost, they must be calibrated. It is minimal for each sample, whose worst costs are its own: at costs
    that are the same for all samples, the mean regret may be lower for other decisions. With two decisions and one box,
    the middle of the box decides in the same way.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point logits, or probabilities with ``from_logits=False``.
        low: ``(C, K)``, or ``(V, C, K)`` for V boxes: the lowest costs, finite and >= 0, in one unit, with K = C, or
            more columns as in `least_concern_decision`; the diagonal is not read. `ConcernRange.bounds` returns both.
        high: The highest costs, in the shape of ``low`` and nowhere below it.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.

    Returns:
        int64 decisions ``(N,)`` or ``(N, ...)`` with the numbers and the rule for ties of `least_concern_decision`.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    References:
        Savage: The Theory of Statistical Decision, Journal of the American Statistical Association 46(253), 1951
        (minimax regret). Deviation: the maximum is over costs, and probabilities are those of the model.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1]])
        >>> low = torch.tensor([[0.0, 1.0], [1.0, 0.0]])
        >>> high = torch.tensor([[0.0, 1.0], [40.0, 0.0]])  # missing an ill person costs 1 to 40 times a false alarm
        >>> minimax_regret_decision(probs, low, high, from_logits=False)
        tensor([1])
    """
    preds = as_tensor(preds, "preds")
    low, high = checked_bounds(low, high, preds.device)
    samples = unlabelled_samples(preds, low.shape[1], from_logits=from_logits)
    return as_decisions(least_regret(samples.probs(), low, high).decision, low.shape[2], preds)


def worst_regret(preds: Tensor, low: Tensor, high: Tensor, *, from_logits: bool = True) -> Tensor:
    """Compute the worst regret of each decision over a set of costs; in the unit of the costs, lower is better.

    Arguments, equations and errors are those of `minimax_regret_decision`.

    Returns:
        ``(N, K)`` or ``(N, ..., K)``, >= 0 up to rounding: 0 where the decision is best at all costs of the set.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1]], dtype=torch.float64)
        >>> low, high = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [40.0, 0.0]])
        >>> worst_regret(probs, low, high, from_logits=False)  # to send home may cost 4 - 0.9 too much
        tensor([[3.1000, 0.8000]], dtype=torch.float64)
    """
    preds = as_tensor(preds, "preds")
    low, high = checked_bounds(low, high, preds.device)
    samples = unlabelled_samples(preds, low.shape[1], from_logits=from_logits)
    regrets, _ = _regrets(at_least_float(samples.probs()), low, high)
    return regrets.reshape(*preds.shape[:1], *preds.shape[2:], low.shape[2])


def mean_cost_range(counts: Tensor, low: Tensor, high: Tensor) -> Tensor:
    r"""Compute the lowest and the highest total cost of decisions over a set of costs.

    A total cost is linear in the costs, so both are at ends of ranges, of one of the V boxes:

    .. math::
        \min_v \sum_{ij} \bigl(n^+_{ij} D^{low,v}_{ij} - n^-_{ij} D^{high,v}_{ij}\bigr), \qquad
        \max_v \sum_{ij} \bigl(n^+_{ij} D^{high,v}_{ij} - n^-_{ij} D^{low,v}_{ij}\bigr)

    with :math:`n^+` and :math:`n^-` the parts of n above and below 0.

    Args:
        counts: n, ``(..., C, K)``: how many samples of each true class (row) got each decision (column), or their
            share. The counts of one model less those of another give the range of the difference of their costs; the
            ranges of two models may overlap where one of them is better at all costs.
        low: As in `minimax_regret_decision`.
        high: As in `minimax_regret_decision`.

    Returns:
        ``(..., 2)``, float64: the lowest and the highest total.

    Raises:
        ValueError: If a shape or a value breaks its rule above.

    Example:
        >>> low, high = torch.tensor([[0.0, 1.0], [1.0, 0.0]]), torch.tensor([[0.0, 1.0], [40.0, 0.0]])
        >>> mean_cost_range(torch.tensor([[50, 4], [1, 45]]) / 100, low, high)
        tensor([0.0500, 0.4400], dtype=torch.float64)
    """
    low, high = (bound.double() for bound in checked_bounds(low, high, counts.device))
    if counts.shape[-2:] != low.shape[1:]:
        raise ValueError(
            f"counts must have shape (..., {low.shape[1]}, {low.shape[2]}), but got {tuple(counts.shape)}."
        )
    counts = counts.double().unsqueeze(-3)
    more, less = counts.clamp(min=0), counts.clamp(max=0)
    lowest = (more * low + less * high).sum((-2, -1)).amin(-1)
    return torch.stack([lowest, (more * high + less * low).sum((-2, -1)).amax(-1)], dim=-1)


def checked_bounds(low: Tensor, high: Tensor, device: torch.device) -> tuple[Tensor, Tensor]:
    """Return the checked lowest and highest costs as (V, C, K) with a diagonal of 0.

    Raises:
        ValueError: If they break the rules of `minimax_regret_decision`.
    """
    bounds = [as_tensor(bound, name).to(device) for name, bound in (("low", low), ("high", high))]
    if bounds[0].shape != bounds[1].shape or bounds[0].ndim not in (2, 3) or not bounds[0].numel():
        shapes = " and ".join(str(tuple(bound.shape)) for bound in bounds)
        raise ValueError(f"low and high must have one shape, (C, K) or (V, C, K), but got {shapes}.")
    lowest, highest = (bound.clone().reshape(-1, *bound.shape[-2:]) for bound in bounds)
    for box in [*lowest, *highest]:
        check_costs(box, box.shape[0], referral=True)
        box.fill_diagonal_(0)
    if (lowest > highest).any():
        raise ValueError("low must nowhere be above high, but is.")
    return lowest, highest


def least_regret(rows: Tensor, low: Tensor, high: Tensor) -> RegretDecisions:
    """Decide by minimax regret for probabilities (N, C) over the hull of V boxes (V, C, K) with diagonals of 0."""
    rows = at_least_float(rows)
    scale = high.amax()
    regrets, least = _regrets(rows, low / scale, high / scale)
    # With what the best decision costs at most, regrets are on the scale of costs, so that ties are those of costs.
    decision = in_order_of(regrets + least, rows).first(low.shape[2])
    regret = regrets.gather(-1, decision.unsqueeze(-1))
    return RegretDecisions(decision, regret.squeeze(-1) * scale, (regret <= rounding_of(rows) * least).squeeze(-1))


def _regrets(rows: Tensor, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Return the worst regret of each decision (N, K), and the lowest of their highest costs (N, 1)."""
    with torch.autocast(rows.device.type, enabled=False):
        lowest, highest = (torch.einsum("nc,vck->nvk", rows, bound.to(rows)) for bound in (low, high))
    best = lowest.topk(2, dim=-1, largest=False)
    is_best = torch.arange(low.shape[2], device=rows.device) == best.indices[..., :1]
    of_others = torch.where(is_best, best.values[..., 1:], best.values[..., :1])
    return (highest - of_others).clamp(min=0).amax(1), highest.amax(1).amin(-1, keepdim=True)
