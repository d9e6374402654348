"""Decide which errors are dangerous, and count them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import ConcernLike, concern_pairs, is_spec
from mpcs_torch.functional.inputs.checks import check_choice, check_matrix_fits, check_pairs
from mpcs_torch.functional.inputs.decisions import Decisions
from mpcs_torch.functional.inputs.labels import Term
from mpcs_torch.functional.measure import DecisionMeasure, RatioOfBins

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
    return DangerousErrors(num_classes, ignore_index, concern, normalize)(
        preds, target, sample_weight
    )


@dataclass(eq=False)
class SeverityMeasure(DecisionMeasure):
    """A measure of `DangerousErrorCounts`."""

    concern: Tensor | ConcernLike | None = None
    severity: Tensor = field(init=False, repr=False)
    """(C, K), as in `severity_matrix`."""

    sums_type = DangerousErrorCounts
    sums_settings = ("num_classes", "ignore_index", "severity")
    limits: ClassVar[tuple[float | None, float | None]] = (0.0, 1.0)
    interval_rule = "bounded"
    row_limits = (0, 1)
    takes_referrals = True

    def __post_init__(self) -> None:
        """Compute the severities."""
        self.severity = severity_matrix(self.concern, self.num_classes)
        self.further = self.severity.shape[1] - self.num_classes
        super().__post_init__()

    def terms(self, rows: Decisions) -> Sequence[Term]:
        """Return whether the decision is a dangerous error, an error, and no referral; and 1."""
        severities = self.severity[rows.labels.target, rows.predicted]
        is_decided = rows.predicted < self.severity.shape[1] - 1
        return (
            Term(number=severities == DANGEROUS),
            Term(number=severities >= 1),
            Term(number=is_decided),
            Term(),
        )


@dataclass(eq=False)
class DangerousErrors(SeverityMeasure):
    """The measure of `dangerous_errors`."""

    normalize: DangerousNormalize = None

    limits = (0.0, None)

    def __post_init__(self) -> None:
        """Check the settings."""
        check_choice("normalize", self.normalize, DangerousNormalize)
        super().__post_init__()

    def value(self, sums: DangerousErrorCounts) -> Tensor:
        """Return the number of dangerous errors, or their share of all samples, decided samples or errors."""
        if self.normalize is None:
            return sums.dangerous
        rate = super().value(sums)
        return (
            torch.where(sums.errors > 0, rate, 0.0) if self.normalize == "errors" else rate
        )

    def ratio(self, sums: DangerousErrorCounts, whole: DangerousErrorCounts) -> RatioOfBins:  # noqa: ARG002
        """Return the number of dangerous errors, and the denominator of their rate."""
        per = {"errors": sums.errors, "decided": sums.decided}.get(
            self.normalize or "", sums.samples
        )
        return sums.dangerous, per

    def value_from_ratio(self, ratio: float, whole: DangerousErrorCounts) -> float:
        """Return the rate of dangerous errors, or their number if ``normalize`` is None."""
        return ratio if self.normalize else ratio * whole.samples.item()


def dangerous_pair_mask(concern: Tensor | ConcernLike | None, num_classes: int) -> Tensor:
    """Return the validated mask (C, C), bool, of dangerous pairs; None means that all errors are dangerous."""
    check_matrix_fits(num_classes, 1)
    pairs = (
        torch.ones(num_classes, num_classes, dtype=torch.bool)
        if concern is None
        else concern_pairs(concern)
    )
    check_pairs(pairs, num_classes)
    return pairs.clone().fill_diagonal_(False)


def severity_matrix(concern: Tensor | ConcernLike | None, num_classes: int) -> Tensor:
    """Return the severity of K decisions for each true class, (C, K): 2 if dangerous, 1 for other errors, else 0."""
    dangerous = dangerous_pair_mask(concern, num_classes)
    severity = (
        dangerous.to(torch.int8)
        + 1
        - torch.eye(num_classes, dtype=torch.int8, device=dangerous.device)
    )
    severity = concern.over_answers(severity) if is_spec(concern) else severity
    return torch.nn.functional.pad(severity, (0, 1))
