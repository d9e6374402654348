"""Confusion matrices (rows true classes, columns predicted classes) and per-class counts."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_matrix_fits, widest_float
from mpcs_torch.functional.inputs.decisions import Decisions, flatten_decisions
from mpcs_torch.functional.inputs.faults import raise_first


class ClassCounts(NamedTuple):
    """The weighted numbers of samples of each class, from which scores of decisions are computed."""

    counts: Tensor
    """(..., 3, C), float64 (float32 on MPS); one tensor, because adding to three tensors takes three times as long."""

    @property
    def right(self) -> Tensor:
        """The number of correct decisions for each class: (..., C)."""
        return self.counts[..., 0, :]

    @property
    def true(self) -> Tensor:
        """The number of samples of each class: (..., C)."""
        return self.counts[..., 1, :]

    @property
    def predicted(self) -> Tensor:
        """The number of decisions for each class: (..., C)."""
        return self.counts[..., 2, :]


def class_counts(confusion: Tensor) -> ClassCounts:
    """Return the per-class counts of a confusion matrix (..., C, C), whose rows are the true classes."""
    counts = confusion.to(widest_float(confusion.device))
    return ClassCounts(torch.stack([counts.diagonal(dim1=-2, dim2=-1), counts.sum(-1), counts.sum(-2)], dim=-2))


def count_classes(decisions: Decisions) -> ClassCounts:
    """Compute the `ClassCounts` of decisions, without synchronizing an accelerator: (3, C), or (B, 3, C) with bins."""
    labels, predicted = decisions.labels, decisions.predicted
    true, size = labels.target, labels.num_classes
    sums = [labels.sum_by(true, size, predicted == true), labels.sum_by(true, size), labels.sum_by(predicted, size)]
    return ClassCounts(torch.stack(sums, dim=-2))


def confusion_matrix(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Count the samples, or sum their weights, for each pair of true class and predicted class.

    Arguments and errors are those of `accuracy`. The matrix is limited to 2 GiB.

    Returns:
        ``(C, C)``, float64 (float32 on MPS); rows are true classes, and columns predicted ones.

    Example:
        >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), num_classes=2)
        tensor([[1., 1.],
                [0., 1.]], dtype=torch.float64)
    """
    check_matrix_fits(num_classes, 8)
    decisions = flatten_decisions(preds, target, num_classes, ignore_index, sample_weight)
    raise_first(decisions.find_faults())
    return count_pairs(decisions)


def count_pairs(decisions: Decisions) -> Tensor:
    """Sum the weights of each (true, predicted) pair without synchronization: (C, C), or (B, C, C) with bins."""
    labels, num_classes = decisions.labels, decisions.labels.num_classes
    pair = labels.target * num_classes + decisions.predicted
    counts = labels.sum_by(pair, num_classes * num_classes)
    return counts.reshape(*counts.shape[:-1], num_classes, num_classes)


def counts_of(
    preds: Tensor, target: Tensor | None, sample_weight: Tensor | None, num_classes: int, ignore_index: int | None
) -> ClassCounts:
    """Return the counts of each class from decisions or, if ``target`` is None, from the confusion matrix ``preds``."""
    if target is not None:
        decisions = flatten_decisions(preds, target, num_classes, ignore_index, sample_weight)
        raise_first(decisions.find_faults())
        return count_classes(decisions)
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
    return class_counts(preds)
