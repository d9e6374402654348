"""How far a sum of probabilities may be from 1, in tensors and in files."""

import torch
from torch import Tensor

SUM_TOLERANCE = 1.001e-3
"""Three printed decimals may sum to 0.999, which float32 rounds further."""


def sum_tolerance(dtype: torch.dtype) -> float:
    """Return the largest distance from 1 of a sum of probabilities that were rounded to a type."""
    return max(SUM_TOLERANCE, torch.finfo(dtype).eps)


def sums_to_1(probs: Tensor) -> bool:
    """Return whether each row of probabilities (..., C) sums to 1."""
    return bool(((probs.sum(-1) - 1).abs() <= sum_tolerance(probs.dtype)).all())
