"""A training loss: the generalized mean of the probability of the true class."""

from math import isfinite

from torch import Tensor
from torch.nn.functional import cross_entropy

from mpcs_torch.functional.inputs.checks import check_loss_inputs
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.probability.log_mean import log_generalized_mean


def generalized_mean_loss(logits: Tensor, target: Tensor, *, power: float, ignore_index: int = -100) -> Tensor:
    r"""Compute -log of the generalized mean of the probability of the true class; in nats, lower is better.

    .. math:: L = -\frac{1}{r} \log \frac{1}{N} \sum_n p_{n y_n}^r

    With power 0 it is cross entropy, with 1 -log of decisiveness, with -2/3 -log of robustness, all without a floor.
    Its gradient is that of cross entropy with sample weights proportional to :math:`p^r`, of mean 1: powers below 0
    look at the samples that the model gets most wrong, powers above 0 give them up, as suits wrong labels. The mean is
    that of the batch, so the loss of a small batch is noisy for powers far from 0.

    Args:
        logits: ``(N, C)`` or ``(N, C, ...)``, floating point; half types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``, or ``ignore_index``.
        power: r, finite.
        ignore_index: Label of samples to leave out.

    Returns:
        A scalar: float32, or float64 for float64 logits; NaN if every sample is left out, as in torch.

    Raises:
        ValueError: If a setting, a shape or a dtype breaks its rule above.

    References:
        George, Barrera, Nelson: Applying the decisiveness and robustness metrics to convolutional neural networks,
        arXiv:2006.00058, Eq. 2; Section 6 proposes decisiveness and robustness as losses, without an equation.

    Example:
        >>> import torch
        >>> logits = torch.tensor([[0.9, 0.1], [0.6, 0.4]]).log()
        >>> generalized_mean_loss(logits, torch.tensor([0, 1]), power=1.0).exp()  # 1 / decisiveness
        tensor(1.5385)
    """
    check_loss_inputs(logits, target, weight=None, ignore_index=ignore_index, label_smoothing=0.0, reduction="mean")
    if not isfinite(power):
        raise ValueError(f"power must be finite, but got {power}.")
    scores = logits if logits.element_size() > 2 else logits.float()
    labels = target.long()
    losses = cross_entropy(scores, labels, ignore_index=ignore_index, reduction="none")
    logs = -losses.flatten().to(widest_float(logits.device))
    counted = (labels != ignore_index).flatten().to(logs)  # the cross entropy of ignored samples is 0
    return -log_generalized_mean(logs, counted, power).to(losses.dtype)
