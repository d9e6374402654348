"""Prediction patterns and confidence patterns: the terms of MPCS for each sample."""

import torch
from torch import Tensor

from mpcs_torch.functional.concern.by_class import terms_by_class
from mpcs_torch.functional.concern.by_row import terms_by_row
from mpcs_torch.functional.concern.terms import PatternTerms
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.probabilities import GivenSamples

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
    terms_of = terms_by_class if samples.labels.num_classes <= FEW_CLASSES else terms_by_row
    return terms_of(samples, k=k, t=t, concern=concern)
