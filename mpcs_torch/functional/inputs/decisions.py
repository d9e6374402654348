"""Decisions and labels of any supported shape as one flat list of pairs."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_scores, check_target
from mpcs_torch.functional.inputs.faults import Fault


class Decided(NamedTuple):
    """A batch as M decided samples, safe to count even where its values break a rule."""

    target: Tensor
    """(M,), int64, in [0, C)."""
    predicted: Tensor
    """(M,), int64, in [0, C)."""
    counted: Tensor
    """(M,), bool: False where the sample is ignored."""
    faults: tuple[Fault, Fault]
    """One per rule of `decided_rules`, in that order."""


def decided_rules(num_classes: int) -> tuple[str, str]:
    """What the values of target and preds must be, as error messages begin."""
    classes = f"class indices from 0 to {num_classes - 1}"
    return f"target must hold {classes} (or ignore_index)", f"preds must hold {classes}, or scores without NaN"


def flatten_decided(preds: Tensor, target: Tensor, *, num_classes: int, ignore_index: int | None) -> Decided:
    """Check shapes and dtypes, decide scores (N, C, ...) for their highest, ties for the lower class, and flatten.

    Nothing here looks at a value, so an accelerator is never waited for.
    """
    if preds.is_floating_point():
        check_scores(preds, target, num_classes)
        quoted = preds.amax(dim=1).reshape(-1)  # NaN where any score is
        predicted, sound = preds.argmax(dim=1).reshape(-1), ~quoted.isnan()
    else:
        if preds.is_complex():
            raise ValueError(f"preds must be classes or real scores, but got dtype {preds.dtype}.")
        check_target(target, preds.shape)
        quoted = predicted = preds.reshape(-1).long()
        sound = (predicted >= 0) & (predicted < num_classes)
    labels = target.reshape(-1).long()
    counted = torch.ones_like(labels, dtype=torch.bool) if ignore_index is None else labels != ignore_index
    in_range = (labels >= 0) & (labels < num_classes)
    target_rule, preds_rule = decided_rules(num_classes)
    return Decided(
        labels.clamp(0, num_classes - 1),
        predicted.clamp(0, num_classes - 1),
        counted,
        (Fault(target_rule, counted & ~in_range, labels), Fault(preds_rule, counted & ~sound, quoted)),
    )
