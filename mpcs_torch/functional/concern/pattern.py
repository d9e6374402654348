"""Prediction patterns and confidence patterns: the terms of MPCS for each sample."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float

CorrectConcern = Literal["sum", "count"]

COUNTED_CLASSES = 32
"""Up to this number of classes, comparing all pairs of them is quicker than sorting each sample."""


class PatternMember(NamedTuple):
    """One place of the prediction pattern (Eq. 4), over M samples."""

    label: Tensor | int
    """The class: (M,) int64, or a single class for all samples."""
    confidence: Tensor
    """(M,): the probability of the class."""
    present: Tensor | bool
    """(M,), bool: whether the pattern holds the class."""


class PatternTerms(NamedTuple):
    """The terms of the score of M samples, before the true class gets its concern; float (M,) each."""

    others_concern: Tensor
    """Sum of the concern of the wrong classes in the pattern."""
    others_punishment: Tensor
    """Sum of their punishments, each multiplied by its concern."""
    true_present: Tensor
    """Bool: whether the pattern holds the true class."""
    true_punishment: Tensor


def prediction_pattern(probs: Tensor, k: int) -> list[PatternMember]:
    """Return the k most probable classes of each row of (M, C); ties go to the lower class index on every device."""
    if k < probs.shape[1] > COUNTED_CLASSES:
        # `topk` leaves the order of ties open.
        confidences, labels = torch.sort(probs, dim=1, descending=True, stable=True)
        return [PatternMember(labels[:, i], confidences[:, i], True) for i in range(k)]
    by_class = probs.t().contiguous()
    present = _ranks(by_class) < k if k < len(by_class) else [True] * k
    return [PatternMember(j, by_class[j], present[j]) for j in range(len(by_class))]


def _ranks(by_class: Tensor) -> Tensor:
    """Return the rank of each class, from 0, in a stable descending sort over classes (C, M): int8 (C, M)."""
    rank = torch.zeros_like(by_class, dtype=torch.int8)
    for j in range(1, len(by_class)):
        earlier_first = (by_class[:j] >= by_class[j]).view(torch.int8)
        rank[j] = earlier_first.sum(dim=0, dtype=torch.int8)
        rank[:j] += 1 - earlier_first
    return rank


@torch.no_grad()  # the score is piecewise constant
def pattern_terms(probs: Tensor, target: Tensor, *, k: int, t: int, concern: Tensor | None) -> PatternTerms:
    """Sum over the members of the prediction patterns of (M, C) probabilities with labels (M,)."""
    num_classes = probs.shape[1]
    pattern = prediction_pattern(probs, k)
    true_present = torch.zeros_like(target, dtype=torch.bool)
    for label, _, present in pattern:
        true_present |= (target == label) & present

    # Outside the pattern (Alg. 1 line 7) the last row of the table, all ones, stands in for the true class's row.
    table = _concern_table(probs, concern)
    row_start = torch.where(true_present, target, num_classes) * num_classes
    others_concern = torch.zeros_like(target, dtype=table.dtype)
    others_punishment = torch.zeros_like(others_concern)
    for label, confidence, present in pattern:
        weight = table.take(row_start + label).mul_(present)
        others_concern += weight
        others_level = _interval(confidence, t).neg_().add_(t - 1)  # Eq. 6; below 0 for the interval of p = 1
        others_punishment.addcmul_(_log_level(others_level, t), weight, value=-1)

    true_confidence = probs.gather(1, target.unsqueeze(1)).squeeze(1)
    true_level = _interval(true_confidence, t).clamp_(max=t - 1)
    return PatternTerms(others_concern, others_punishment, true_present, -_log_level(true_level, t))


def score_terms(terms: PatternTerms, *, k: int, correct_concern: CorrectConcern) -> Tensor:
    """Return the score of each sample (Eq. 9): (M,)."""
    share = terms.others_concern
    if correct_concern == "count" or k == 1:  # the sum is 0 for a pattern that is the true class alone
        share = torch.full_like(share, max(k - 1, 1))
    true_concern = share * terms.true_present
    total = terms.others_concern + true_concern
    return (terms.others_punishment + true_concern * terms.true_punishment) / total


def _concern_table(probs: Tensor, concern: Tensor | None) -> Tensor:
    """Return the concern matrix with a diagonal of 0 and one more row of ones: (C + 1, C)."""
    num_classes = probs.shape[1]
    table = torch.ones(num_classes + 1, num_classes, dtype=widest_float(probs.device), device=probs.device)
    if concern is not None:
        table[:num_classes] = concern
    table[:num_classes].fill_diagonal_(0)
    return table


def _interval(confidence: Tensor, t: int) -> Tensor:
    """Return the interval of each confidence, from 0 to t (Alg. 1 line 4; only p = 1 gives t), in the widest float."""
    # In float64 the product of a float32 confidence and t is exact; in float32 it could round up to the next interval.
    return confidence.to(widest_float(confidence.device), copy=True).mul_(t).floor_()


def _log_level(level: Tensor, t: int) -> Tensor:
    """Return log(level / best level) (Alg. 1 lines 18, 19); overwrites the levels."""
    return level.clamp_(min=1e-7).div_(t - 1).log_()
