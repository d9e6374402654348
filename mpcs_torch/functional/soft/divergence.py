"""How far predictions are from labels that are degrees of truth."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.soft_labels import flatten_soft


def soft_kl_divergence(preds: Tensor, target: Tensor, *, epsilon: float = 0.0, ignore: Tensor | None = None) -> Tensor:
    r"""Mean binary Kullback-Leibler divergence of predictions from labels; in nats, lower is better, 0 is perfect.

    .. math:: \frac{1}{n} \sum y \log \frac{y}{p} + (1 - y) \log \frac{1 - y}{1 - p}

    Args:
        preds: ``(N,)``, ``(N, C)`` or ``(N, C, ...)``, floating point in [0, 1].
        target: The same shape, floating point, integer or bool, in [0, 1].
        epsilon: Predictions are moved into [epsilon, 1 - epsilon] first. With 0, a prediction that contradicts a
            certain label, or is certain where the label is not, makes the mean infinite.
        ignore: The same shape, bool: True where an element is left out.

    Returns:
        A scalar, float32, or float64 if an input is; NaN if nothing is counted.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 4.

    Example:
        >>> soft_kl_divergence(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.1491)
    """
    check_epsilon(epsilon)
    p, y, counted, faults = flatten_soft(preds, target, ignore)
    raise_first(faults)
    wide = widest_float(p.device)  # float32 has no 1 - 1e-8
    mean = divergence_sum(p.to(wide), y.to(wide), counted, epsilon) / counted.sum()
    return mean.to(p.dtype)


def divergence_sum(p: Tensor, y: Tensor, counted: Tensor, epsilon: float) -> Tensor:
    """Sum of the binary divergences of the elements that count."""
    p = p.clamp(epsilon, 1 - epsilon) if epsilon else p
    parts = _divergence(p, y) + _divergence(1 - p, 1 - y)
    return torch.where(counted, parts, 0.0).sum()


def check_epsilon(epsilon: float) -> None:
    """Refuse a clamp that leaves nothing, or turns the interval round."""
    if not 0 <= epsilon < 0.5:
        raise ValueError(f"epsilon must be from 0 to below 0.5, but got {epsilon}.")


def _divergence(p: Tensor, y: Tensor) -> Tensor:
    """The part y log(y / p), 0 where y is 0, whatever p is there; so is its gradient."""
    some = y > 0
    return y * (torch.where(some, y, 1.0).log() - torch.where(some, p, 1.0).log())
