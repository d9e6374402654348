"""Training losses: the differentiable limit of MPCS, and cross entropy with a larger margin for costlier errors."""

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.inputs.groups import costs_by_label, flat_costs
from mpcs_torch.functional.inputs.logits import (
    LossBatch,
    check_values,
    sum_by_shares,
)


class RowCosts(NamedTuple):
    """The costs of the errors in each of M rows, which take the place of the rows of a matrix (C, C)."""

    costs: Tensor
    """(M, C): of each class if it is wrong; or (M, C, C): of each class by true class."""
    is_penalty: bool
    """Whether the costs of each true class are divided by their sum, as in `penalty_matrix`."""

    @classmethod
    def of(cls, batch: LossBatch, logits: Tensor, costs: Any, *, is_penalty: bool) -> Self:
        """Check the costs of a batch, shaped like ``logits`` or by true class, and flatten them to M rows."""
        flat = flat_costs(costs, logits.shape).to(batch.scores)
        highest = torch.finfo(flat.dtype).max
        check_values(Rule("finite", "costs"), flat, highest, -highest)
        return cls(flat, is_penalty)

    def rows(self, labels: Tensor) -> Tensor:
        """Return what each class costs beyond the right decision, (M, C), >= 0, if the true classes are ``labels``."""
        costs = costs_by_label(self.costs, labels)
        beyond = (costs - costs.gather(1, labels.unsqueeze(1))).clamp(min=0)
        if not self.is_penalty:
            return beyond
        total = beyond.sum(dim=1, keepdim=True)
        return beyond / torch.where(total > 0, total, 1.0)

    def mixed(self, shares: Tensor) -> Tensor:
        """Return the mean (M, C) of `rows` over true classes, weighted by ``shares``, (M, C) or (1, C)."""
        mean = torch.zeros_like(self.costs[..., 0, :] if self.costs.ndim == 3 else self.costs)
        for label, share in enumerate(shares.unbind(1)):  # a matrix for each row would take C times the memory
            mean += share.unsqueeze(1) * self.rows(torch.full_like(mean[:, 0], label, dtype=torch.int64))
        return mean


Penalties = Tensor | RowCosts | None
"""The costs of errors: of pairs of classes, (C, C), or of each row. None means equal costs of all errors."""


def penalty_matrix(concern: Tensor) -> Tensor:
    """Convert concern weights to penalties of wrong classes, (C, C): each row sums to 1, and the diagonal is 0."""
    off_diagonal = without_diagonal(concern)
    return off_diagonal / off_diagonal.sum(dim=1, keepdim=True)


def concern_loss(batch: LossBatch, penalties: Penalties, concern_share: float) -> Tensor:
    """Compute `mpcs_torch.learning.ConcernLoss`; if ``penalties`` is None, all errors have equal penalties."""
    require(0 <= concern_share <= 1, "between", "concern_share", concern_share, minimum=0, maximum=1)
    if concern_share == 0:
        return batch.mean_cross_entropy()
    if isinstance(penalties, Tensor):
        penalties = penalties.detach().to(batch.scores)
    losses = batch.cross_entropy()
    wrong = sum_by_shares(_wrong_shares(batch, penalties), log_complement(batch.scores))
    return batch.reduced((1 - concern_share) * losses - concern_share * wrong)


def _wrong_shares(batch: LossBatch, penalties: Penalties) -> Tensor:
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


def _rows(penalties: Penalties, labels: Tensor, scores: Tensor) -> Tensor:
    """Return the row of ``penalties`` for each label: (M, C). None means equal penalties of wrong classes."""
    if isinstance(penalties, RowCosts):
        return penalties.rows(labels)
    if penalties is not None:
        return penalties.index_select(0, labels)
    classes = scores.shape[1]
    uniform = scores.new_full((len(labels), classes), 1 / (classes - 1))
    return uniform.scatter(1, labels.unsqueeze(1), 0.0)


def mixed(shares: Tensor, rows: Penalties) -> Tensor:
    """Return the matrix product of ``shares`` (M, C) and ``rows`` (C, C); None stands for equal penalties of errors."""
    if isinstance(rows, RowCosts):
        return rows.mixed(shares)
    if rows is None:
        return (shares.sum(dim=1, keepdim=True) - shares) / (shares.shape[1] - 1)
    with torch.autocast(shares.device.type, enabled=False):  # losses must not depend on the caller's autocast
        return shares @ rows


def log_complement(scores: Tensor) -> Tensor:
    """Compute log(1 - softmax(scores)) (M, C), which is exact even where a probability rounds to 1.

    For the most probable class, the other probabilities are summed. For every other class, 1 - p is at least 1/2.
    """
    top = scores.max(dim=1, keepdim=True).indices
    others = scores.scatter(1, top, float("-inf")).clamp(min=torch.finfo(scores.dtype).min)  # finite if all are -inf
    total = scores.logsumexp(dim=1, keepdim=True)
    top_complement = others.logsumexp(dim=1, keepdim=True) - total
    return torch.log1p(-(others - total).exp()).scatter(1, top, top_complement)


def check_margin(margin: float) -> None:
    """Check that ``margin`` is finite and >= 0."""
    require(0 <= margin < float("inf"), "finite_at_least", "margin", margin, minimum=0)


def softmax_margin_loss(batch: LossBatch, costs: Tensor | RowCosts, margin: float) -> Tensor:
    """Compute `mpcs_torch.learning.SoftmaxMarginLoss` from ``costs`` (C, C) with 0 on the diagonal, or of rows."""
    if margin == 0:
        return batch.mean_cross_entropy()
    if isinstance(costs, Tensor):
        costs = costs.to(batch.scores)
    added = mixed(batch.target, costs) if batch.is_soft else _rows(costs, batch.labels, batch.scores)
    return batch._replace(scores=torch.add(batch.scores, added, alpha=margin)).mean_cross_entropy()
