"""Errors that human values do not excuse."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.decisions import flatten_decided
from mpcs_torch.functional.inputs.faults import Fault, raise_first


class DangerousErrorCounts(NamedTuple):
    """How many samples were seen, misclassified, and misclassified in a way that is not released: int64 scalars."""

    dangerous: Tensor
    errors: Tensor
    samples: Tensor


def dangerous_errors(
    preds: Tensor, target: Tensor, *, released: Tensor, ignore_index: int | None = None
) -> DangerousErrorCounts:
    """Count the errors whose (true, predicted) pair is not released; lower is better.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties to the lower class index).
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        released: ``(C, C)`` bool, rows true classes: True where taking the row for the column is tolerable. The
            diagonal is not read.
        ignore_index: Label of samples to leave out.

    Returns:
        The counts of dangerous errors, of all errors and of samples.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Section IV-C ("destructive" cases).

    Example:
        >>> import torch
        >>> released = torch.tensor([[0, 1], [0, 0]]).bool()  # class 0 may be taken for class 1, not the reverse
        >>> dangerous_errors(torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0]), released=released)
        DangerousErrorCounts(dangerous=tensor(1), errors=tensor(2), samples=tensor(3))
    """
    counts, faults = count_dangerous(preds, target, released=released, ignore_index=ignore_index)
    raise_first(faults)
    return counts


def count_dangerous(
    preds: Tensor, target: Tensor, *, released: Tensor, ignore_index: int | None
) -> tuple[DangerousErrorCounts, tuple[Fault, Fault]]:
    """The counts, and the samples that break a rule; looks at no value, so an accelerator is never waited for."""
    num_classes = check_released(released)
    decided = flatten_decided(preds, target, num_classes=num_classes, ignore_index=ignore_index)
    wrong = decided.counted & (decided.target != decided.predicted)
    pair = decided.target * num_classes + decided.predicted
    dangerous = wrong & ~released.flatten().index_select(0, pair)
    return DangerousErrorCounts(dangerous.sum(), wrong.sum(), decided.counted.sum()), decided.faults


def check_released(released: Tensor) -> int:
    """Refuse a released matrix that is not square and bool; return its number of classes."""
    if released.dtype != torch.bool or released.ndim != 2 or released.shape[0] != released.shape[1]:
        raise ValueError(
            f"released must be a bool (C, C) matrix, but got {released.dtype} of shape {tuple(released.shape)}."
        )
    return released.shape[0]
