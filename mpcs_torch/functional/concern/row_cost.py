"""The mean cost of decisions, if each sample (row) has separate costs."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.decisions import Decisions, decision_rules, flatten_decisions
from mpcs_torch.functional.inputs.faults import Fault, finite, raise_first
from mpcs_torch.functional.inputs.labels import Labels


class RowCostSums(NamedTuple):
    """Weighted sums over the samples: (...) each, float64 (float32 on MPS)."""

    cost: Tensor
    """The sum of the costs of the decisions."""
    least: Tensor
    """The sum of the costs of the cheapest decision for each sample."""
    most: Tensor
    """The sum of the costs of the most expensive decision for each sample."""
    samples: Tensor
    """The sum of the weights."""


def row_cost(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    regret: bool = False,
) -> Tensor:
    r"""Compute the mean cost of decisions, if each sample (row) has separate costs; lower is better.

    .. math:: \frac{1}{N} \sum_n c_{n \hat{y}_n}, \quad \textrm{regret} \quad
        \frac{1}{N} \sum_n (c_{n \hat{y}_n} - \min_j c_{nj})

    Args:
        preds: ``(N, ...)`` integer decisions, or ``(N, C, ...)`` floating point scores of any kind, whose highest is
            the decision (ties go to the lower class index).
        target: ``(N, C, ...)`` the cost of each decision for each sample, e.g. in euros: finite, negative for a gain.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        regret: Whether to subtract the cost of the cheapest decision for each sample: 0 is perfect.

    Returns:
        A float64 scalar (float32 on MPS), NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Example:
        >>> costs = torch.tensor([[0.0, 5.0], [300.0, 5.0], [20.0, 5.0]])  # to pay, or to look into, three claims
        >>> row_cost(torch.tensor([0, 1, 0]), costs, num_classes=2)
        tensor(8.3333, dtype=torch.float64)
        >>> row_cost(torch.tensor([0, 1, 0]), costs, num_classes=2, regret=True)
        tensor(5., dtype=torch.float64)
    """
    samples = flatten_costs(preds, target, num_classes=num_classes, sample_weight=sample_weight)
    raise_first(samples.find_faults())
    sums = sum_row_costs(samples)
    return (sums.cost - sums.least if regret else sums.cost) / sums.samples


class CostedDecisions(NamedTuple):
    """The decisions for M samples, and the cost of every possible decision."""

    decisions: Decisions
    costs: Tensor
    """The costs: (M, C), floating point."""
    labels: Labels
    """Labels of 0 that only carry the weights and the bins of the samples."""

    def find_faults(self) -> tuple[Fault, ...]:
        """Return one fault for each rule of `row_cost_rules`, in that order."""
        spans = [finite(self.costs.amin(1)), finite(self.costs.amax(1))]
        rule, *_ = row_cost_rules(self.labels.num_classes)
        return (Fault(rule, self.costs, spans), *self.decisions.find_faults()[1:])


def row_cost_rules(num_classes: int) -> tuple[str, ...]:
    """Return the beginnings of the error messages about invalid values of target, preds and sample_weight."""
    return (f"target must hold {num_classes} finite costs for each sample", *decision_rules(num_classes)[1:])


def flatten_costs(preds: Tensor, target: Tensor, *, num_classes: int, sample_weight: Tensor | None) -> CostedDecisions:
    """Check shapes and dtypes, decide for the highest score, and flatten, without synchronizing an accelerator."""
    costs = as_tensor(target, "target").detach()
    if costs.ndim < 2 or costs.shape[1] != num_classes or costs.is_complex() or costs.dtype == torch.bool:
        rule = f"target must be costs (N, {num_classes}, ...), one for each decision"
        raise ValueError(f"{rule}, but got {costs.dtype} of shape {tuple(costs.shape)}.")
    unlabelled = costs.new_zeros(costs.shape[:1] + costs.shape[2:], dtype=torch.int64)
    decisions = flatten_decisions(preds, unlabelled, num_classes, None, sample_weight)
    costs = (costs if costs.is_floating_point() else costs.double()).movedim(1, -1).reshape(-1, num_classes)
    return CostedDecisions(decisions, costs, decisions.labels)


def sum_row_costs(samples: CostedDecisions) -> RowCostSums:
    """Return the `RowCostSums` of a batch: scalars, or (B,) with bins."""
    costs, labels = samples.costs, samples.labels
    cost = costs.gather(1, samples.decisions.predicted.unsqueeze(1)).squeeze(1)
    total, least, most = (labels.sum(values) for values in (cost, costs.amin(1), costs.amax(1)))
    return RowCostSums(total, least, most, labels.sum())
