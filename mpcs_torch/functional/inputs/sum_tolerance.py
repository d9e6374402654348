"""The tolerance for sums of probabilities, in tensors and in files."""

import torch
from torch import Tensor

SUM_TOLERANCE = 1.001e-3
"""Probabilities with three printed decimals may sum to 0.999, which float32 rounds further."""


def sum_tolerance(dtype: torch.dtype) -> float:
    """Return the tolerance for the sum of probabilities of a dtype."""
    return max(SUM_TOLERANCE, torch.finfo(dtype).eps)


def sums_to_1(probs: Tensor) -> bool:
    """Return whether each row of probabilities (..., C) sums to 1."""
    return bool(((probs.sum(-1) - 1).abs() <= sum_tolerance(probs.dtype)).all())
