"""The tolerance with which probabilities must sum to 1."""

import torch
from torch import Tensor

SUM_TOLERANCE = 1.001e-3
"""The allowed distance of a sum of probabilities from 1: 0.001 for printed decimals, plus float32 rounding."""


def sum_tolerance(dtype: torch.dtype) -> float:
    """Return the allowed distance from 1 of the sum of probabilities of the given dtype."""
    return max(SUM_TOLERANCE, torch.finfo(dtype).eps)


def sums_to_1(probs: Tensor) -> bool:
    """Return whether each row of ``probs`` (..., C) sums to 1, up to rounding."""
    return bool(((probs.sum(-1) - 1).abs() <= sum_tolerance(probs.dtype)).all())
