"""Detection scores and labels of any supported shape, flattened to trials in compact dtypes."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensors
from mpcs_torch.functional.inputs.checks import check_scores, check_trials
from mpcs_torch.functional.inputs.faults import Fault, Span

IGNORED = -1
"""The label of ignored trials."""


class TrialBatch(NamedTuple):
    """A batch of M trials."""

    scores: Tensor
    """(M,), or (M, C) with classes; floating point, in the dtype of the input."""
    labels: Tensor
    """(M,): 1 for targets and 0 for non-targets, or the class; `IGNORED` for ignored trials. int8, or int32 from 128
    classes on."""
    faults: tuple[Fault, ...]
    """The violations of each rule of `trial_rules`, in that order."""


def trial_rules(num_classes: int | None) -> tuple[str, str]:
    """Return the rules for the values of target and preds, each as the start of an error message."""
    classes = (
        "0 for non-targets and 1 for targets" if num_classes is None else f"class indices from 0 to {num_classes - 1}"
    )
    return f"target must hold {classes} (or ignore_index)", "preds must hold no NaN"


def flatten_trials(preds: Tensor, target: Tensor, *, num_classes: int | None, ignore_index: int | None) -> TrialBatch:
    """Check shapes and dtypes, and flatten scores (N, ...) or (N, C, ...) and labels (N, ...).

    Values are not read on the host, so an accelerator is not synchronized.
    """
    preds, target, _ = as_tensors(preds, target)
    if num_classes is None:
        check_trials(preds, target)
        scores = preds.reshape(-1)
    else:
        check_scores(preds, target, num_classes)
        scores = preds if preds.ndim == 2 else preds.movedim(1, -1).reshape(-1, num_classes)
    labels, n_labels = target.reshape(-1).long(), 2 if num_classes is None else num_classes
    counted = None if ignore_index is None else labels != ignore_index
    in_range = Span(labels, 0, n_labels - 1)
    is_number = Span(scores if scores.ndim == 1 else scores.amax(dim=1))
    label_rule, score_rule = trial_rules(num_classes)
    faults = Fault(label_rule, labels, [in_range], counted), Fault(score_rule, scores, [is_number], counted)
    is_valid = ~in_range.outside() if counted is None else counted & ~in_range.outside()
    compact = torch.where(is_valid, labels, IGNORED).to(torch.int8 if n_labels < 128 else torch.int32)
    return TrialBatch(scores, compact, faults)
