"""Training losses: the differentiable limit of MPCS, and cross entropy with a larger margin for costlier errors."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.inputs.groups import costs_by_label, flat_costs
from mpcs_torch.functional.inputs.logits import (
    LossBatch,
    check_values,
    sum_by_shares,
)


def costs_of_errors(batch: LossBatch, logits: Tensor, costs: Any) -> Tensor:
    """Return what each decision costs beyond the right one, (M, C, C), by ``costs`` (N, C, C, ...) of true classes."""
    flat = flat_costs(costs, logits.shape).to(batch.scores)
    beyond = flat - flat.diagonal(dim1=1, dim2=2).unsqueeze(2)
    rule = Rule(
        "finite_at_least",
        "costs of wrong decisions, beyond that of the right one,",
        minimum=0,
    )
    check_values(rule, beyond, torch.finfo(beyond.dtype).max)
    return beyond


def penalty_matrix(costs: Tensor) -> Tensor:
    """Convert costs of errors, (..., C, C) with 0 on the diagonal, to penalties: rows sum to 1, unless all are 0."""
    total = costs.sum(dim=-1, keepdim=True)
    return costs / torch.where(total > 0, total, 1.0)


def concern_loss(
    batch: LossBatch, penalties: Tensor | None, concern_share: float
) -> Tensor:
    """Compute `mpcs_torch.learning.ConcernLoss`; if ``penalties`` is None, all errors have equal penalties."""
    require(
        0 <= concern_share <= 1,
        "between",
        "concern_share",
        concern_share,
        minimum=0,
        maximum=1,
    )
    if concern_share == 0:
        return batch.mean_cross_entropy()
    if penalties is not None:
        penalties = penalties.detach().to(batch.scores)
    losses = batch.cross_entropy()
    wrong = sum_by_shares(_wrong_shares(batch, penalties), log_complement(batch.scores))
    return batch.reduced((1 - concern_share) * losses - concern_share * wrong)


def _wrong_shares(batch: LossBatch, penalties: Tensor | None) -> Tensor:
    """Return (M, C): the penalty of each class for each sample, times the weight of the true class; 0 if ignored."""
    weight, _, smoothing, _ = batch.settings
    if batch.is_soft:
        return mixed(batch.class_shares(), penalties)
    ones = batch.scores.new_ones(1, batch.scores.shape[1])
    class_weights = ones if weight is None else weight.unsqueeze(0)
    rows = _rows(penalties, batch.labels, ones) * (1 - smoothing)
    rows = rows if weight is None else rows * weight[batch.labels].unsqueeze(1)
    if smoothing:
        rows = rows + smoothing / ones.shape[1] * mixed(class_weights, penalties)
    return rows * (batch.target != batch.settings.ignore_index).unsqueeze(1)


def _rows(penalties: Tensor | None, labels: Tensor, scores: Tensor) -> Tensor:
    """Return the row of ``penalties``, (C, C) or (M, C, C), for each label: (M, C).

    None means equal penalties of wrong classes.
    """
    if penalties is not None:
        return costs_by_label(penalties, labels)
    classes = scores.shape[1]
    uniform = scores.new_full((len(labels), classes), 1 / (classes - 1))
    return uniform.scatter(1, labels.unsqueeze(1), 0.0)


def mixed(shares: Tensor, rows: Tensor | None) -> Tensor:
    """Return the products of ``shares`` (M, C) and ``rows``, (C, C) or (M, C, C); None stands for equal penalties."""
    if rows is None:
        return (shares.sum(dim=1, keepdim=True) - shares) / (shares.shape[1] - 1)
    # Losses must not depend on the caller's autocast.
    with torch.autocast(shares.device.type, enabled=False):
        return (shares.unsqueeze(1) @ rows).squeeze(1)


def log_complement(scores: Tensor) -> Tensor:
    """Compute log(1 - softmax(scores)) (M, C), which is exact even where a probability rounds to 1.

    For the most probable class, the other probabilities are summed. For every other class, 1 - p is at least 1/2.
    """
    top = scores.max(dim=1, keepdim=True).indices
    # Finite, even if all are -inf.
    others = scores.scatter(1, top, float("-inf")).clamp(min=torch.finfo(scores.dtype).min)
    total = scores.logsumexp(dim=1, keepdim=True)
    top_complement = others.logsumexp(dim=1, keepdim=True) - total
    return torch.log1p(-(others - total).exp()).scatter(1, top, top_complement)


def check_margin(margin: float) -> None:
    """Check that ``margin`` is finite and >= 0."""
    require(0 <= margin < float("inf"), "finite_at_least", "margin", margin, minimum=0)


def softmax_margin_loss(batch: LossBatch, costs: Tensor, margin: float) -> Tensor:
    """Compute `mpcs_torch.learning.SoftmaxMarginLoss` from ``costs`` of errors, (C, C) or (M, C, C)."""
    if margin == 0:
        return batch.mean_cross_entropy()
    costs = costs.to(batch.scores)
    added = (
        mixed(batch.target, costs)
        if batch.is_soft
        else _rows(costs, batch.labels, batch.scores)
    )
    return batch._replace(
        scores=torch.add(batch.scores, added, alpha=margin)
    ).mean_cross_entropy()
