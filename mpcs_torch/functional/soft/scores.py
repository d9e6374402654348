"""Precision, recall and F where labels are degrees of truth: annotators who disagree, smoothed or mixed labels."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.soft_labels import flatten_soft
from mpcs_torch.functional.soft.sums import SoftAverage, SoftSums, check_beta, check_soft_settings, score_of, soft_sums


class SoftStatScores(NamedTuple):
    """Degrees of truth summed over samples, of each class: (C,) each."""

    tp: Tensor
    fp: Tensor
    fn: Tensor
    tn: Tensor


def soft_stat_scores(preds: Tensor, target: Tensor, *, ignore: Tensor | None = None) -> SoftStatScores:
    r"""Soft counts of true and false positives and negatives of each class.

    .. math::
        TP = \sum \min(p, y), \quad FP = \sum \max(p - y, 0), \quad FN = \sum \max(y - p, 0), \quad
        TN = \sum \min(1 - p, 1 - y)

    With labels and predictions of 0 and 1 they are the usual counts.

    Args:
        preds: ``(N,)`` for one class, or ``(N, C)`` or ``(N, C, ...)``, floating point in [0, 1].
        target: The same shape, floating point, integer or bool, in [0, 1].
        ignore: The same shape, bool: True where an element is left out.

    Returns:
        ``(C,)`` each (one class: ``(1,)``), float32, or float64 if ``preds`` or ``target`` is; with gradients.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.

    Example:
        >>> import torch
        >>> soft_stat_scores(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        SoftStatScores(tp=tensor([1.1000]), fp=tensor([0.3000]), fn=tensor([0.1000]), tn=tensor([0.5000]))
    """
    sums, dtype = _checked_sums(preds, target, ignore)
    negatives = sums.elements - sums.predicted - sums.actual + sums.shared
    scores = sums.shared, sums.predicted - sums.shared, sums.actual - sums.shared, negatives
    return SoftStatScores(*(score.to(dtype) for score in scores))


def soft_precision(
    preds: Tensor,
    target: Tensor,
    *,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    ignore: Tensor | None = None,
) -> Tensor:
    r"""How much of what was predicted is true, :math:`\sum \min(p, y) / \sum p`; in [0, 1], higher is better.

    Arguments, result and errors are those of `soft_fbeta`.

    Example:
        >>> import torch
        >>> soft_precision(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.7857)
    """
    return _score(preds, target, 0.0, average, zero_division, ignore)


def soft_recall(
    preds: Tensor,
    target: Tensor,
    *,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    ignore: Tensor | None = None,
) -> Tensor:
    r"""How much of what is true was predicted, :math:`\sum \min(p, y) / \sum y`; in [0, 1], higher is better.

    Arguments, result and errors are those of `soft_fbeta`.

    Example:
        >>> import torch
        >>> soft_recall(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.9167)
    """
    return _score(preds, target, float("inf"), average, zero_division, ignore)


def soft_f1(
    preds: Tensor,
    target: Tensor,
    *,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    ignore: Tensor | None = None,
) -> Tensor:
    r"""The harmonic mean of soft precision and recall: `soft_fbeta` with beta = 1; in [0, 1], higher is better.

    Example:
        >>> import torch
        >>> soft_f1(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.8462)
    """
    return soft_fbeta(preds, target, beta=1.0, average=average, zero_division=zero_division, ignore=ignore)


def soft_fbeta(
    preds: Tensor,
    target: Tensor,
    *,
    beta: float,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
    ignore: Tensor | None = None,
) -> Tensor:
    r"""F of soft precision and recall; in [0, 1], higher is better.

    .. math:: F_\beta = \frac{(1 + \beta^2) \sum \min(p, y)}{\beta^2 \sum y + \sum p}

    The value keeps its gradient, which is exact but where a prediction equals its label. With labels and predictions
    of 0 and 1 it is the usual F. Only predictions that equal the labels reach 1.

    Args:
        preds: ``(N,)`` for one class, or ``(N, C)`` or ``(N, C, ...)``, floating point in [0, 1]: probabilities of
            classes or of labels. Further dimensions (time, space) count as samples.
        target: The same shape, floating point, integer or bool, in [0, 1].
        beta: Weight > 0 of recall against precision.
        average: ``"micro"`` over all elements, ``"macro"`` for the mean of the classes' values, ``"weighted"`` by how
            much of each class is true, ``"none"`` for one value per class.
        zero_division: What 0 / 0 gives: 0, 1 or NaN.
        ignore: The same shape, bool: True where an element is left out.

    Returns:
        A scalar, or ``(C,)`` with ``average="none"`` (one class: ``(1,)``); float32, or float64 if an input is.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.

    Example:
        >>> import torch
        >>> soft_fbeta(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]), beta=2.0)
        tensor(0.8871)
    """
    check_beta(beta)
    return _score(preds, target, beta, average, zero_division, ignore)


def _score(
    preds: Tensor, target: Tensor, beta: float, average: SoftAverage, zero_division: float, ignore: Tensor | None
) -> Tensor:
    check_soft_settings(average, zero_division)
    sums, dtype = _checked_sums(preds, target, ignore)
    return score_of(sums, beta=beta, average=average, zero_division=zero_division).to(dtype)


def _checked_sums(preds: Tensor, target: Tensor, ignore: Tensor | None) -> tuple[SoftSums, torch.dtype]:
    """Sums in the widest float, because true negatives are a small difference of them; and the type to answer in."""
    p, y, counted, faults = flatten_soft(preds, target, ignore)
    raise_first(faults)
    return soft_sums(p, y, counted, widest_float(p.device)), p.dtype
