"""The sums that soft precision, recall and F are made of."""

from typing import Literal, NamedTuple, get_args

import torch
from torch import Tensor

from mpcs_torch.functional.checks import check_zero_division
from mpcs_torch.functional.faults import Fault

SoftAverage = Literal["micro", "macro", "weighted", "none"]
RULES = ("target must hold degrees of truth from 0 to 1", "preds must hold degrees of truth from 0 to 1")
ROUNDING = 1e-6
"""How far a mean of float32 degrees may fall outside."""


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


def flatten_soft(
    preds: Tensor, target: Tensor, ignore: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, tuple[Fault, Fault]]:
    """Predictions, labels (0 where ignored) and what is counted as (M, C), and the rows that break a rule.

    Nothing here looks at a value, so an accelerator is never waited for.
    """
    if not preds.is_floating_point():
        raise ValueError(f"preds must be floating point degrees of truth, but got dtype {preds.dtype}.")
    if preds.ndim < 1 or target.is_complex() or target.shape != preds.shape:
        raise ValueError(
            f"target must be real and of the shape of preds {tuple(preds.shape)}, "
            f"but got {target.dtype} of {tuple(target.shape)}."
        )
    if ignore is not None and (ignore.dtype != torch.bool or ignore.shape != preds.shape):
        raise ValueError(
            f"ignore must be bool and of the shape of preds {tuple(preds.shape)}, "
            f"but got {ignore.dtype} of {tuple(ignore.shape)}."
        )
    wide = torch.float64 if torch.float64 in (preds.dtype, target.dtype) else torch.float32
    counted = torch.ones_like(preds, dtype=torch.bool) if ignore is None else ~ignore
    p, y, rows = (_by_class(tensor) for tensor in (preds.to(wide), target.to(wide), counted))
    p, y = torch.where(rows, p, 0.0), torch.where(rows, y, 0.0)
    target_fault, preds_fault = (
        Fault(rule, ~((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all(dim=1), values.detach())
        for rule, values in zip(RULES, (y, p), strict=True)
    )
    return p.clamp(0, 1), y.clamp(0, 1), rows, (target_fault, preds_fault)


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


def _by_class(tensor: Tensor) -> Tensor:
    """(N,), (N, C) or (N, C, ...) as (M, C)."""
    if tensor.ndim == 1:
        return tensor.unsqueeze(1)
    return tensor if tensor.ndim == 2 else tensor.movedim(1, -1).reshape(-1, tensor.shape[1])
