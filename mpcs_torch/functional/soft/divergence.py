"""The binary Kullback-Leibler divergence of predictions from soft labels."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.soft_labels import SoftSamples, flatten_soft


def soft_kl_divergence(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    epsilon: float = 0.0,
) -> Tensor:
    r"""Compute the mean binary Kullback-Leibler divergence of predictions from soft labels; in nats, lower is better.

    0 is perfect. The mean is over all elements of all classes:

    .. math:: \frac{1}{n} \sum y \log \frac{y}{p} + (1 - y) \log \frac{1 - y}{1 - p}

    Predictions are clamped to [epsilon, 1 - epsilon], with ``epsilon`` from 0 to below 1/2. If it is 0, the mean is
    infinite if a prediction is 0 or 1 and its label differs. The other arguments and errors are those of `soft_fbeta`.

    Returns:
        A float64 scalar (float32 on MPS), with gradients; NaN if every element is ignored.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 2.2 (Table 1) and Section 3 (Table 2).

    Example:
        >>> soft_kl_divergence(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.1491, dtype=torch.float64)
    """
    check_epsilon(epsilon)
    samples = flatten_soft(preds, target, num_classes=None, sample_weight=sample_weight, ignore=ignore)
    raise_first(samples.find_faults())
    sums = divergence_sums(samples, epsilon)
    return sums.total / sums.weight


def divergence_sums(samples: SoftSamples, epsilon: float) -> WeightedSum:
    """Sum the divergences of all elements that are not ignored, without synchronizing an accelerator."""
    wide = widest_float(samples.preds.device)  # 1 - 1e-8 is 1 in float32

    def divergences(chunk: SoftSamples) -> tuple[Tensor]:
        p, y = chunk.predicted.to(wide), chunk.actual.to(wide)
        p = p.clamp(epsilon, 1 - epsilon) if epsilon else p
        values = _divergence(p, y) + _divergence(1 - p, 1 - y)
        return (values if chunk.ignored is None else torch.where(chunk.ignored, 0.0, values),)

    (divergence,) = samples.sums(divergences, wide)
    return WeightedSum(divergence.sum(-1), samples.elements(wide).sum(-1))


def check_epsilon(epsilon: float) -> None:
    """Check that epsilon is from 0 to below 0.5."""
    if not 0 <= epsilon < 0.5:
        raise ValueError(f"epsilon must be from 0 to below 0.5, but got {epsilon}.")


def _divergence(p: Tensor, y: Tensor) -> Tensor:
    """Return y log(y / p) of each element. If y is 0, the value and its gradient are 0 for every p."""
    is_positive = y > 0
    return y * (torch.where(is_positive, y, 1.0).log() - torch.where(is_positive, p, 1.0).log())
