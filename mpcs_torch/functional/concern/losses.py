"""Training losses: the differentiable limit of MPCS, and cross entropy with a margin for each kind of error."""

from collections.abc import Callable
from math import isfinite, nan
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.forward_ad import unpack_dual

from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.inputs.arrays import ConcernLike, weights_of
from mpcs_torch.functional.inputs.checks import check_concern, check_costs
from mpcs_torch.functional.inputs.logits import (
    LossBatch,
    LossReduction,
    LossSettings,
    check_class_weight,
    loss_batch,
    sum_by_shares,
)


def concern_loss(
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    concern: Tensor | ConcernLike | None = None,
    concern_share: float = 0.5,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: LossReduction = "mean",
) -> Tensor:
    r"""Compute cross entropy plus a concern-weighted penalty on wrong classes; in nats, lower is better, 0 is perfect.

    For one sample with true class :math:`y` and probabilities :math:`p`:

    .. math::
        L = (1 - s) \cdot (-\log p_y) + s \cdot \sum_{j \ne y} \frac{D_{yj}}{\sum_{i \ne y} D_{yi}} (-\log(1 - p_j))

    With the share :math:`s = 1/2` it is the limit of MPCS over all classes (k = C) as the number of intervals t goes to
    infinity; with s = 0 it is cross entropy.

    Args:
        logits: ``(N, C)`` or ``(N, C, ...)``, or ``(C,)`` for one sample, floating point; 16-bit types are upcast. The
            logit of an impossible class may be -inf.
        target: ``(N,)``, ``(N, ...)`` or ``()`` integer class indices in ``[0, C)``, or ``ignore_index``; or the share
            of each class, >= 0, floating point in the shape of ``logits``, as from mixup.
        sample_weight: Weights >= 0 of the samples, in the shape of a target of class indices. A weight of 2 counts a
            sample twice. Default: 1.
        concern: A `ConcernSpec`, or ``(C, C)`` weights > 0 for mistaking the true class (row) for another (column); the
            diagonal is not read. Default: 1 everywhere.
        concern_share: s, the weight of the penalty, from 0 to 1.
        weight: ``(C,)`` weights >= 0 of the true classes, as in `torch.nn.functional.cross_entropy`: the mean divides
            by the sum of the samples' weights or, if the target holds class shares, by the number of samples.
        ignore_index: Label of samples to leave out.
        label_smoothing: The share of each label, from 0 to 1, that is spread uniformly over all classes.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per sample (0 where ignored).

    Returns:
        A scalar, or one loss for each sample, ``(N,)``, ``(N, ...)`` or ``()``, with ``reduction="none"``; float32, or
        float64 for float64 logits. If every sample is ignored, the mean is NaN and its gradient 0, as in torch.

    Raises:
        ValueError: If a setting, a shape or a dtype breaks its rule above.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 4 to 9, for k = C and t to infinity.

    Example:
        >>> logits = torch.tensor([[2.0, 0.0, 0.0]])
        >>> concern_loss(logits, torch.tensor([0]))
        tensor(0.1761)
    """
    settings = LossSettings(check_class_weight(weight), ignore_index, label_smoothing, reduction)
    batch = loss_batch(logits, target, settings, sample_weight)
    weights = None if concern is None else weights_of(concern).to(logits.device)
    if weights is not None:
        check_concern(weights, batch.scores.shape[1])  # a module checks these values once, when it is made
        weights = penalties_of(weights)
    return checked_concern_loss(batch, weights, concern_share)


def penalties_of(concern: Tensor) -> Tensor:
    """Convert concern weights to penalties of wrong classes, (C, C): each row sums to 1, and the diagonal is 0."""
    concern = concern if concern.is_floating_point() else concern.float()
    off_diagonal = without_diagonal(concern)
    return off_diagonal / off_diagonal.sum(dim=1, keepdim=True)


def checked_concern_loss(batch: LossBatch, penalties: Tensor | None, concern_share: float) -> Tensor:
    """Compute `concern_loss` with validated ``penalties``; None means equal penalties."""
    if not 0 <= concern_share <= 1:
        raise ValueError(f"concern_share must be from 0 to 1, but got {concern_share}.")
    if concern_share == 0:
        return batch.mean_cross_entropy()
    penalties = None if penalties is None else penalties.detach().to(batch.scores)
    try:
        total = _fused_concern_loss(batch, penalties, concern_share)
    except (IndexError, RuntimeError):  # a lookup raises one of these if a label is out of range
        batch.check_labels()
        raise
    return _reference_concern_loss(batch, penalties, concern_share) if total is None else total


def _reference_concern_loss(batch: LossBatch, penalties: Tensor | None, concern_share: float) -> Tensor:
    losses = batch.cross_entropy()
    wrong = sum_by_shares(_wrong_shares(batch, penalties), log_complement(batch.scores))
    return batch.reduced((1 - concern_share) * losses - concern_share * wrong)


def _wrong_shares(batch: LossBatch, penalties: Tensor | None) -> Tensor:
    """Return the penalty of each wrong class for each sample, with class weights: (M, C); 0 for ignored samples."""
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
    """Return the row of ``penalties`` for each label: (M, C); uniform penalties if ``penalties`` is None."""
    if penalties is not None:
        return penalties.index_select(0, labels)
    classes = scores.shape[1]
    uniform = scores.new_full((len(labels), classes), 1 / (classes - 1))
    return uniform.scatter(1, labels.unsqueeze(1), 0.0)


def mixed(shares: Tensor, rows: Tensor | None) -> Tensor:
    """Sum ``rows`` (C, C; None: uniform penalties) for each sample, weighted by ``shares`` (M, C): (M, C)."""
    if rows is None:
        return (shares.sum(dim=1, keepdim=True) - shares) / (shares.shape[1] - 1)
    with torch.autocast(shares.device.type, enabled=False):  # losses must not depend on the caller's autocast
        return shares @ rows


def _fused_concern_loss(batch: LossBatch, penalties: Tensor | None, concern_share: float) -> Tensor | None:
    """Compute the sum or mean of the losses together with its gradient; return None if this fast method cannot.

    It cannot for soft targets or label smoothing, on accelerators, in torch.func, or if exponentials underflow.
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
    r"""Return the weighted sum of losses, and its gradient (M, C) divided by ``share * factor``, in NumPy or torch.

    Let u be the exponentials of the logits minus the highest, U their sum, and :math:`x_j = U - u_j`. A sample's loss
    is :math:`\log U - (1 - s) \log u_y - s \sum_j w_j \log x_j`. For the highest, x is a direct sum: no cancellation.
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
    """Return whether ``values`` are on the CPU, and not in a transform of torch.func or a forward-mode derivative."""
    try:
        return values.is_cpu and values.data_ptr() is not None and unpack_dual(values).tangent is None  # type: ignore[no-untyped-call]
    except RuntimeError:  # inside a transform, a tensor has no memory
        return False


class _WithGradient(torch.autograd.Function):
    """A scalar with a precomputed gradient, up to a factor; ``definition`` is differentiated for second derivatives."""

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
    """Compute log(1 - softmax(scores)) of (M, C), without cancellation where a probability rounds to 1.

    For the most probable class, the other probabilities are summed. For every other class, 1 - p is at least 1/2.
    """
    top = scores.max(dim=1, keepdim=True).indices
    others = scores.scatter(1, top, float("-inf")).clamp(min=torch.finfo(scores.dtype).min)  # finite if all are -inf
    total = scores.logsumexp(dim=1, keepdim=True)
    top_complement = others.logsumexp(dim=1, keepdim=True) - total
    return torch.log1p(-(others - total).exp()).scatter(1, top, top_complement)


def softmax_margin_loss(
    logits: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    concern: Tensor | ConcernLike,
    margin: float = 1.0,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    reduction: LossReduction = "mean",
) -> Tensor:
    r"""Compute the cross entropy of logits to which the cost of each error is added; in nats, lower is better.

    For one sample with true class :math:`y` and logits :math:`z`:

    .. math::
        L = -z_y + \log \sum_j \exp(z_j + m D_{yj}), \quad D_{yy} = 0

    The true class must win by a larger margin over classes that are costlier to confuse with it. The costs are added in
    training only: at inference, probabilities are the softmax of the logits.

    The ``margin`` m >= 0 is in nats for a concern of 1; with 0 the loss is cross entropy. Weights of ``concern`` may be
    0. The other arguments, the result and the errors are those of `concern_loss`. If the target holds class
    shares, the costs D are averaged with these as weights.

    References:
        Gimpel, Smith: Softmax-Margin CRFs: Training Log-Linear Models with Cost Functions, NAACL HLT 2010.

    Example:
        >>> logits = torch.tensor([[2.0, 0.0, 0.0]])
        >>> softmax_margin_loss(logits, torch.tensor([0]), concern=torch.ones(3, 3))
        tensor(0.5514)
    """
    check_margin(margin)
    settings = LossSettings(check_class_weight(weight), ignore_index, label_smoothing, reduction)
    batch = loss_batch(logits, target, settings, sample_weight)
    weights = weights_of(concern).to(logits.device)
    check_costs(weights, batch.scores.shape[1])  # a module checks these values once, when it is made
    return checked_softmax_margin_loss(batch, without_diagonal(weights), margin)


def check_margin(margin: float) -> None:
    """Check that a margin is finite and >= 0."""
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin must be finite and >= 0, but got {margin}.")


def checked_softmax_margin_loss(batch: LossBatch, costs: Tensor, margin: float) -> Tensor:
    """Compute `softmax_margin_loss` with validated ``costs``, which are 0 on the diagonal."""
    if margin == 0:
        return batch.mean_cross_entropy()
    costs = costs.to(batch.scores)
    try:
        added = mixed(batch.target, costs) if batch.is_soft else costs.index_select(0, batch.labels)
    except IndexError:
        batch.check_labels()
        raise
    return batch._replace(scores=torch.add(batch.scores, added, alpha=margin)).mean_cross_entropy()
