"""Predictions and labels of any supported shape as one flat list of weighted samples."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_scores
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import Fault


class Samples(NamedTuple):
    """A batch as M samples, safe to compute with even where its values break a rule."""

    probs: Tensor
    """(M, C), float32 or float64: the probability of each class."""
    target: Tensor
    """(M,), int64, always in [0, C): 0 stands in for ignored and out-of-range labels."""
    weight: Tensor
    """(M,), widest float: 1 or the given sample weight, 0 for ignored samples."""
    faults: tuple[Fault, ...]
    """One per rule of `sample_rules`, in that order."""


def sample_rules(num_classes: int, *, from_logits: bool) -> tuple[str, str, str]:
    """What the values of target, preds and sample_weight must be, as error messages begin."""
    preds = (
        "preds must be logits without NaN or +inf"
        if from_logits
        else "preds must be probabilities >= 0 that sum to 1 over dimension 1 (for logits pass from_logits=True)"
    )
    target = f"target must hold class indices from 0 to {num_classes - 1} (or ignore_index)"
    return target, preds, "sample_weight must be finite and >= 0"


def flatten_samples(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    from_logits: bool,
    ignore_index: int | None,
    sample_weight: Tensor | None,
) -> Samples:
    """Check shapes and dtypes, upcast half types, take the softmax of logits, and flatten (N, C, ...) to (M, C).

    Nothing here looks at a value, so an accelerator is never waited for.
    """
    check_scores(preds, target, num_classes)
    if sample_weight is not None and sample_weight.shape != target.shape:
        raise ValueError(
            f"sample_weight must have the shape of target {tuple(target.shape)}, but got {tuple(sample_weight.shape)}."
        )
    scores = preds if preds.ndim == 2 else preds.movedim(1, -1).reshape(-1, num_classes)
    # A softmax in bfloat16 would move one confidence in seven to another interval (t = 50): upcast first.
    wide = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    probs = wide.softmax(dim=-1) if from_logits else wide

    labels = target.reshape(-1).long()
    scored = torch.ones_like(labels, dtype=torch.bool)
    if ignore_index is not None:
        scored = labels != ignore_index
        probs = torch.where(scored.unsqueeze(1), probs, 1 / num_classes)  # weight 0 would not cancel a NaN
    in_range = (labels >= 0) & (labels < num_classes)
    sound = _is_distribution(probs, from_logits=from_logits, given_as=preds.dtype)
    weight = scored.to(widest_float(preds.device))
    sound_weight, given_weight = scored, weight
    if sample_weight is not None:
        given_weight = sample_weight.reshape(-1).to(weight.dtype)
        sound_weight = torch.isfinite(given_weight) & (given_weight >= 0)
        weight = torch.where(scored, given_weight, 0.0)

    label_rule, preds_rule, weight_rule = sample_rules(num_classes, from_logits=from_logits)
    faults = (
        Fault(label_rule, scored & ~in_range, labels),
        Fault(preds_rule, scored & ~sound, scores),
        Fault(weight_rule, scored & ~sound_weight, given_weight),
    )
    return Samples(probs, torch.where(scored & in_range, labels, 0), weight, faults)


def _is_distribution(probs: Tensor, *, from_logits: bool, given_as: torch.dtype) -> Tensor:
    total = probs.sum(dim=-1)
    if from_logits:
        return torch.isfinite(total)  # softmax spreads one NaN or +inf over its whole row
    # Rounding each probability moves their sum by about the type's eps; 1e-3 forgives printed decimals.
    tolerance = max(1e-3, torch.finfo(given_as).eps)
    return ((total - 1).abs() <= tolerance) & (probs.amin(dim=-1) >= 0)
