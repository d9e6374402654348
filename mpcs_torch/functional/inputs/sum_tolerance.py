"""Decide how far a sum of probabilities, of shares of annotators, or of printed scores may be from 1."""

import torch
from torch import Tensor

SUM_TOLERANCE = 1.001e-3
"""The allowed distance of a sum of probabilities from 1: 0.001 for printed decimals, plus float32 rounding."""
TWO_DECIMALS = 0.005
"""The allowed distance for each number that was rounded to two decimals."""


def sum_tolerance(dtype: torch.dtype) -> float:
    """Return the allowed distance from 1 of the sum of probabilities of the given dtype."""
    return max(SUM_TOLERANCE, torch.finfo(dtype).eps)


def sums_to_1(probs: Tensor) -> bool:
    """Return whether each row of ``probs`` (..., C) sums to 1, up to rounding."""
    return bool(((probs.sum(-1) - 1).abs() <= sum_tolerance(probs.dtype)).all())


def shares_tolerance(shares: Tensor) -> Tensor:
    """Return the allowed distance from 1 (M,) of the sums of shares (M, C), which may have two decimals."""
    return TWO_DECIMALS * shares.count_nonzero(dim=1) + 1e-6  # and float32 rounding


def printed_tolerances(num_classes: int) -> dict[float, float]:
    """Return the allowed distances of the sums of printed scores from 1 and, for percentages, from 100.

    Fractions may all be rounded in the same direction, so that their errors add up. Those of whole percentages mostly
    cancel: the sum of C of them has a standard deviation of about 0.29 times the square root of C.
    """
    return {
        1.0: min(TWO_DECIMALS * num_classes, 0.25) + SUM_TOLERANCE,
        100.0: 0.5 * num_classes**0.5 + 0.5,
    }
