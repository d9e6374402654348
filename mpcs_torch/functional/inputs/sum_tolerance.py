"""The tolerance with which the sum of probabilities must be 1, in tensors and in files."""

import torch
from torch import Tensor

SUM_TOLERANCE = 1.001e-3
"""The largest allowed distance from 1: three printed decimals may sum to 0.999, and float32 adds rounding."""


def sum_tolerance(dtype: torch.dtype) -> float:
    """Return the tolerance for the sum of probabilities that have the given dtype."""
    return max(SUM_TOLERANCE, torch.finfo(dtype).eps)


def sums_to_1(probs: Tensor) -> bool:
    """Return whether each row of probabilities (..., C) sums to 1, within the tolerance."""
    return bool(((probs.sum(-1) - 1).abs() <= sum_tolerance(probs.dtype)).all())
