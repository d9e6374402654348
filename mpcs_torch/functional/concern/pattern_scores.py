"""The kernel of MPCS: per-sample scores by Eq. 4 to 9 and Algorithm 1 of arXiv:2209.06408v3."""

from typing import Literal

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.functional.inputs.chunks import concat_chunks
from mpcs_torch.functional.inputs.most_probable import highest_classes
from mpcs_torch.functional.inputs.probabilities import Samples

CorrectConcern = Literal["sum", "count"]
CHUNK = 2**16
"""The number of confidences per chunk: intermediate results stay in the cache."""
LOWEST_LEVEL = 1e-7
"""The value that replaces level 0, whose logarithm is infinite."""


def pattern_scores(
    samples: Samples, *, k: int, t: int, concern: Tensor | None, correct_concern: CorrectConcern = "sum"
) -> Tensor:
    """Score the prediction pattern of each sample: its k most probable classes, with confidences in t intervals.

    An accelerator is not synchronized.

    Args:
        samples: M samples; the score of invalid logits is NaN.
        k: The length of the pattern, from 1 to C.
        t: The number of intervals.
        concern: (C, C), in the widest float: the weight of mistaking the true class (row) for another; a sparse tensor
            must be coalesced, and stores the weights other than 1. Default: 1 everywhere.
        correct_concern: The concern of the true class: the ``"sum"`` over the other classes, or their ``"count"``.

    Returns:
        (M,), in the widest float.
    """
    samples = Samples(samples.scores.detach(), samples.labels, samples.scale)  # the score is piecewise constant
    confidence, label = concat_chunks(lambda rows: highest_classes(samples.at(rows).probs(), k), samples.scores)
    true = samples.labels.target.unsqueeze(1)
    (scores,) = concat_chunks(
        lambda rows: [_score(confidence[rows], label[rows], true[rows], t, concern, correct_concern)],
        confidence,
        size=CHUNK,
    )
    return scores


def _score(
    confidence: Tensor, label: Tensor, true: Tensor, t: int, concern: Tensor | None, correct_concern: CorrectConcern
) -> Tensor:
    """Return the scores (M,) of patterns (M, k), given the true classes (M, 1)."""
    k, wide = label.shape[1], widest_float(label.device)
    is_wrong = label != true
    # In float64 the product of a float32 confidence and t is exact; in float32 it could round up to the next interval.
    interval = (confidence.to(wide) * t).floor_()
    level = torch.where(is_wrong, interval.neg().add_(t - 1), interval).clamp_(LOWEST_LEVEL, t - 1)  # p = 1 gives t
    log_level = level.div_(t - 1).log_()  # at most 0
    wrong = is_wrong.to(wide)
    wrong_concern, wrong_logs = wrong.sum(dim=1), log_level * wrong
    true_log = (log_level - wrong_logs).sum(dim=1)
    has_true = wrong_concern.neg().add_(k)  # 1 if the true class is in the pattern, else 0
    if concern is not None:  # a pattern without the true class has concern 1 everywhere (Alg. 1 line 7)
        weight = torch.where(has_true.unsqueeze(1) > 0, pair_weights(concern, true, label), 1.0)
        wrong_concern, wrong_logs = (wrong * weight).sum(dim=1), wrong_logs * weight
    wrong_log, true_concern = wrong_logs.sum(dim=1), has_true
    if k > 1:  # for k = 1, the true class has concern 1: there are no others
        true_concern = has_true * (wrong_concern if correct_concern == "sum" else k - 1)
    return ((wrong_log + true_concern * true_log) / (wrong_concern + true_concern)).abs_()


def pair_weights(concern: Tensor, true: Tensor, predicted: Tensor) -> Tensor:
    """Look up the weights of pairs of classes in a concern (C, C); unstored weights of a sparse tensor are 1."""
    pairs = true * concern.shape[1] + predicted
    if concern.layout == torch.strided:
        return concern.flatten().take(pairs)
    if not len(concern.values()):
        return torch.ones_like(pairs, dtype=concern.dtype)
    rows, columns = concern.indices()
    stored = rows * concern.shape[1] + columns
    index = torch.searchsorted(stored, pairs.contiguous()).clamp_(max=len(stored) - 1)
    return torch.where(stored[index] == pairs, concern.values()[index], 1)
