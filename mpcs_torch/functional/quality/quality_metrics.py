"""Multi-class quality metrics by Intel oneDAL's definitions: averages of one-vs-rest scores of a confusion matrix."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_beta, check_zero_division
from mpcs_torch.functional.quality.confusion import ClassCounts, counts_of


def multiclass_quality_metrics(
    preds: Tensor,
    target: Tensor | None = None,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    beta: float = 1.0,
    zero_division: float = float("nan"),
    ignore_index: int | None = None,
) -> dict[str, Tensor]:
    r"""Compute all quality metrics of a multi-class classifier, by oneDAL's definitions.

    With one-vs-rest counts :math:`tp_c, fp_c, fn_c, tn_c` of each of the C classes:

    - ``average_accuracy``: :math:`\frac{1}{C} \sum_c \frac{tp_c + tn_c}{tp_c + fp_c + fn_c + tn_c}`, which is 1 minus
      the Hamming loss of the one-hot labels, **not** the share of right decisions; ``error_rate``: 1 minus that;
    - ``micro_precision`` and ``micro_recall``: :math:`\sum tp_c / \sum (tp_c + fp_c)` and
      :math:`\sum tp_c / \sum (tp_c + fn_c)` (both equal the share of right decisions); ``micro_fscore``: their F;
    - ``macro_precision`` and ``macro_recall``: the means of :math:`tp_c / (tp_c + fp_c)` and
      :math:`tp_c / (tp_c + fn_c)` over all C classes, including those that do not occur;
    - ``macro_fscore``: :math:`(1 + \beta^2) P R / (\beta^2 P + R)` of macro precision and macro recall, **not** the
      mean of the classes' F that scikit-learn and torchmetrics call macro F (`macro_f1`);
    - ``weighted_error_rate``: 1 minus the share of right decisions; ``balanced_error_rate``: 1 minus macro recall.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties go to the lower class index); or, without ``target``, a ``(C, C)`` confusion
            matrix of counts or weights, rows true classes.
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        beta: Weight > 0 of recall against precision in F.
        zero_division: The precision of a class that is never predicted, and the recall of an absent class: NaN
            (as in oneDAL; the means are then NaN), 0 or 1. If precision = recall = 0, F is NaN if this is NaN, else 0.
        ignore_index: Label of samples to leave out.

    Returns:
        Float64 scalars in [0, 1] by name (float32 on MPS); without samples ``zero_division``, or NaN. Lower is
        better for error rates, and higher for the others.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Intel oneDAL developer guide, "Quality Metrics for Multi-class Classification Algorithms"; Sokolova, Lapalme:
        A systematic analysis of performance measures for classification tasks, 2009, Table 3.

    Example:
        >>> quality = multiclass_quality_metrics(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        >>> print(*(f"{quality[name]:.3f}" for name in ("average_accuracy", "micro_fscore", "macro_fscore")))
        0.833 0.750 0.833
    """
    check_quality_settings(beta, zero_division)
    counts = counts_of(preds, target, sample_weight, num_classes, ignore_index)
    return quality_of(counts, beta=beta, zero_division=zero_division)


def quality_of(counts: ClassCounts, *, beta: float, zero_division: float) -> dict[str, Tensor]:
    """Return the metrics by name, each of shape (...), from the counts (..., C) of each class."""
    all_right, total = counts.right.sum(-1), counts.true.sum(-1)
    accuracy = _divide(all_right, total, zero_division)
    precision = _divide(counts.right, counts.predicted, zero_division).mean(-1)
    recall = _divide(counts.right, counts.true, zero_division).mean(-1)
    # A wrong sample is a false negative of its class and a false positive of another.
    error_rate = 2 * (total - all_right) / (total * counts.right.shape[-1])
    return {
        "average_accuracy": 1 - error_rate,
        "error_rate": error_rate,
        "micro_precision": accuracy,
        "micro_recall": accuracy,
        "micro_fscore": _fscore(accuracy, accuracy, beta, zero_division),
        "macro_precision": precision,
        "macro_recall": recall,
        "macro_fscore": _fscore(precision, recall, beta, zero_division),
        "weighted_error_rate": 1 - accuracy,
        "balanced_error_rate": 1 - recall,
    }


def check_quality_settings(beta: float, zero_division: float) -> None:
    """Check the weight of recall in F and the value of 0 / 0."""
    check_beta(beta)
    check_zero_division(zero_division)


def _divide(numerator: Tensor, denominator: Tensor, zero_division: float) -> Tensor:
    return torch.where(denominator == 0, zero_division, numerator / denominator)


def _fscore(precision: Tensor, recall: Tensor, beta: float, zero_division: float) -> Tensor:
    zero_fscore = float("nan") if zero_division != zero_division else 0.0
    return _divide((1 + beta**2) * precision * recall, beta**2 * precision + recall, zero_fscore)
