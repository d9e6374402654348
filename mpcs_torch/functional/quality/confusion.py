"""Confusion matrices, rows true classes and columns predicted ones, and the counts of each class."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes, widest_float
from mpcs_torch.functional.inputs.decisions import Decisions, flatten_decisions
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.parts import in_own_threads


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


def confusion_matrix(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Count the samples of each pair (true class, predicted class).

    Arguments and errors are those of `accuracy`.

    Returns:
        ``(C, C)``, rows true classes: int64 counts, or with ``sample_weight`` float64 sums (float32 on MPS).

    Example:
        >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), num_classes=2)
        tensor([[1, 1],
                [0, 1]])
    """
    confusion = weighted_confusion(preds, target, sample_weight, num_classes=num_classes, ignore_index=ignore_index)
    return confusion.long() if sample_weight is None else confusion


@in_own_threads
def weighted_confusion(
    preds: Tensor, target: Tensor, sample_weight: Tensor | None, *, num_classes: int, ignore_index: int | None
) -> Tensor:
    """Sum the weights of the samples of each pair (true class, predicted class): (C, C) in the widest float."""
    check_num_classes(num_classes)
    decisions = flatten_decisions(
        preds, target, num_classes=num_classes, ignore_index=ignore_index, sample_weight=sample_weight
    )
    raise_first(decisions.find_faults())
    return count_pairs(decisions)


def count_pairs(decisions: Decisions) -> Tensor:
    """Sum the weights of each pair of flat decisions without looking at a value: (C, C) in the widest float."""
    weight, num_classes = decisions.labels.weight, decisions.labels.num_classes
    cells = torch.zeros(num_classes * num_classes, dtype=weight.dtype, device=weight.device)
    pair = decisions.labels.target * num_classes + decisions.predicted
    return cells.index_add(0, pair, weight).reshape(num_classes, num_classes)


def confusion_of(
    preds: Tensor, target: Tensor | None, sample_weight: Tensor | None, *, num_classes: int, ignore_index: int | None
) -> Tensor:
    """Return the weighted confusion matrix of samples or, without a target, the one given as `preds`."""
    if target is not None:
        return weighted_confusion(preds, target, sample_weight, num_classes=num_classes, ignore_index=ignore_index)
    check_num_classes(num_classes)
    if sample_weight is not None or ignore_index is not None:
        raise ValueError("sample_weight and ignore_index need a target: counts have no samples to weigh or ignore.")
    if preds.is_complex() or preds.dtype == torch.bool or preds.shape != (num_classes, num_classes):
        raise ValueError(
            f"preds without a target must be a confusion matrix of shape ({num_classes}, {num_classes}), "
            f"but got {preds.dtype} of shape {tuple(preds.shape)}."
        )
    bad = ~(preds.isfinite() & (preds >= 0))
    if bad.any():
        raise ValueError(f"preds without a target must hold finite counts >= 0, but got {preds[bad][0].item():g}.")
    return preds.to(widest_float(preds.device))
