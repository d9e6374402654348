"""The counts of each class that metrics of decisions are made of."""

from typing import NamedTuple

from torch import Tensor

from mpcs_torch.functional.inputs.decisions import Decisions
from mpcs_torch.functional.inputs.dtypes import widest_float


class ClassCounts(NamedTuple):
    """Numbers of samples, or their weights, summed: (..., C) each, in the widest float."""

    right: Tensor
    """Samples of the class that were decided right."""
    true: Tensor
    """Samples of the class."""
    predicted: Tensor
    """Decisions for the class."""


def class_counts(confusion: Tensor) -> ClassCounts:
    """Return the counts that a confusion matrix (..., C, C) holds, rows true classes."""
    counts = confusion.to(widest_float(confusion.device))
    return ClassCounts(counts.diagonal(dim1=-2, dim2=-1), counts.sum(-1), counts.sum(-2))


def count_classes(decisions: Decisions) -> ClassCounts:
    """Count flat decisions without looking at a value: (C,) each, or (B, C) with bins."""
    labels, predicted = decisions.labels, decisions.predicted
    right = (predicted == labels.target) * labels.weight
    size = labels.num_classes
    return ClassCounts(
        labels.sum_by(labels.target, size, right),
        labels.sum_by(labels.target, size, labels.weight),
        labels.sum_by(predicted, size, labels.weight),
    )
