"""The number and rate of dangerous errors."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import ConcernLike, as_tensors, concern_pairs, is_spec
from mpcs_torch.functional.inputs.checks import check_choice, check_matrix_fits, check_pairs
from mpcs_torch.functional.inputs.decisions import Decisions, flatten_decisions
from mpcs_torch.functional.inputs.faults import raise_first

DANGEROUS = 2
"""The severity of a dangerous error."""
DangerousNormalize = Literal["samples", "decided", "errors", None]


class DangerousErrorCounts(NamedTuple):
    """Numbers of samples, or sums of their weights, in float64 (float32 on MPS).

    Each field is a scalar or, if the samples are divided into B bins, has the shape (B,).
    """

    dangerous: Tensor
    """The number of misclassified samples whose pair of true and predicted class is dangerous."""
    errors: Tensor
    """The number of misclassified samples."""
    decided: Tensor
    """The number of samples that were decided instead of referred to a person."""
    samples: Tensor
    """The number of all samples."""


def dangerous_errors(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: Tensor | ConcernLike | None = None,
    normalize: DangerousNormalize = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the number of dangerous errors, or their rate; lower is better.

    Args:
        preds: ``(N, ...)`` integer decisions: a class, -1 to refer the sample to a person (no error), or C, C + 1, ...
            for coarse answers (groups of classes). Or ``(N, C, ...)`` floating point scores of any kind: the class with
            the highest score is the decision (the lower class in a tie).
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, or ``(C, C)``, bool: whether mistaking the true class (row) for another (column) is
            dangerous, as in `ConcernSpec.dangerous_pairs`. The diagonal is not read. Default: all errors are dangerous.
        normalize: None for the number of dangerous errors, or the number to divide it by: that of all ``"samples"``, of
            ``"decided"`` samples (not referred), or of all ``"errors"``. 0 / 0 gives NaN, or 0 with ``"errors"``.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS).

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Section IV-C ("destructive" cases).

    Example:
        >>> import torch
        >>> concern = torch.tensor([[False, False], [True, False]])  # mistaking class 0 for class 1 is released
        >>> preds, target = torch.tensor([1, 0, 0]), torch.tensor([0, 1, 0])
        >>> dangerous_errors(preds, target, num_classes=2, concern=concern)
        tensor(1., dtype=torch.float64)
    """
    check_choice("normalize", normalize, DangerousNormalize)
    return normalized_count(checked_counts(preds, target, sample_weight, num_classes, concern, ignore_index), normalize)


def checked_counts(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None,
    num_classes: int,
    concern: Tensor | ConcernLike | None,
    ignore_index: int | None,
) -> DangerousErrorCounts:
    """Validate a batch; count dangerous errors, all errors, decided (not referred) samples, and all samples."""
    preds, target, sample_weight = as_tensors(preds, target, sample_weight)
    severity = severity_matrix(concern, num_classes).to(preds.device)
    further = severity.shape[1] - num_classes
    decisions = flatten_decisions(preds, target, num_classes, ignore_index, sample_weight, further)
    raise_first(decisions.find_faults())
    return count_dangerous(decisions, severity)


def dangerous_pair_mask(concern: Tensor | ConcernLike | None, num_classes: int) -> Tensor:
    """Return the validated mask (C, C), bool, of dangerous pairs; None means that all errors are dangerous."""
    check_matrix_fits(num_classes, 1)
    pairs = torch.ones(num_classes, num_classes, dtype=torch.bool) if concern is None else concern_pairs(concern)
    check_pairs(pairs, num_classes)
    return pairs.clone().fill_diagonal_(False)


def severity_matrix(concern: Tensor | ConcernLike | None, num_classes: int) -> Tensor:
    """Return the severity of K decisions for each true class, (C, K): 2 if dangerous, 1 for other errors, else 0."""
    dangerous = dangerous_pair_mask(concern, num_classes)
    severity = dangerous.to(torch.int8) + 1 - torch.eye(num_classes, dtype=torch.int8, device=dangerous.device)
    severity = concern.over_answers(severity) if is_spec(concern) else severity
    return torch.nn.functional.pad(severity, (0, 1))


def count_dangerous(decisions: Decisions, severity: Tensor) -> DangerousErrorCounts:
    """Count dangerous errors, all errors, decided samples and all samples, without synchronizing an accelerator."""
    labels, columns = decisions.labels, severity.shape[1]
    severities = severity.flatten().index_select(0, labels.target * columns + decisions.predicted)
    return DangerousErrorCounts(
        labels.sum(severities == DANGEROUS),
        labels.sum(severities >= 1),
        labels.sum(decisions.predicted < columns - 1),
        labels.sum(),
    )


def normalized_count(counts: DangerousErrorCounts, normalize: DangerousNormalize) -> Tensor:
    """Return the number of dangerous errors, or their share of all samples, decided samples or errors."""
    if normalize is None:
        return counts.dangerous
    if normalize == "errors":
        return torch.where(counts.errors > 0, counts.dangerous / counts.errors, 0.0)
    return counts.dangerous / (counts.samples if normalize == "samples" else counts.decided)
