"""Soft counts of true and false positives and negatives, and precision, recall and F from them."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_choice, check_zero_division, widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.soft_labels import SoftSamples, flatten_soft

SoftAverage = Literal["micro", "macro", "weighted", "none"]
TNorm = Literal["minimum", "product", "lukasiewicz"]
"""A fuzzy "and": the degree of truth of a conjunction."""


class SoftSums(NamedTuple):
    """Weighted sums over samples, for each class: (..., C) each."""

    shared: Tensor
    """The sum of T(p, y), by default min(p, y)."""
    predicted: Tensor
    """The sum of the predictions p."""
    actual: Tensor
    """The sum of the labels y."""
    elements: Tensor
    """The sum of the weights of the elements that are not ignored."""


def checked_sums(
    preds: Tensor, target: Tensor, sample_weight: Tensor | None, ignore: Tensor | None, num_classes: int, t_norm: TNorm
) -> SoftSums:
    """Validate a batch, and return its `SoftSums`."""
    check_choice("t_norm", t_norm, TNorm)
    samples = flatten_soft(preds, target, num_classes=num_classes, sample_weight=sample_weight, ignore=ignore)
    raise_first(samples.find_faults())
    return soft_sums(samples, widest_float(samples.preds.device), t_norm)


def soft_sums(samples: SoftSamples, dtype: torch.dtype, t_norm: TNorm = "minimum") -> SoftSums:
    """Return the `SoftSums` of the samples in a wide dtype, without synchronizing an accelerator."""

    def degrees(chunk: SoftSamples) -> tuple[Tensor, Tensor, Tensor]:
        predicted, actual = chunk.predicted, chunk.actual
        return _intersection(predicted, actual, t_norm, dtype), predicted, actual

    shared, predicted, actual = samples.sums(degrees, dtype)
    return SoftSums(shared, predicted, actual, samples.elements(dtype))


def _intersection(p: Tensor, y: Tensor, t_norm: TNorm, dtype: torch.dtype) -> Tensor:
    """Return the T-norm T(p, y) of each element."""
    if t_norm == "minimum":
        return torch.minimum(p, y)
    p, y = p.to(dtype), y.to(dtype)  # p + 1 loses digits of a small p in float32
    return p * y if t_norm == "product" else (p + y - 1).clamp(min=0)


def score_of(sums: SoftSums, *, beta: float, average: SoftAverage, zero_division: float) -> Tensor:
    """Return the F score, of shape (...), from sums (..., C); with the average "none", it has the shape (..., C).

    Beta = 0 gives precision, and an infinite beta recall.
    """
    actual_share = 1.0 if beta == float("inf") else beta**2 / (1 + beta**2)
    pooled = SoftSums(*(field.sum(-1) for field in sums)) if average == "micro" else sums
    mass = actual_share * pooled.actual + (1 - actual_share) * pooled.predicted
    is_empty = mass == 0
    score = torch.where(is_empty, zero_division, pooled.shared / torch.where(is_empty, 1.0, mass))
    if average == "macro":
        return score.mean(-1)
    if average == "weighted":
        total = sums.actual.sum(-1)
        # An absent class has weight 0, even if its score is NaN.
        weighted = torch.where(sums.actual == 0, 0.0, score * sums.actual).sum(-1)
        return torch.where(total == 0, zero_division, weighted / torch.where(total == 0, 1.0, total))
    return score


def check_soft_settings(num_classes: int, average: str, zero_division: float) -> None:
    """Check the number of classes, the average, and the value of 0 / 0."""
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

    With the minimum as T, FP is the sum of max(p - y, 0), and FN the sum of max(y - p, 0). For labels and
    predictions of 0 and 1, these are the usual counts for any T. Arguments, errors and references are those of
    `soft_fbeta`.

    Returns:
        ``(C,)`` each, float64 (float32 on MPS), with gradients.

    Example:
        >>> import torch
        >>> scores = soft_stat_scores(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), num_classes=1)
        >>> print(*(f"{name} {value.item():.1f}" for name, value in scores._asdict().items()))
        tp 1.1 fp 0.3 fn 0.1 tn 0.5
    """
    check_soft_settings(num_classes, "none", 0.0)
    sums = checked_sums(preds, target, sample_weight, ignore, num_classes, t_norm)
    # T(1 - p, 1 - y) = 1 - p - y + T(p, y) holds for all three T-norms.
    negatives = sums.elements - sums.predicted - sums.actual + sums.shared
    return SoftStatScores(sums.shared, sums.predicted - sums.shared, sums.actual - sums.shared, negatives)
