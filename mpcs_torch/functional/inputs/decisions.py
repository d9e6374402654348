"""Decisions and labels of any shape, flattened to M samples, and the most probable classes."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import Rule, require
from mpcs_torch.functional.inputs.arrays import as_tensors
from mpcs_torch.functional.inputs.checks import (
    check_num_classes,
    check_scores,
    check_target,
)
from mpcs_torch.functional.inputs.faults import Fault, outside
from mpcs_torch.functional.inputs.labels import Labels, flatten_labels
from mpcs_torch.functional.inputs.probabilities import as_two_classes


def highest_class(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the highest score in each row of (N, C, ...), NaN if any is NaN, and its class; in a tie, the lower."""
    # PyTorch documents that the first of several maxima is returned.
    highest, label = scores.max(dim=1)
    return highest, label


def highest_classes(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest ``scores`` of each row of (M, C), and their classes (int64): (M, k) each.

    Scores descend, NaN first; the order of equal scores is undefined. In a tie for rank k, the lower class is returned.
    """
    # A sort is faster for few classes, and on accelerators it avoids the synchronization of the check for ties.
    if scores.shape[1] <= 16 or not scores.is_cpu or torch.compiler.is_compiling():
        if not scores.is_cpu:
            scores = scores + 0.0  # makes -0.0 to 0.0, because a GPU sorts them as unequal
        highest, label = scores.sort(dim=1, descending=True, stable=True)
        return highest[:, :k], label[:, :k]
    # topk is much faster than a sort, but does not define which class it drops in a tie for rank k.
    highest, label = scores.topk(min(k + 1, scores.shape[1]), dim=1)
    if k < scores.shape[1]:
        tied = (highest[:, k - 1] == highest[:, k]).nonzero()[:, 0]
        if len(tied):
            _keep_lowest(highest, label, scores, tied, k)
    return highest[:, :k], label[:, :k]


def _keep_lowest(
    highest: Tensor, label: Tensor, scores: Tensor, tied: Tensor, k: int
) -> None:
    """Replace, in rows ``tied`` (T,), the classes of ``label`` whose scores equal that of rank k by the lowest such.

    In bfloat16 many rows tie, and sorting them takes four times as long.
    """
    last = highest[tied, k - 1 : k]
    equal = scores[tied] == last
    higher = (highest[tied, :k] != last).sum(dim=1, keepdim=True)
    rank = higher + equal.cumsum(dim=1) - 1
    row, lowest = (equal & (rank < k)).nonzero(as_tuple=True)
    label[tied[row], rank[row, lowest]] = lowest


REFERRED = -1
"""The integer that stands for a referral: the sample is passed to a person."""


def is_class(decisions: Tensor, num_classes: int) -> Tensor:
    """Return whether each of ``decisions`` (...) names one class: it is no referral, and no coarse answer."""
    return (decisions >= 0) & (decisions < num_classes)


class Decisions(NamedTuple):
    """The decisions for M samples: classes, coarse answers (groups of classes) or referrals to a person."""

    predicted: Tensor
    """(M,), int64: the decision, clamped to a valid column of costs: a class, a coarse answer, or last the referral."""
    labels: Labels
    raw: Tensor
    """(M,): the int64 decisions as passed in or, for scores, the highest score (NaN if any is NaN)."""
    further: int
    """The number of possible decisions besides the C classes. 0: none; 1: a referral (code -1); more: also coarse
    answers (codes C, C + 1, ...)."""

    def find_faults(self) -> Sequence[Fault]:
        """Return a `Fault`, the check of one validation rule, for labels, decisions and weights."""
        if self.raw.is_floating_point():
            broken = self.raw.isnan()
        else:
            lowest = REFERRED if self.further else 0
            highest = last_decision(self.labels.num_classes, self.further)
            broken = outside(self.raw, lowest, highest)
        rule = decision_rule(self.labels.num_classes, self.further)
        return self.labels.find_faults(rule, self.raw, broken)


def last_decision(num_classes: int, further: int) -> int:
    """Return the highest code of a decision: that of the last coarse answer, or else of the last class."""
    coarse_answers = max(0, further - 1)  # a referral has the code -1
    return num_classes - 1 + coarse_answers


def decision_rule(num_classes: int, further: int = 0) -> Rule:
    """Return the rule of the values of preds."""
    allowed = decision_range(num_classes, further)
    return Rule("decisions_or_scores", "preds", decisions=allowed)


def decision_range(num_classes: int, further: int) -> Rule:
    """Return the range of valid integer decisions."""
    if further == 0:
        code = "classes_only"
    elif further == 1:
        code = "with_referral"
    else:
        code = "with_answers"
    last_answer = last_decision(num_classes, further)
    return Rule(code, last=num_classes - 1, referred=REFERRED, last_answer=last_answer)


def flatten_decisions(
    preds: Tensor,
    target: Tensor,
    num_classes: int,
    ignore_index: int | None,
    sample_weight: Tensor | None,
    further: int = 0,
) -> Decisions:
    """Check shapes and dtypes, decide for the highest score (the lower class in a tie), and flatten to M samples.

    ``further`` is the number of decisions besides the C classes: 1 for a referral to a person (-1), more if there are
    also coarse answers (groups of classes; C, C + 1, ...). An accelerator is not synchronized.
    """
    check_num_classes(num_classes)
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    if preds.is_floating_point():
        preds = as_two_classes(preds, target, num_classes, None)
        check_scores(preds, target, num_classes)
        raw, predicted = highest_class(preds.detach())
        if preds.ndim > 2:
            raw = raw.reshape(-1)
            predicted = predicted.reshape(-1)
    else:
        require(not preds.is_complex(), "classes_or_scores", "preds", preds.dtype)
        check_target(target, preds.shape)
        raw = preds.reshape(-1).long()
        predicted = raw.clamp(0, last_decision(num_classes, further))
        if further:  # the column of a referral is the last one
            predicted = torch.where(raw == REFERRED, num_classes + further - 1, predicted)
    return Decisions(
        predicted,
        flatten_labels(target, num_classes, ignore_index, sample_weight),
        raw,
        further,
    )
