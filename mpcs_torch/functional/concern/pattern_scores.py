"""The MPCS of each sample (Eq. 4 to 9 and Algorithm 1 of arXiv:2209.06408v3): the kernel of function and Metric."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.most_probable import highest_classes
from mpcs_torch.functional.inputs.parts import EVERY_ROW, joined_parts
from mpcs_torch.functional.inputs.probabilities import Samples

CorrectConcern = Literal["sum", "count"]
CONFIDENCES = 2**16
"""The number of confidences that are scored at once: all that is computed of them stays in a cache."""
LOWEST_LEVEL = 1e-7
"""Stands for level 0, whose logarithm would be infinite."""


class PatternScores(NamedTuple):
    """The scores of M samples, (M,) each."""

    by_sum: Tensor
    """Widest float: where the true class has the sum of the concern of the others."""
    by_count: Tensor
    """Widest float: where it has their number; the same tensor if all concern is 1."""

    def of(self, correct_concern: CorrectConcern) -> Tensor:
        """Return the scores with one of both."""
        return self.by_sum if correct_concern == "sum" else self.by_count


def pattern_scores(samples: Samples, *, k: int, t: int, concern: Tensor | None) -> PatternScores:
    """Score the prediction pattern of each sample: the k most probable classes, their confidences in t intervals.

    Nothing here looks at a value on an accelerator.

    Args:
        samples: M samples; a score is NaN where logits break their rule.
        k: The length of the pattern, from 1 to C.
        t: The number of intervals.
        concern: (C, C), floating point, the weight of taking the true class (row) for another; a sparse one holds the
            weights that are not 1. Default: 1 everywhere.
    """
    if concern is not None:
        concern = concern.to(widest_float(concern.device))
        concern = concern.coalesce() if concern.layout == torch.sparse_coo else concern
    samples = Samples(samples.scores.detach(), samples.labels, samples.scale)  # the score is piecewise constant
    confidence, label = joined_parts(lambda rows: highest_classes(samples.at(rows).probs(), k), samples.scores)
    pattern = _Pattern(confidence, label, samples.labels.target.unsqueeze(1))
    scores = joined_parts(lambda rows: _score(pattern.at(rows), t=t, concern=concern), confidence, most=CONFIDENCES)
    return PatternScores(scores[0], scores[-1])


class _Pattern(NamedTuple):
    """The prediction patterns of M samples."""

    confidence: Tensor
    """(M, k)"""
    label: Tensor
    """(M, k), int64."""
    true: Tensor
    """(M, 1), int64: the true class."""

    def at(self, rows: slice) -> "_Pattern":
        return self if rows is EVERY_ROW else _Pattern(*(field[rows] for field in self))


def _score(pattern: _Pattern, *, t: int, concern: Tensor | None) -> list[Tensor]:
    """Return both scores, or one if they are the same: (M,) each."""
    confidence, label, true = pattern
    k, wide = label.shape[1], widest_float(label.device)
    is_wrong = label != true
    # In float64 the product of a float32 confidence and t is exact; in float32 it could round up to the next interval.
    interval = (confidence.to(wide) * t).floor_()
    level = torch.where(is_wrong, interval.neg().add_(t - 1), interval).clamp_(LOWEST_LEVEL, t - 1)  # p = 1 gives t
    log_level = level.div_(t - 1).log_()  # at most 0
    wrong = is_wrong.to(wide)
    others_concern, of_others = wrong.sum(dim=1), log_level * wrong
    of_true = (log_level - of_others).sum(dim=1)
    has_true = others_concern.neg().add_(k)  # 1 if the true class is in the pattern, else 0
    if concern is not None:  # a pattern without the true class has concern 1 everywhere (Alg. 1 line 7)
        weight = torch.where(has_true.unsqueeze(1) > 0, weight_of_pairs(concern, true, label), 1.0)
        others_concern, of_others = (wrong * weight).sum(dim=1), of_others * weight
    of_others = of_others.sum(dim=1)

    def score(true_concern: Tensor) -> Tensor:
        return ((of_others + true_concern * of_true) / (others_concern + true_concern)).abs_()

    if k == 1:  # the sum of the others is 0 for a pattern that is the true class alone
        return [score(has_true)]
    by_sum = score(has_true * others_concern)
    return [by_sum] if concern is None else [by_sum, score(has_true * (k - 1))]


def weight_of_pairs(concern: Tensor, true: Tensor, predicted: Tensor) -> Tensor:
    """Look up the weights of pairs of classes in a concern (C, C); what a sparse one does not hold is 1."""
    wanted = true * concern.shape[1] + predicted
    if concern.layout == torch.strided:
        return concern.flatten().take(wanted)
    if not len(concern.values()):
        return torch.ones_like(wanted, dtype=concern.dtype)
    rows, columns = concern.indices()
    keys = rows * concern.shape[1] + columns
    place = torch.searchsorted(keys, wanted.contiguous()).clamp_(max=len(keys) - 1)
    return torch.where(keys[place] == wanted, concern.values()[place], 1)
