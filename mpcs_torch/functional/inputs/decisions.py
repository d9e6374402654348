"""Decisions and labels of any supported shape as one flat list of samples."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensors
from mpcs_torch.functional.inputs.checks import check_scores, check_target
from mpcs_torch.functional.inputs.faults import Fault
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE, Labels, flatten_labels, label_rule
from mpcs_torch.functional.inputs.parts import of_parts

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
            broken = self.given.isnan()
        else:
            lowest, after_last = REFERRED if self.further else 0, num_classes + max(0, self.further - 1)
            broken = (self.given < lowest) | (self.given >= after_last)
        label_fault, weight_fault = self.labels.find_faults()
        _, rule, _ = decision_rules(num_classes, self.further)
        return label_fault, Fault(rule, self.labels.counted & broken, self.given), weight_fault


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
        if num_classes == 2 and preds.shape == target.shape:  # probabilities and logits differ in where 0 lies
            raise ValueError(
                f"preds must have shape (N, 2) or hold integer decisions, but got {preds.dtype} {tuple(preds.shape)}: "
                "pass decisions such as (preds > 0.5).long() of the probabilities of class 1."
            )
        check_scores(preds, target, num_classes)
        given, predicted = highest_scores(preds)
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


def highest_scores(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the highest score of each sample, NaN if one is, and its class, the lowest of several: (M,) each."""

    def of_part(rows: slice) -> tuple[Tensor, Tensor]:
        part = scores[rows]
        part = part.float() if part.element_size() < 4 and part.is_cpu else part  # several times as quick
        highest, place = part.max(dim=1)
        return highest.reshape(-1), place.reshape(-1)

    highest, place = (torch.cat(parts) for parts in zip(*of_parts(of_part, scores.detach()), strict=True))
    return highest, place
