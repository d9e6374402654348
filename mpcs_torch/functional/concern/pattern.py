"""Prediction patterns and confidence patterns: the terms of MPCS for each sample."""

from typing import cast

import torch
from torch import Tensor

from mpcs_torch.functional.concern.by_class import terms_by_class
from mpcs_torch.functional.concern.by_row import terms_by_row
from mpcs_torch.functional.concern.terms import PatternTerms
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.labels import Labels
from mpcs_torch.functional.inputs.probabilities import GivenSamples, Scale

FEW_CLASSES = 32
"""Up to this number of classes, comparing all pairs of them is quicker than looking for the highest ones."""


def dense_concern(concern: Tensor) -> Tensor:
    """Return a sparse concern (C, C) as a dense one, with 1 for the pairs that it leaves out."""
    concern = concern.coalesce()
    dense = torch.ones(concern.shape, dtype=concern.dtype, device=concern.device)
    dense[tuple(concern.indices())] = concern.values()
    return dense


@torch.no_grad()  # the score is piecewise constant
def pattern_terms(samples: GivenSamples, *, k: int, t: int, concern: Tensor | None) -> PatternTerms:
    """Sum over the members of the prediction pattern of each sample, with the concern (C, C), 1 everywhere if None."""
    if concern is not None:
        concern = concern.to(widest_float(concern.device))
        if concern.layout == torch.sparse_coo:
            concern = concern.coalesce() if samples.labels.num_classes > FEW_CLASSES else dense_concern(concern)
    if torch.compiler.is_compiling() and samples.scores.is_cpu and (concern is None or concern.layout == torch.strided):
        labels = samples.labels
        counted = labels.counted if labels.ignores else None
        return PatternTerms(
            *_terms_op(samples.scores, labels.target, counted, concern, k, t, labels.num_classes, samples.scale)
        )
    return _terms_of(samples, k=k, t=t, concern=concern)


def _terms_of(samples: GivenSamples, *, k: int, t: int, concern: Tensor | None) -> PatternTerms:
    terms_of = terms_by_class if samples.labels.num_classes <= FEW_CLASSES else terms_by_row
    return terms_of(samples, k=k, t=t, concern=concern)


@torch.library.custom_op("mpcs_torch::pattern_terms", mutates_args=(), device_types="cpu")
def _terms_op(
    scores: Tensor,
    target: Tensor,
    counted: Tensor | None,
    concern: Tensor | None,
    k: int,
    t: int,
    num_classes: int,
    scale: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Make compiled code call the kernel as it is: what a compiler makes of its steps takes ten times as long."""
    ones = torch.ones_like(target, dtype=torch.bool) if counted is None else counted
    labels = Labels(target, ones.double(), ones, target, num_classes, counted is None, counted is not None)
    return _terms_of(GivenSamples(scores, labels, cast(Scale, scale)), k=k, t=t, concern=concern)


@_terms_op.register_fake
def _(scores: Tensor, target: Tensor, *_: object) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    concern, punishment, present, of_true = (scores.new_empty(target.shape, dtype=torch.float64) for _ in range(4))
    return concern, punishment, present, of_true, torch.empty_like(target, dtype=torch.bool)
