"""The sums that soft precision, recall and F are made of."""

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_zero_division

SoftAverage = Literal["micro", "macro", "weighted", "none"]


class SoftSums(NamedTuple):
    """What all soft metrics are made of, (C,) each."""

    shared: Tensor
    """Sum of min(p, y)."""
    predicted: Tensor
    """Sum of p."""
    actual: Tensor
    """Sum of y."""
    elements: Tensor
    """How many were counted."""


def soft_sums(p: Tensor, y: Tensor, counted: Tensor, dtype: torch.dtype) -> SoftSums:
    """Sums over the samples of `flatten_soft`, in a wide type."""
    shared = torch.minimum(p, y)
    return SoftSums(*(tensor.sum(dim=0, dtype=dtype) for tensor in (shared, p, y, counted)))


def score_of(sums: SoftSums, *, beta: float, average: SoftAverage, zero_division: float) -> Tensor:
    """F of sums; precision is its limit for beta = 0, recall for an infinite one."""
    of_actual = 1.0 if beta == float("inf") else beta**2 / (1 + beta**2)
    pooled = SoftSums(*(part.sum() for part in sums)) if average == "micro" else sums
    mass = of_actual * pooled.actual + (1 - of_actual) * pooled.predicted
    is_empty = mass == 0
    score = torch.where(is_empty, zero_division, pooled.shared / torch.where(is_empty, 1.0, mass))
    if average == "macro":
        return score.mean()
    if average == "weighted":
        total = sums.actual.sum()
        weighed = torch.where(sums.actual == 0, 0.0, score * sums.actual).sum()  # NaN of an absent class weighs nothing
        return torch.where(total == 0, zero_division, weighed / torch.where(total == 0, 1.0, total))
    return score


def check_beta(beta: float) -> None:
    """Refuse a weight of recall that is not above 0."""
    if not 0 < beta < float("inf"):
        raise ValueError(f"beta must be finite and > 0, but got {beta}.")


def check_soft_settings(average: str, zero_division: float) -> None:
    """Refuse an unknown average, and a result of 0 / 0 that is not 0, 1 or NaN."""
    if average not in get_args(SoftAverage):
        raise ValueError(f"average must be one of {', '.join(get_args(SoftAverage))}, but got {average!r}.")
    check_zero_division(zero_division)
