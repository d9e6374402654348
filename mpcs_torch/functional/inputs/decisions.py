"""Decisions and labels of any supported shape as one flat list of samples."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensors
from mpcs_torch.functional.inputs.checks import check_scores, check_target
from mpcs_torch.functional.inputs.faults import Fault
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE, Labels, flatten_labels, label_rule

REFERRED = -1
"""Stands for a sample that is referred to somebody else, among decisions for classes."""


class Decisions(NamedTuple):
    """The decisions for a batch of M samples, safe to count even where their values break a rule."""

    predicted: Tensor
    """(M,), int64, in [0, C), or C for samples that are referred instead of decided."""
    labels: Labels
    preds: Tensor
    """(N, ...) classes or (N, C, ...) scores, as they were given."""
    referral: bool
    """Whether -1 among the given classes stands for a referral."""

    def find_faults(self) -> tuple[Fault, Fault, Fault]:
        """Find the samples that break each rule of `decision_rules`, in that order."""
        num_classes = self.labels.num_classes
        if self.preds.is_floating_point():
            quoted = self.preds.amax(dim=1).reshape(-1)  # NaN if any score is NaN
            broken = quoted.isnan()
        else:
            quoted = self.preds.reshape(-1).long()
            broken = (quoted < (REFERRED if self.referral else 0)) | (quoted >= num_classes)
        label_fault, weight_fault = self.labels.find_faults()
        _, rule, _ = decision_rules(num_classes, referral=self.referral)
        return label_fault, Fault(rule, self.labels.counted & broken, quoted), weight_fault


def decision_rules(num_classes: int, *, referral: bool = False) -> tuple[str, str, str]:
    """Return what the values of target, preds and sample_weight must be, as error messages begin."""
    referred = f" ({REFERRED} for a referral)" if referral else ""
    preds = f"preds must hold class indices from 0 to {num_classes - 1}{referred}, or scores without NaN"
    return label_rule(num_classes), preds, WEIGHT_RULE


def flatten_decisions(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    ignore_index: int | None,
    sample_weight: Tensor | None,
    referral: bool = False,
) -> Decisions:
    """Check shapes and dtypes, decide for the highest score (ties for the lower class), and flatten.

    With ``referral``, integer decisions may be -1, for samples that are referred instead of decided.

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
        predicted = preds.argmax(dim=1).reshape(-1)
    else:
        if preds.is_complex():
            raise ValueError(f"preds must be classes or real scores, but got dtype {preds.dtype}.")
        check_target(target, preds.shape)
        given = preds.reshape(-1).long()
        predicted = given.clamp(0, num_classes - 1)
        if referral:
            predicted = torch.where(given == REFERRED, num_classes, predicted)
    labels = flatten_labels(target, num_classes=num_classes, ignore_index=ignore_index, sample_weight=sample_weight)
    return Decisions(predicted, labels, preds, referral)
