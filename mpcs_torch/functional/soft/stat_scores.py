"""The soft counts of true and false positives and negatives."""

from typing import NamedTuple

from torch import Tensor

from mpcs_torch.functional.soft.sums import TNorm, check_soft_settings, checked_sums


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
    and 1 they are the usual counts, whatever T is.

    Args:
        preds: ``(N,)`` for one class, or ``(N, C)`` or ``(N, C, ...)``, floating point in [0, 1].
        target: The same shape, floating point, integer or bool, in [0, 1].
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        ignore: The shape of ``preds``, bool: True for each element to leave out.
        num_classes: C, at least 1.
        t_norm: The intersection T of fuzzy sets, as in `soft_fbeta`.

    Returns:
        ``(C,)`` each, float64 (float32 on MPS), with gradients.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

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
