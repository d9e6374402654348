"""Predictions and labels that are degrees of truth, of any supported shape, as one flat list of samples."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensor, as_tensors
from mpcs_torch.functional.inputs.faults import Fault
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE, Bins, find_bad_weights, flatten_weight

SOFT_RULES = (
    "target must hold degrees of truth from 0 to 1",
    "preds must hold degrees of truth from 0 to 1",
    WEIGHT_RULE,
)
"""What the values of target, preds and sample_weight must be, as error messages begin."""
ROUNDING = 1e-6
"""How far a mean of float32 degrees may fall outside [0, 1]."""


class SoftSamples(NamedTuple):
    """A batch of M samples of C classes, each a degree of truth; float32, or float64 if an input is."""

    predicted: Tensor
    """(M, C), in [0, 1]: 0 where ignored."""
    actual: Tensor
    """(M, C), in [0, 1]: 0 where ignored."""
    counted: Tensor
    """(M, C), bool: False where ignored."""
    weight: Tensor | None
    """(M, 1), widest float; None stands for 1 everywhere."""
    given: tuple[Tensor, Tensor]
    """(M, C) each: labels and predictions before they were clamped."""
    bins: Bins | None = None
    """The bin of each sample; None if sums are over all of them."""

    def find_faults(self) -> tuple[Fault, ...]:
        """Find the samples that break each rule of `SOFT_RULES`, in that order."""
        target_rule, preds_rule, _ = SOFT_RULES
        weight = torch.ones_like(self.predicted[:, 0]) if self.weight is None else self.weight.squeeze(1)
        return (
            *(
                Fault(rule, ~((values >= -ROUNDING) & (values <= 1 + ROUNDING)).all(dim=1), values.detach())
                for rule, values in zip((target_rule, preds_rule), self.given, strict=True)
            ),
            find_bad_weights(weight),
        )

    def sum(self, values: Tensor, dtype: torch.dtype) -> Tensor:
        """Sum values (M, C) over the samples with their weights, in a wide dtype: (C,), or (B, C) with bins."""
        weighted = values if self.weight is None else values * self.weight
        return weighted.sum(dim=0, dtype=dtype) if self.bins is None else self.bins.sum(weighted.to(dtype))


def flatten_soft(
    preds: Tensor, target: Tensor, *, num_classes: int | None, sample_weight: Tensor | None, ignore: Tensor | None
) -> SoftSamples:
    """Check shapes and dtypes, and flatten (N,), (N, C) or (N, C, ...) to (M, C).

    Without ``num_classes`` any number of classes is accepted. Nothing here looks at a value, so an accelerator is never
    waited for.
    """
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    ignore = None if ignore is None else as_tensor(ignore, "ignore")
    if not preds.is_floating_point():
        raise ValueError(f"preds must be floating point degrees of truth, but got dtype {preds.dtype}.")
    if preds.ndim < 1 or target.is_complex() or target.shape != preds.shape:
        raise ValueError(
            f"target must be real and have the shape of preds {tuple(preds.shape)}, "
            f"but got {target.dtype} of shape {tuple(target.shape)}."
        )
    if ignore is not None and (ignore.dtype != torch.bool or ignore.shape != preds.shape):
        raise ValueError(
            f"ignore must be bool and have the shape of preds {tuple(preds.shape)}, "
            f"but got {ignore.dtype} of shape {tuple(ignore.shape)}."
        )
    if num_classes is not None and num_classes != (preds.shape[1] if preds.ndim > 1 else 1):
        raise ValueError(f"preds must hold {num_classes} classes, but got shape {tuple(preds.shape)}.")
    wide = torch.float64 if torch.float64 in (preds.dtype, target.dtype) else torch.float32
    counted = torch.ones_like(preds, dtype=torch.bool) if ignore is None else ~ignore
    p, y, rows = (_by_class(tensor) for tensor in (preds.to(wide), target.to(wide), counted))
    p, y = torch.where(rows, p, 0.0), torch.where(rows, y, 0.0)
    weight = None
    if sample_weight is not None:
        every = torch.ones_like(rows[:, 0])
        weight = flatten_weight(sample_weight, every, preds.shape[:1] + preds.shape[2:]).unsqueeze(1)
    return SoftSamples(p.clamp(0, 1), y.clamp(0, 1), rows, weight, (y, p))


def _by_class(tensor: Tensor) -> Tensor:
    """Reshape (N,), (N, C) or (N, C, ...) to (M, C)."""
    if tensor.ndim == 1:
        return tensor.unsqueeze(1)
    return tensor if tensor.ndim == 2 else tensor.movedim(1, -1).reshape(-1, tensor.shape[1])
