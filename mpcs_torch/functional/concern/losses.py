"""Training losses: the differentiable limit of MPCS, and cross entropy with a margin for each kind of error."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.inputs.arrays import ConcernLike, weights_of
from mpcs_torch.functional.inputs.checks import (
    LossReduction,
    LossSettings,
    check_concern,
    check_costs,
    check_loss_inputs,
)


def concern_loss(
    logits: Tensor,
    target: Tensor,
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
        logits: ``(N, C)`` or ``(N, C, ...)``, floating point; half types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``, or ``ignore_index``.
        concern: A `ConcernSpec`, or ``(C, C)`` weights > 0 for taking the true class (row) for another (column); the
            diagonal is not read. Default: 1 everywhere.
        concern_share: s, the share of the second term, from 0 to 1.
        weight: ``(C,)`` weights >= 0 of the true classes, as in `torch.nn.functional.cross_entropy`: ``"mean"`` divides
            by the sum of the samples' weights.
        ignore_index: Label of samples to leave out.
        label_smoothing: The share of each label, from 0 to 1, that is spread evenly over all classes.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per sample (0 where ignored).

    Returns:
        A scalar, or the shape of ``target`` with ``reduction="none"``; float32, or float64 for float64 logits. The mean
        is NaN if every sample is left out, as in torch.

    Raises:
        ValueError: If a setting, a shape or a dtype breaks its rule above.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 4 to 9, for k = C and t to infinity.

    Example:
        >>> logits = torch.tensor([[2.0, 0.0, 0.0]])
        >>> concern_loss(logits, torch.tensor([0]))
        tensor(0.1761)
    """
    weights = None if concern is None else weights_of(concern).to(logits.device)
    if weights is not None and logits.ndim > 1:
        check_concern(weights, logits.shape[1])  # a module looks at these values only once
    settings = LossSettings(weight, ignore_index, label_smoothing, reduction)
    return checked_concern_loss(logits, target, weights, concern_share, settings)


def checked_concern_loss(
    logits: Tensor, target: Tensor, concern: Tensor | None, concern_share: float, settings: LossSettings
) -> Tensor:
    """Compute `concern_loss` with a checked concern. Nothing here waits for an accelerator."""
    check_loss_inputs(logits, target, settings)
    weight, ignore_index, label_smoothing, reduction = settings
    if not 0 <= concern_share <= 1:
        raise ValueError(f"concern_share must be from 0 to 1, but got {concern_share}.")
    num_classes = logits.shape[1]
    scores = logits.movedim(1, -1).reshape(-1, num_classes)
    scores = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    labels = target.reshape(-1).long()
    counted = labels != ignore_index
    labels = torch.where(counted, labels, 0)

    class_weight = torch.ones(num_classes) if weight is None else weight
    class_weight = class_weight.to(scores)
    # Not one_hot, which reads values and so stops a vmap.
    is_true = labels.unsqueeze(1) == torch.arange(num_classes, device=labels.device)
    smoothed = is_true.to(scores) * (1 - label_smoothing) + label_smoothing / num_classes
    label_share = smoothed * class_weight
    loss = (1 - concern_share) * -_weighted(label_share, scores.log_softmax(dim=1))
    if concern_share:
        matrix = torch.ones(num_classes, num_classes) if concern is None else concern
        off_diagonal = matrix.to(scores).clone().fill_diagonal_(0)
        wrong_share = label_share @ (off_diagonal / off_diagonal.sum(dim=1, keepdim=True))
        loss = loss - concern_share * _weighted(wrong_share, log_complement(scores))
    loss = torch.where(counted, loss, 0.0)
    if reduction == "none":
        return loss.reshape(target.shape)
    return loss.sum() if reduction == "sum" else loss.sum() / (class_weight[labels] * counted).sum()


def log_complement(scores: Tensor) -> Tensor:
    """Compute log(1 - softmax(scores)) of (M, C), without cancellation where a probability rounds to 1.

    For the most probable class, the probabilities of the others are summed. Every other class has at most 1/2.
    """
    top = scores.argmax(dim=1, keepdim=True)
    is_top = torch.zeros_like(scores, dtype=torch.bool).scatter(1, top, True)
    log_total = scores.logsumexp(dim=1, keepdim=True)
    of_top = scores.masked_fill(is_top, float("-inf")).logsumexp(dim=1, keepdim=True) - log_total
    of_others = torch.log1p(-(scores - log_total).masked_fill(is_top, float("-inf")).exp())
    return torch.where(is_top, of_top, of_others)


def _weighted(share: Tensor, logs: Tensor) -> Tensor:
    """Sum logarithms over classes by their shares. A class with share 0 adds 0, even if its logarithm is infinite."""
    return torch.where(share > 0, share * logs, 0.0).sum(dim=1)


def softmax_margin_loss(
    logits: Tensor,
    target: Tensor,
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

    The true class must win by a larger margin over a class whose confusion with it matters more. The costs are added
    for training only: probabilities of new samples are the plain softmax of the logits.

    The ``margin`` m >= 0 is in nats for a concern of 1; with 0 the loss is cross entropy. Weights of ``concern`` may be
    0. The other arguments, the result and the errors are those of `concern_loss`. As in
    `torch.nn.functional.cross_entropy`, the target may also hold the share of each class in a sample, floating point in
    the shape of ``logits``, such as mixup makes: the costs D of the classes are then averaged by their shares.

    References:
        Gimpel, Smith: Softmax-Margin CRFs: Training Log-Linear Models with Cost Functions, NAACL HLT 2010.

    Example:
        >>> logits = torch.tensor([[2.0, 0.0, 0.0]])
        >>> softmax_margin_loss(logits, torch.tensor([0]), concern=torch.ones(3, 3))
        tensor(0.5514)
    """
    weights = weights_of(concern).to(logits.device)
    if logits.ndim > 1:
        check_costs(weights, logits.shape[1])  # a module looks at these values only once
    settings = LossSettings(weight, ignore_index, label_smoothing, reduction)
    return checked_softmax_margin_loss(logits, target, without_diagonal(weights), margin, settings)


def checked_softmax_margin_loss(
    logits: Tensor, target: Tensor, costs: Tensor, margin: float, settings: LossSettings
) -> Tensor:
    """Compute `softmax_margin_loss` with checked costs, 0 on the diagonal. Nothing here waits for an accelerator."""
    check_loss_inputs(logits, target, settings, takes_shares=True)
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin must be finite and >= 0, but got {margin}.")
    scores = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    costs = costs.to(scores)
    if target.is_floating_point():
        labels = target.to(scores)
        added = labels.movedim(1, -1) @ costs
    else:
        labels = target.long()
        added = costs[labels.clamp(0, len(costs) - 1)]  # those of ignored samples do not count
    weight = None if settings.weight is None else settings.weight.to(scores)
    return cross_entropy(scores + margin * added.movedim(-1, 1), labels, **settings._replace(weight=weight)._asdict())
