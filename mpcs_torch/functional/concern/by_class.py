"""Prediction patterns of few classes, without sorting.

Matrices are (C, M), one row for each class, so that one operation treats all samples alike.
"""

import torch
from torch import Tensor

from mpcs_torch.functional.concern.by_class_of_many import terms_of_many
from mpcs_torch.functional.concern.intervals import TABLED_INTERVALS, intervals_of, true_punishment, wrong_punishment
from mpcs_torch.functional.concern.terms import MANY_SAMPLES, PatternTerms, join, sum_members, weight_of_classes
from mpcs_torch.functional.inputs.probabilities import GivenSamples, Samples

CHUNK = 2**26
"""The number of comparisons between probabilities that are made at once."""


def terms_by_class(samples: GivenSamples, *, k: int, t: int, concern: Tensor | None) -> PatternTerms:
    """Sum over the members of the prediction patterns of M samples, with the concern (C, C)."""
    if torch.compiler.is_compiling():
        return _terms(samples.upcast(), k=k, t=t, concern=concern)
    if samples.scores.is_cpu and len(samples.scores) >= MANY_SAMPLES and t <= TABLED_INTERVALS:
        return terms_of_many(samples, k=k, t=t, concern=concern)
    size = CHUNK // samples.labels.num_classes**2
    return join([_terms(part.upcast(), k=k, t=t, concern=concern) for part in samples.split(size)])


def _terms(samples: Samples, *, k: int, t: int, concern: Tensor | None) -> PatternTerms:
    probs, target = samples.probs().t(), samples.labels.target
    true = target.unsqueeze(0)
    interval = intervals_of(probs, t)
    member = _members(probs, k, interval.dtype)
    true_present = member.gather(0, true).squeeze(0)
    wrong = member.scatter_(0, true, 0)
    return sum_members(
        wrong_punishment(interval * wrong, t),  # interval 0 is not punished
        wrong,
        None if concern is None else weight_of_classes(concern, target),
        k=k,
        true_present=true_present,
        true_punishment=true_punishment(interval.gather(0, true).squeeze(0), t),
        is_bad=samples.is_bad(probs.t()),
    )


def _members(probs: Tensor, k: int, dtype: torch.dtype) -> Tensor:
    """Return 1 for the k most probable classes of each column, ties to the lower class, and 0 for others: (C, M)."""
    classes = len(probs)
    if k == classes:
        return torch.ones_like(probs, dtype=dtype)
    if probs.is_cpu and not torch.compiler.is_compiling():  # one call, where comparing takes many
        order = probs.sort(dim=0, descending=True, stable=True).indices
        return torch.zeros_like(probs, dtype=dtype).scatter_(0, order[:k], 1)
    at_least = probs.unsqueeze(1) >= probs.unsqueeze(0)  # [i, j]: class i is at least as probable as class j
    earlier = torch.ones(classes, classes, dtype=torch.bool, device=probs.device).triu(1).unsqueeze(2)
    comes_first = torch.where(earlier, at_least, ~at_least.transpose(0, 1))
    return (comes_first.sum(dim=0) < k).to(dtype)
