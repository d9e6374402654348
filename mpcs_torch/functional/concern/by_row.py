"""Prediction patterns of many classes: the most probable classes of each row of (M, C)."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.concern.highest import key_room, most_probable
from mpcs_torch.functional.concern.intervals import intervals_of, true_punishment, wrong_punishment
from mpcs_torch.functional.concern.terms import PatternTerms, sum_members
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.probabilities import GivenSamples, Samples

CHUNK = {"cpu": 2**19, "cuda": 2**26}
"""The number of scores that are worked on at once: what fits the caches of a CPU, or keeps a GPU busy."""


def terms_by_row(samples: GivenSamples, *, k: int, t: int, concern: Tensor | None) -> PatternTerms:
    """Sum over the members of the prediction patterns of M samples, with the concern (C, C), which may be sparse."""
    confidence, label, true_confidence, is_bad = _patterns(samples, k)
    target = samples.labels.target
    wrong = (label != target).to(widest_float(target.device))
    return sum_members(
        wrong_punishment(intervals_of(confidence, t) * wrong, t),  # interval 0 is not punished
        wrong,
        None if concern is None else weight_of_pairs(concern, target, label.clamp(max=concern.shape[1] - 1)),
        k=k,
        true_present=k - wrong.sum(dim=0),
        true_punishment=true_punishment(intervals_of(true_confidence, t), t),
        is_bad=is_bad,
    )


def weight_of_pairs(concern: Tensor, true: Tensor, predicted: Tensor) -> Tensor:
    """Look up the weights of pairs of classes in a concern (C, C); what a sparse one does not hold is 1."""
    if concern.layout == torch.strided:
        return concern[true, predicted]
    if not len(concern.values()):
        return torch.ones_like(predicted, dtype=concern.dtype)
    rows, columns = concern.indices()
    keys, wanted = rows * concern.shape[1] + columns, true * concern.shape[1] + predicted
    place = torch.searchsorted(keys, wanted.contiguous()).clamp_(max=len(keys) - 1)
    return torch.where(keys[place] == wanted, concern.values()[place], 1)


class _Patterns(NamedTuple):
    confidence: Tensor
    """(k, M)"""
    label: Tensor
    """(k, M), int64; up to twice C where scores are bad"""
    true_confidence: Tensor
    """(M,)"""
    is_bad: Tensor
    """(M,), bool"""


def _patterns(samples: GivenSamples, k: int) -> _Patterns:
    classes = samples.labels.num_classes
    size = max(1, CHUNK.get(samples.scores.device.type, 2**22) // classes)
    if torch.compiler.is_compiling() or len(samples.scores) <= size:
        return _patterns_of_part(samples.upcast(), k)
    # All parts go through the same memory, because a CPU takes longer to get fresh memory than to compute.
    probs = torch.empty(size, classes, dtype=samples.upcast_dtype, device=samples.scores.device)
    keys = key_room(size, classes, probs.device)
    parts = [_patterns_of_part(part.upcast(), k, probs=probs, keys=keys) for part in samples.split(size)]
    confidence, label, true_confidence, is_bad = zip(*parts, strict=True)
    return _Patterns(
        torch.cat(confidence, dim=1), torch.cat(label, dim=1), torch.cat(true_confidence), torch.cat(is_bad)
    )


def _patterns_of_part(
    samples: Samples, k: int, *, probs: Tensor | None = None, keys: Tensor | None = None
) -> _Patterns:
    """Find the patterns of some samples, in given memory."""
    out = None if probs is None else probs[: len(samples.scores)]
    if samples.scale == "probs":
        probs = torch.add(samples.scores, 0.0, out=out)  # -0.0 becomes 0.0
    else:
        probs = torch.softmax(samples.scores, dim=1, out=out)
    highest = most_probable(probs, k, keys=keys)
    return _Patterns(*highest, samples.of_true_class(probs), samples.is_bad(probs))
