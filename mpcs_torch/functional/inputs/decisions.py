"""Decisions and labels of any supported shape as one flat list of samples."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensors
from mpcs_torch.functional.inputs.checks import check_scores, check_target
from mpcs_torch.functional.inputs.faults import Fault, Span
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE, Labels, flatten_labels, label_rule
from mpcs_torch.functional.inputs.most_probable import highest_class
from mpcs_torch.functional.inputs.probabilities import of_both_classes

REFERRED = -1
"""Stands for a sample that is referred to somebody else, among decisions for classes."""


class Decisions(NamedTuple):
    """The decisions for a batch of M samples, safe to count even where their values break a rule."""

    predicted: Tensor
    """(M,), int64, in [0, C) for classes; from C on the further decisions, the last of which is a referral."""
    labels: Labels
    given: Tensor
    """(M,): the classes that were given, int64, or the highest of the scores, NaN if one of them is."""
    further: int
    """The number of decisions beside the C classes: 0, 1 for a referral (given as -1), or more with coarse answers,
    which are given as C and the numbers that follow."""

    def find_faults(self) -> tuple[Fault, Fault, Fault]:
        """Find the samples that break each rule of `decision_rules`, in that order."""
        num_classes = self.labels.num_classes
        if self.given.is_floating_point():
            span = Span(self.given)
        else:
            span = Span(self.given, REFERRED if self.further else 0, num_classes - 1 + max(0, self.further - 1))
        label_fault, weight_fault = self.labels.find_faults()
        _, rule, _ = decision_rules(num_classes, self.further)
        return label_fault, Fault(rule, self.given, [span], label_fault.counted), weight_fault


def decision_rules(num_classes: int, further: int = 0) -> tuple[str, str, str]:
    """Return what the values of target, preds and sample_weight must be, as error messages begin."""
    preds = f"preds must hold class indices {decision_range(num_classes, further)}, or scores without NaN"
    return label_rule(num_classes), preds, WEIGHT_RULE


def decision_range(num_classes: int, further: int) -> str:
    """Return the numbers that stand for decisions, in words."""
    coarse = f", to {num_classes + further - 2} for coarse answers" if further > 1 else ""
    return f"from 0 to {num_classes - 1}" + (f" ({REFERRED} for a referral{coarse})" if further else "")


def flatten_decisions(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    ignore_index: int | None,
    sample_weight: Tensor | None,
    further: int = 0,
) -> Decisions:
    """Check shapes and dtypes, decide for the highest score (ties for the lower class), and flatten.

    With ``further`` decisions, integers may be -1, for samples that are referred, or stand for coarse answers.

    Nothing here looks at a value, so an accelerator is never waited for.
    """
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    if preds.is_floating_point():
        preds = of_both_classes(preds, target, num_classes, None)
        check_scores(preds, target, num_classes)
        given, predicted = highest_class(preds.detach())
        if preds.ndim > 2:
            given, predicted = given.reshape(-1), predicted.reshape(-1)
    else:
        if preds.is_complex():
            raise ValueError(f"preds must be classes or real scores, but got dtype {preds.dtype}.")
        check_target(target, preds.shape)
        given = preds.reshape(-1).long()
        predicted = given.clamp(0, num_classes - 1 + max(0, further - 1))
        if further:
            predicted = torch.where(given == REFERRED, num_classes + further - 1, predicted)
    labels = flatten_labels(target, num_classes=num_classes, ignore_index=ignore_index, sample_weight=sample_weight)
    return Decisions(predicted, labels, given, further)
