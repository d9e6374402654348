"""The multi-class Matthews correlation."""

import torch
from torch import Tensor

from mpcs_torch.functional.quality.class_counts import ClassCounts, class_counts
from mpcs_torch.functional.quality.confusion import weighted_confusion


def matthews_correlation(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the multi-class Matthews correlation of decisions and labels; in [-1, 1], higher is better.

    With :math:`t_c` samples of each class, :math:`p_c` decisions for it, :math:`n` samples and :math:`r` right ones:

    .. math:: \frac{r n - \sum_c t_c p_c}{\sqrt{(n^2 - \sum_c t_c^2) (n^2 - \sum_c p_c^2)}}

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties go to the lower class index).
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); 0 where 0 / 0 leaves it undefined, as when only one class is predicted.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Gorodkin: Comparing two K-category assignments by a K-category correlation coefficient, 2004, Eq. 8.

    Example:
        >>> matthews_correlation(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7000, dtype=torch.float64)
    """
    confusion = weighted_confusion(preds, target, sample_weight, num_classes=num_classes, ignore_index=ignore_index)
    return matthews_correlation_of(class_counts(confusion))


def matthews_correlation_of(counts: ClassCounts) -> Tensor:
    """Return the correlation of counts (..., C): (...)."""
    right, true, predicted = counts
    total = true.sum(-1)
    covariance = right.sum(-1) * total - (true * predicted).sum(-1)
    spread = (total**2 - true.square().sum(-1)) * (total**2 - predicted.square().sum(-1))
    is_defined = spread > 0
    return torch.where(is_defined, covariance / torch.where(is_defined, spread, 1.0).sqrt(), 0.0)
