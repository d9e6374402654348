"""Multi-class quality metrics as Intel oneDAL defines them: what a confusion matrix says of each class and of all."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes, check_zero_division
from mpcs_torch.functional.inputs.decisions import flatten_decided
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.quality.confusion import count_pairs


class MulticlassQuality(NamedTuple):
    """Scalars in [0, 1], or NaN where they are undefined; rates of errors are better lower, the others higher."""

    average_accuracy: Tensor
    error_rate: Tensor
    micro_precision: Tensor
    micro_recall: Tensor
    micro_fscore: Tensor
    macro_precision: Tensor
    macro_recall: Tensor
    macro_fscore: Tensor
    weighted_error_rate: Tensor
    balanced_error_rate: Tensor


def multiclass_quality_metrics(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    beta: float = 1.0,
    zero_division: float = float("nan"),
    ignore_index: int | None = None,
) -> MulticlassQuality:
    r"""All quality metrics of a multi-class classifier, by oneDAL's definitions.

    With one-vs-rest counts :math:`tp_c, fp_c, fn_c, tn_c` of each of the C classes:

    - average accuracy: :math:`\frac{1}{C} \sum_c \frac{tp_c + tn_c}{tp_c + fp_c + fn_c + tn_c}`, which is 1 minus the
      Hamming loss of the one-hot labels, **not** the share of right predictions; error rate: 1 minus that;
    - micro precision and recall: :math:`\sum tp_c / \sum (tp_c + fp_c)` and :math:`\sum tp_c / \sum (tp_c + fn_c)`
      (both equal the share of right predictions), and their F;
    - macro precision and recall: the means of :math:`tp_c / (tp_c + fp_c)` and :math:`tp_c / (tp_c + fn_c)` over all C
      classes, those that do not occur included;
    - macro F: :math:`(1 + \beta^2) P R / (\beta^2 P + R)` of macro precision and macro recall, **not** the mean of the
      classes' F that scikit-learn and torchmetrics call macro F;
    - weighted error rate: 1 minus the share of right predictions; balanced error rate: 1 minus macro recall.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties to the lower class index).
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        num_classes: C, at least 2.
        beta: Weight > 0 of recall against precision in F.
        zero_division: The precision of a class that is never predicted, and the recall of one that never occurs: NaN
            (oneDAL's, which makes the means NaN), 0 or 1. F of a precision and a recall of 0 is NaN with NaN, else 0.
        ignore_index: Label of samples to leave out.

    Returns:
        Float64 scalars (float32 on MPS); without samples as ``zero_division`` says, or NaN.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Intel oneDAL developer guide, "Quality Metrics for Multi-class Classification Algorithms"; Sokolova, Lapalme:
        A systematic analysis of performance measures for classification tasks, 2009, Table 3.

    Example:
        >>> quality = multiclass_quality_metrics(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        >>> print(f"{quality.average_accuracy:.3f} {quality.micro_fscore:.3f} {quality.macro_fscore:.3f}")
        0.833 0.750 0.833
    """
    check_quality_settings(num_classes, beta, zero_division)
    confusion = confusion_matrix(preds, target, num_classes=num_classes, ignore_index=ignore_index)
    return quality_of(confusion, beta=beta, zero_division=zero_division)


def confusion_matrix(preds: Tensor, target: Tensor, *, num_classes: int, ignore_index: int | None = None) -> Tensor:
    """Count (true class, predicted class) pairs: int64 (C, C), rows true classes, columns predicted ones.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind.
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        num_classes: C, at least 2.
        ignore_index: Label of samples to leave out.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    Example:
        >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), num_classes=2)
        tensor([[1, 1],
                [0, 1]])
    """
    decided = flatten_decided(preds, target, num_classes=num_classes, ignore_index=ignore_index)
    raise_first(decided.faults)
    return count_pairs(decided, num_classes)


def class_error_rates(confusion: Tensor) -> Tensor:
    """Share of each class's samples that are misclassified: (C,) in [0, 1], NaN for a class without samples.

    Args:
        confusion: ``(C, C)`` counts, rows true classes.

    Raises:
        ValueError: If ``confusion`` is no square matrix.

    Example:
        >>> class_error_rates(torch.tensor([[3, 1], [0, 2]]))
        tensor([0.2500, 0.0000], dtype=torch.float64)
    """
    if confusion.ndim != 2 or confusion.shape[0] != confusion.shape[1]:
        raise ValueError(f"confusion must have shape (C, C), but got {tuple(confusion.shape)}.")
    counts = confusion.to(widest_float(confusion.device))
    return 1 - counts.diagonal() / counts.sum(dim=1)


def quality_of(confusion: Tensor, *, beta: float, zero_division: float) -> MulticlassQuality:
    """The metrics of a confusion matrix (C, C), rows true classes."""
    counts = confusion.to(widest_float(confusion.device))
    right, actual, predicted, total = counts.diagonal(), counts.sum(dim=1), counts.sum(dim=0), counts.sum()
    accuracy = _divide(right.sum(), total, zero_division)
    precision = _divide(right, predicted, zero_division).mean()
    recall = _divide(right, actual, zero_division).mean()
    # A wrong sample is a false negative of its class and a false positive of another.
    error_rate = 2 * (total - right.sum()) / (total * len(confusion))
    return MulticlassQuality(
        average_accuracy=1 - error_rate,
        error_rate=error_rate,
        micro_precision=accuracy,
        micro_recall=accuracy,
        micro_fscore=_fscore(accuracy, accuracy, beta, zero_division),
        macro_precision=precision,
        macro_recall=recall,
        macro_fscore=_fscore(precision, recall, beta, zero_division),
        weighted_error_rate=1 - accuracy,
        balanced_error_rate=1 - recall,
    )


def check_quality_settings(num_classes: int, beta: float, zero_division: float) -> None:
    """Refuse settings that the metrics do not take."""
    check_num_classes(num_classes)
    if not 0 < beta < float("inf"):
        raise ValueError(f"beta must be finite and > 0, but got {beta}.")
    check_zero_division(zero_division)


def _divide(numerator: Tensor, denominator: Tensor, zero_division: float) -> Tensor:
    return torch.where(denominator == 0, zero_division, numerator / denominator)


def _fscore(precision: Tensor, recall: Tensor, beta: float, zero_division: float) -> Tensor:
    of_zeros = float("nan") if zero_division != zero_division else 0.0
    return _divide((1 + beta**2) * precision * recall, beta**2 * precision + recall, of_zeros)
