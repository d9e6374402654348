"""Scores of decisions: accuracy, macro F1, the Matthews correlation and the error rate of each class."""

import torch
from torch import Tensor

from mpcs_torch.functional.quality.confusion import ClassCounts, counts_of


def accuracy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of right decisions; in [0, 1], higher is better.

    torchmetrics and scikit-learn call it (micro) accuracy. The average accuracy of `multiclass_quality_metrics` is
    defined differently.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties go to the lower class index).
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Example:
        >>> import torch
        >>> accuracy(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7500, dtype=torch.float64)
    """
    return accuracy_of(counts_of(preds, target, sample_weight, num_classes, ignore_index))


def accuracy_of(counts: ClassCounts) -> Tensor:
    """Return the accuracy, of shape (...), from the counts (..., C) of each class."""
    return counts.right.sum(-1) / counts.true.sum(-1)


def class_error_rates(
    preds: Tensor,
    target: Tensor | None = None,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of each class's samples that are misclassified; in [0, 1], lower is better.

    Arguments and errors are those of `accuracy`, but without ``target``, ``preds`` may also be a ``(C, C)`` confusion
    matrix of counts or weights, whose rows are the true classes.

    Returns:
        Float64 ``(C,)`` (float32 on MPS); NaN for a class without samples.

    Example:
        >>> import torch
        >>> class_error_rates(torch.tensor([[3, 1], [0, 2]]), num_classes=2)
        tensor([0.2500, 0.0000], dtype=torch.float64)
    """
    return class_error_rates_of(counts_of(preds, target, sample_weight, num_classes, ignore_index))


def class_error_rates_of(counts: ClassCounts) -> Tensor:
    """Return the error rate of each class, (..., C), from the counts (..., C)."""
    return 1 - counts.right / counts.true


def macro_f1(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean F1 over classes with true or predicted samples; in [0, 1], higher is better.

    .. math:: \frac{1}{|K|} \sum_{c \in K} \frac{2 tp_c}{2 tp_c + fp_c + fn_c}

    It equals torchmetrics' and scikit-learn's macro F1. The macro F of `multiclass_quality_metrics` is defined
    differently, as the F of macro precision and macro recall. Arguments, result and errors are those of `accuracy`.

    Example:
        >>> macro_f1(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7778, dtype=torch.float64)
    """
    return macro_f1_of(counts_of(preds, target, sample_weight, num_classes, ignore_index))


def macro_f1_of(counts: ClassCounts) -> Tensor:
    """Return the macro F1, of shape (...), from the counts (..., C) of each class."""
    occurrences = counts.true + counts.predicted
    occurs = occurrences > 0
    per_class = 2 * counts.right / torch.where(occurs, occurrences, 1)
    return per_class.sum(-1) / occurs.sum(-1)


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

    Arguments and errors are those of `accuracy`.

    Returns:
        A float64 scalar (float32 on MPS); 0 where the equation is 0 / 0, as when only one class is predicted.

    References:
        Gorodkin: Comparing two K-category assignments by a K-category correlation coefficient, 2004, Eq. 8.

    Example:
        >>> matthews_correlation(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7000, dtype=torch.float64)
    """
    return matthews_correlation_of(counts_of(preds, target, sample_weight, num_classes, ignore_index))


def matthews_correlation_of(counts: ClassCounts) -> Tensor:
    """Return the Matthews correlation, of shape (...), from the counts (..., C) of each class."""
    right, true, predicted = counts.counts.unbind(-2)
    total = true.sum(-1)
    covariance = right.sum(-1) * total - (true * predicted).sum(-1)
    spread = (total**2 - true.square().sum(-1)) * (total**2 - predicted.square().sum(-1))
    is_defined = spread > 0
    return torch.where(is_defined, covariance / torch.where(is_defined, spread, 1.0).sqrt(), 0.0)
