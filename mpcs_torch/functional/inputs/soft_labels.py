"""Predictions and labels that are degrees of truth, of any supported shape, as one flat list of samples."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.faults import Fault

RULES = ("target must hold degrees of truth from 0 to 1", "preds must hold degrees of truth from 0 to 1")
ROUNDING = 1e-6
"""How far a mean of float32 degrees may fall outside."""


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


def _by_class(tensor: Tensor) -> Tensor:
    """(N,), (N, C) or (N, C, ...) as (M, C)."""
    if tensor.ndim == 1:
        return tensor.unsqueeze(1)
    return tensor if tensor.ndim == 2 else tensor.movedim(1, -1).reshape(-1, tensor.shape[1])
