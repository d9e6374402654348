"""A training loss: cross entropy with a margin for each kind of error."""

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from mpcs_torch.functional.concern.decision import without_diagonal
from mpcs_torch.functional.inputs.arrays import ConcernLike, weights_of
from mpcs_torch.functional.inputs.checks import LossReduction, check_costs, check_loss_inputs


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

    Args:
        logits: ``(N, C)`` or ``(N, C, ...)``, floating point; half types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``, or ``ignore_index``.
        concern: A `ConcernSpec`, or ``(C, C)`` weights >= 0 for taking the true class (row) for another (column); the
            diagonal is not read.
        margin: m >= 0, in nats for a concern of 1; with 0 the loss is cross entropy.
        weight: ``(C,)`` weights >= 0 of the true classes, as in `torch.nn.functional.cross_entropy`.
        ignore_index: Label of samples to leave out.
        label_smoothing: The share of each label, from 0 to 1, that is spread evenly over all classes.
        reduction: ``"mean"``, ``"sum"``, or ``"none"`` for one loss per sample (0 where ignored).

    Returns:
        A scalar, or the shape of ``target`` with ``reduction="none"``; float32, or float64 for float64 logits. The mean
        is NaN if every sample is left out, as in torch.

    Raises:
        ValueError: If a setting, a shape or a dtype breaks its rule above.

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
    return checked_softmax_margin_loss(
        logits,
        target,
        concern=weights,
        margin=margin,
        weight=weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
    )


def checked_softmax_margin_loss(
    logits: Tensor,
    target: Tensor,
    *,
    concern: Tensor,
    margin: float,
    weight: Tensor | None,
    ignore_index: int,
    label_smoothing: float,
    reduction: LossReduction,
) -> Tensor:
    """Compute `softmax_margin_loss` with a checked concern. Nothing here waits for an accelerator."""
    check_loss_inputs(
        logits,
        target,
        weight=weight,
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
    )
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin must be finite and >= 0, but got {margin}.")
    scores = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    labels = target.long()
    costs = without_diagonal(concern.to(scores))[torch.where(labels == ignore_index, 0, labels)]
    return cross_entropy(
        scores + margin * costs.movedim(-1, 1),
        labels,
        weight=None if weight is None else weight.to(scores),
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
        reduction=reduction,
    )
