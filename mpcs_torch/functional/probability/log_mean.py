"""The logarithm of a generalized mean, which neither overflows nor loses its digits for small powers."""

import torch
from torch import Tensor

NEARLY_ZERO = 1e-8
"""Below it, powers are taken as 0: their means differ by less than rounding would change the mean of such a power."""


def log_generalized_mean(logs: Tensor, weights: Tensor, power: float) -> Tensor:
    """Return log M_r of values from their logarithms (N,), finite where their weights (N,) are 0; NaN of none."""
    if abs(power) < NEARLY_ZERO:
        return (weights * logs).sum() / weights.sum()
    return (torch.logsumexp(power * logs + weights.log(), dim=0) - weights.sum().log()) / power
