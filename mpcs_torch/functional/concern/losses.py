"""Training losses: the differentiable limit of MPCS, and cross entropy with a larger margin for costlier errors."""

from collections.abc import Callable
from math import isfinite, nan
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.inputs.logits import (
    LossBatch,
    sum_by_shares,
)


def penalty_matrix(concern: Tensor) -> Tensor:
    """Convert concern weights to penalties of wrong classes, (C, C): each row sums to 1, and the diagonal is 0."""
    concern = concern if concern.is_floating_point() else concern.float()
    off_diagonal = without_diagonal(concern)
    return off_diagonal / off_diagonal.sum(dim=1, keepdim=True)


def concern_loss(batch: LossBatch, penalties: Tensor | None, concern_share: float) -> Tensor:
    """Compute `mpcs_torch.learning.ConcernLoss`; if ``penalties`` (C, C) is None, all errors have equal penalties."""
    if not 0 <= concern_share <= 1:
        raise ValueError(f"concern_share must be from 0 to 1, but got {concern_share}.")
    if concern_share == 0:
        return batch.mean_cross_entropy()
    penalties = None if penalties is None else penalties.detach().to(batch.scores)
    total = _fused_concern_loss(batch, penalties, concern_share)
    return _reference_concern_loss(batch, penalties, concern_share) if total is None else total


def _reference_concern_loss(batch: LossBatch, penalties: Tensor | None, concern_share: float) -> Tensor:
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
    """Return the row of ``penalties`` (C, C) for each label: (M, C). None means equal penalties of wrong classes."""
    if penalties is not None:
        return penalties.index_select(0, labels)
    classes = scores.shape[1]
    uniform = scores.new_full((len(labels), classes), 1 / (classes - 1))
    return uniform.scatter(1, labels.unsqueeze(1), 0.0)


def mixed(shares: Tensor, rows: Tensor | None) -> Tensor:
    """Return the matrix product of ``shares`` (M, C) and ``rows`` (C, C); None stands for equal penalties of errors."""
    if rows is None:
        return (shares.sum(dim=1, keepdim=True) - shares) / (shares.shape[1] - 1)
    with torch.autocast(shares.device.type, enabled=False):  # losses must not depend on the caller's autocast
        return shares @ rows


def _fused_concern_loss(batch: LossBatch, penalties: Tensor | None, concern_share: float) -> Tensor | None:
    """Compute the sum or mean of the losses together with its gradient, which is faster than autograd.

    Return None for soft targets, label smoothing, an accelerator, torch.func, or underflow of exponentials.
    """
    weight, ignore_index, smoothing, reduction = batch.settings
    scores, target = batch.scores, batch.target
    is_plain = batch.is_soft or smoothing or reduction == "none" or not len(scores) or torch.compiler.is_compiling()
    if is_plain or not (_is_readable(scores) and _is_readable(target)):
        return None
    factor: Any = 1 / len(scores) if reduction == "mean" else 1.0
    if weight is not None or batch.sample_weight is not None or (target == ignore_index).any():
        target, mass = batch.labels, batch.mass()
        if mass.requires_grad or not _is_readable(mass):
            return None
        factor = (mass / mass.sum() if reduction == "mean" else mass).unsqueeze(1)
    logits = scores.detach().resolve_neg()
    rows = _rows(penalties, target, logits)
    if logits.numel() <= 2**15:  # torch would use only one thread here, and NumPy calls are faster
        array, factors = logits.numpy(), factor if isinstance(factor, float) else factor.numpy()
        with np.errstate(all="ignore"):
            loss, array = _loss_and_gradient(
                np, array, target.numpy(), array.argmax(1), rows.numpy(), concern_share, factors
            )
        gradient = torch.from_numpy(array)
    else:
        with torch.no_grad():
            top = logits.max(1).indices
            loss, gradient = _loss_and_gradient(torch, logits, target, top, rows, concern_share, factor)
    if not isfinite(loss):  # underflow of exponentials, an impossible class, or no counted sample
        return None

    def definition(scores: Tensor) -> Tensor:
        return _reference_concern_loss(batch._replace(scores=scores), penalties, concern_share)

    used = [target, *(tensor for tensor in (penalties, weight, batch.sample_weight) if tensor is not None)]
    try:
        result: Tensor = _WithGradient.apply(scores, float(loss), gradient, concern_share * factor, definition, *used)
    except RuntimeError:  # inside a transform of torch.func over other tensors
        return None
    return result


def _loss_and_gradient(
    lib: Any, scores: Any, target: Any, top: Any, rows: Any, share: float, factor: Any
) -> tuple[Any, Any]:
    r"""Return the sum of the losses times ``factor``, and its gradient (M, C) divided by ``share * factor``.

    Let :math:`u_j` be the exponential of logit j minus the highest logit, U their sum, and :math:`x_j = U - u_j`. With
    the label y, the share s and the penalties w (``rows``), the loss of a sample is :math:`\log U - (1 - s) \log u_y
    - s \sum_j w_j \log x_j`. ``top`` has the class with the highest logit; ``lib`` is NumPy or torch.
    """
    at = lib.arange(len(target))
    u = scores - scores[at, top][:, None]
    losses = (share - 1) * u[at, target]
    u = lib.exp(u, out=u)
    u[at, top] = 0
    others = u.sum(1)
    if others.min() < lib.finfo(u.dtype).tiny:
        return nan, u
    total = others + 1
    losses += lib.log(total)
    x = total[:, None] - u
    x[at, top] = others
    logs = lib.log(x, out=x)
    if isinstance(factor, float):
        loss = (losses.sum() - share * lib.dot(rows.reshape(-1), logs.reshape(-1))) * factor
    else:
        loss = ((losses[:, None] - share * (rows * logs).sum(1)[:, None]) * factor).sum()
    gradient = lib.divide(rows, lib.exp(logs, out=logs), out=logs)
    top_ratio = gradient[at, top]
    gradient[at, top] = 0
    top_gradient = 1 / (share * total) - gradient.sum(1)
    gradient += (top_gradient - top_ratio)[:, None]
    gradient *= u
    gradient[at, top] = top_gradient
    gradient[at, target] += 1 - 1 / share
    return loss, gradient


def _is_readable(values: Tensor) -> bool:
    """Return whether ``values`` are on the CPU, outside torch.func transforms and forward-mode derivatives."""
    try:
        return values.is_cpu and values.data_ptr() is not None and unpack_dual(values).tangent is None  # type: ignore[no-untyped-call]
    except RuntimeError:  # inside a transform, a tensor has no memory
        return False


class _WithGradient(torch.autograd.Function):
    """A loss with a precomputed gradient. For second derivatives, autograd differentiates the loss ``definition``."""

    @staticmethod
    def forward(
        ctx: Any,
        scores: Tensor,
        value: float,
        gradient: Tensor,
        factor: Tensor | float,
        definition: Callable[[Tensor], Tensor],
        *used: Tensor,
    ) -> Tensor:
        ctx.save_for_backward(scores, gradient, *used)  # autograd then detects changes in place
        ctx.factor, ctx.definition = factor, definition
        return scores.new_tensor(value)

    @staticmethod
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        scores, gradient, *used = ctx.saved_tensors
        none = (None,) * (4 + len(used))
        if torch.is_grad_enabled():
            (gradient,) = torch.autograd.grad(ctx.definition(scores), scores, create_graph=True)
            return gradient * upstream, *none
        return gradient * (upstream * ctx.factor), *none


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
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin must be finite and >= 0, but got {margin}.")


def softmax_margin_loss(batch: LossBatch, costs: Tensor, margin: float) -> Tensor:
    """Compute `mpcs_torch.learning.SoftmaxMarginLoss` from ``costs`` (C, C) with 0 on the diagonal."""
    if margin == 0:
        return batch.mean_cross_entropy()
    costs = costs.to(batch.scores)
    added = mixed(batch.target, costs) if batch.is_soft else costs.index_select(0, batch.labels)
    return batch._replace(scores=torch.add(batch.scores, added, alpha=margin)).mean_cross_entropy()
