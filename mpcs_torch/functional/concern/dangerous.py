"""Errors that human values do not release."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_choice, check_concern, check_num_classes
from mpcs_torch.functional.inputs.decisions import Decisions, flatten_decisions
from mpcs_torch.functional.inputs.faults import raise_first

DangerousNormalize = Literal["samples", "errors", None]


class DangerousErrorCounts(NamedTuple):
    """Numbers of samples, float64 scalars (float32 on MPS): whole numbers unless samples are weighted."""

    dangerous: Tensor
    """Misclassified samples whose (true, predicted) pair is not released."""
    errors: Tensor
    """Misclassified samples."""
    samples: Tensor
    """All samples."""


def dangerous_errors(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: Tensor | None = None,
    normalize: DangerousNormalize = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the number or the rate of dangerous errors, those that are not released; lower is better, 0 is perfect.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties go to the lower class index).
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        concern: ``(C, C)`` weights > 0 for taking the true class (row) for another (column). A pair with a weight
            below 1 is released. The diagonal is not read. Default: no pair is released, so every error is dangerous.
        normalize: None for the number of dangerous errors, ``"samples"`` for dangerous errors per sample (NaN without
            samples), ``"errors"`` for dangerous errors per error (0 without errors).
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS).

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Section IV-C ("destructive" cases).

    Example:
        >>> import torch
        >>> concern = torch.tensor([[1.0, 0.5], [1.0, 1.0]])  # taking class 0 for class 1 is released
        >>> preds, target = torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0])
        >>> dangerous_errors(preds, target, num_classes=2, concern=concern)
        tensor(1., dtype=torch.float64)
    """
    check_choice("normalize", normalize, DangerousNormalize)
    counts = dangerous_errors_details(
        preds, target, sample_weight, num_classes=num_classes, concern=concern, ignore_index=ignore_index
    )
    return normalized_count(counts, normalize)


def dangerous_errors_details(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: Tensor | None = None,
    ignore_index: int | None = None,
) -> DangerousErrorCounts:
    """Count the dangerous errors, all errors and all samples.

    Arguments and errors are those of `dangerous_errors` without ``normalize``.

    Example:
        >>> import torch
        >>> dangerous_errors_details(torch.tensor([1, 0]), torch.tensor([0, 0]), num_classes=2).errors
        tensor(1., dtype=torch.float64)
    """
    check_num_classes(num_classes)
    released = released_pairs(concern, num_classes).to(preds.device)
    decisions = flatten_decisions(
        preds, target, num_classes=num_classes, ignore_index=ignore_index, sample_weight=sample_weight
    )
    raise_first(decisions.find_faults())
    return count_dangerous(decisions, released)


def released_pairs(concern: Tensor | None, num_classes: int) -> Tensor:
    """Return the pairs with a weight below 1, off the diagonal: bool (C, C)."""
    if concern is None:
        return torch.zeros(num_classes, num_classes, dtype=torch.bool)
    check_concern(concern, num_classes)
    return (concern < 1).fill_diagonal_(False)


def count_dangerous(decisions: Decisions, released: Tensor) -> DangerousErrorCounts:
    """Count the errors whose pair is not released, without looking at a value."""
    weight = decisions.labels.weight
    wrong = torch.where(decisions.labels.target != decisions.predicted, weight, 0.0)
    dangerous = torch.where(released.flatten().index_select(0, decisions.pair), 0.0, wrong)
    return DangerousErrorCounts(dangerous.sum(), wrong.sum(), weight.sum())


def normalized_count(counts: DangerousErrorCounts, normalize: DangerousNormalize) -> Tensor:
    """Return the number of dangerous errors, or its ratio to the samples or to the errors."""
    if normalize is None:
        return counts.dangerous
    if normalize == "samples":
        return counts.dangerous / counts.samples
    return torch.where(counts.errors > 0, counts.dangerous / counts.errors, 0.0)
