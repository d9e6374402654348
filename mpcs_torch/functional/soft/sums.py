"""The soft counts of true and false positives and negatives, from which precision, recall and F are computed."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_choice, check_zero_division, widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.soft_labels import SoftSamples, flatten_soft

SoftAverage = Literal["micro", "macro", "weighted", "none"]
TNorm = Literal["minimum", "product", "lukasiewicz"]
"""The degree to which both of two statements are true."""


class SoftSums(NamedTuple):
    """Degrees of truth of each class times the weights of the samples, summed over samples: (..., C) each."""

    shared: Tensor
    """Sum of T(p, y), by default of min(p, y): the degree to which prediction and label are both true."""
    predicted: Tensor
    """Sum of p."""
    actual: Tensor
    """Sum of y."""
    elements: Tensor
    """Sum of 1 for each element that is not ignored."""


def checked_sums(
    preds: Tensor, target: Tensor, sample_weight: Tensor | None, ignore: Tensor | None, num_classes: int, t_norm: TNorm
) -> SoftSums:
    """Check a batch, and sum over its samples."""
    check_choice("t_norm", t_norm, TNorm)
    samples = flatten_soft(preds, target, num_classes=num_classes, sample_weight=sample_weight, ignore=ignore)
    raise_first(samples.find_faults())
    return soft_sums(samples, widest_float(samples.preds.device), t_norm)


def soft_sums(samples: SoftSamples, dtype: torch.dtype, t_norm: TNorm = "minimum") -> SoftSums:
    """Sum over the samples in a wide dtype, without looking at a value."""

    def of_elements(part: SoftSamples) -> tuple[Tensor, Tensor, Tensor]:
        predicted, actual = part.predicted, part.actual
        return _both(predicted, actual, t_norm, dtype), predicted, actual

    shared, predicted, actual = samples.sums(of_elements, dtype)
    return SoftSums(shared, predicted, actual, samples.elements(dtype))


def _both(p: Tensor, y: Tensor, t_norm: TNorm, dtype: torch.dtype) -> Tensor:
    """Return T(p, y)."""
    if t_norm == "minimum":
        return torch.minimum(p, y)
    p, y = p.to(dtype), y.to(dtype)  # the sum of a small p and 1 loses digits in float32
    return p * y if t_norm == "product" else (p + y - 1).clamp(min=0)


def score_of(sums: SoftSums, *, beta: float, average: SoftAverage, zero_division: float) -> Tensor:
    """Return the F of sums; its limit for beta = 0 is precision, and for an infinite beta recall.

    Of sums (..., C) it has the shape (...), or (..., C) with the average "none".
    """
    of_actual = 1.0 if beta == float("inf") else beta**2 / (1 + beta**2)
    pooled = SoftSums(*(field.sum(-1) for field in sums)) if average == "micro" else sums
    mass = of_actual * pooled.actual + (1 - of_actual) * pooled.predicted
    is_empty = mass == 0
    score = torch.where(is_empty, zero_division, pooled.shared / torch.where(is_empty, 1.0, mass))
    if average == "macro":
        return score.mean(-1)
    if average == "weighted":
        total = sums.actual.sum(-1)
        # NaN of an absent class weighs nothing.
        weighed = torch.where(sums.actual == 0, 0.0, score * sums.actual).sum(-1)
        return torch.where(total == 0, zero_division, weighed / torch.where(total == 0, 1.0, total))
    return score


def check_beta(beta: float) -> None:
    """Refuse a weight of recall that is not finite and above 0."""
    if not 0 < beta < float("inf"):
        raise ValueError(f"beta must be finite and > 0, but got {beta}.")


def check_soft_settings(num_classes: int, average: str, zero_division: float) -> None:
    """Refuse less than one class, an unknown average, and a value for 0 / 0 that is not 0, 1 or NaN."""
    if num_classes < 1:
        raise ValueError(f"num_classes must be at least 1, but got {num_classes}.")
    check_choice("average", average, SoftAverage)
    check_zero_division(zero_division)


class SoftStatScores(NamedTuple):
    """Degrees of truth summed over samples, for each class: float64 (C,) each."""

    tp: Tensor
    fp: Tensor
    fn: Tensor
    tn: Tensor


def soft_stat_scores(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    t_norm: TNorm = "minimum",
) -> SoftStatScores:
    r"""Compute the soft counts of true and false positives and negatives of each class.

    .. math::
        TP = \sum T(p, y), \quad FP = \sum p - TP, \quad FN = \sum y - TP, \quad TN = \sum T(1 - p, 1 - y)

    With the minimum as T, FP is the sum of max(p - y, 0) and FN that of max(y - p, 0). With labels and predictions of 0
    and 1 they are the usual counts, whatever T is. Arguments and errors are those of `soft_fbeta`.

    Returns:
        ``(C,)`` each, float64 (float32 on MPS), with gradients.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 2.1, Eq. 3.

    Example:
        >>> import torch
        >>> scores = soft_stat_scores(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        >>> print(*(f"{name} {value.item():.1f}" for name, value in scores._asdict().items()))
        tp 1.1 fp 0.3 fn 0.1 tn 0.5
    """
    check_soft_settings(num_classes, "none", 0.0)
    sums = checked_sums(preds, target, sample_weight, ignore, num_classes, t_norm)
    # T(1 - p, 1 - y) = 1 - p - y + T(p, y) holds for each of the three.
    negatives = sums.elements - sums.predicted - sums.actual + sums.shared
    return SoftStatScores(sums.shared, sums.predicted - sums.shared, sums.actual - sums.shared, negatives)
