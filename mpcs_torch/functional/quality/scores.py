"""The confusion matrix of decisions, and scores such as accuracy, F1 and Matthews correlation."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_beta, check_matrix_fits, check_zero_division, widest_float
from mpcs_torch.functional.inputs.decisions import Decisions, flatten_decisions
from mpcs_torch.functional.inputs.faults import raise_first


class ClassCounts(NamedTuple):
    """For each class, the weighted numbers of correct decisions, of samples of the class, and of decisions for it."""

    counts: Tensor
    """(..., 3, C): right decisions, samples, decisions, float64 (float32 on MPS). Faster than three tensors."""

    @property
    def right(self) -> Tensor:
        """The number of correct decisions for each class: (..., C)."""
        return self.counts[..., 0, :]

    @property
    def true(self) -> Tensor:
        """The number of samples of each true class: (..., C)."""
        return self.counts[..., 1, :]

    @property
    def predicted(self) -> Tensor:
        """The number of decisions for each class: (..., C)."""
        return self.counts[..., 2, :]


def class_counts(confusion: Tensor) -> ClassCounts:
    """Return the counts for each class from a confusion matrix (..., C, C) whose rows are true classes."""
    counts = confusion.to(widest_float(confusion.device))
    return ClassCounts(torch.stack([counts.diagonal(dim1=-2, dim2=-1), counts.sum(-1), counts.sum(-2)], dim=-2))


def count_classes(decisions: Decisions) -> ClassCounts:
    """Count the correct decisions, samples and decisions of each class: (3, C), or (B, 3, C) with B bins."""
    labels, predicted = decisions.labels, decisions.predicted
    true, size = labels.target, labels.num_classes
    sums = [labels.sum_by(true, size, predicted == true), labels.sum_by(true, size), labels.sum_by(predicted, size)]
    return ClassCounts(torch.stack(sums, dim=-2))


def confusion_matrix(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Count the samples, or sum their weights, for each pair of true class and predicted class.

    Arguments and errors are those of `accuracy`. The matrix is limited to 2 GiB.

    Returns:
        ``(C, C)``, float64 (float32 on MPS); rows are true classes, and columns predicted ones.

    Example:
        >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), num_classes=2)
        tensor([[1., 1.],
                [0., 1.]], dtype=torch.float64)
    """
    check_matrix_fits(num_classes, 8)
    decisions = flatten_decisions(preds, target, num_classes, ignore_index, sample_weight)
    raise_first(decisions.find_faults())
    return count_pairs(decisions)


def count_pairs(decisions: Decisions) -> Tensor:
    """Sum the sample weights of each (true, predicted) pair: (C, C), or (B, C, C) if the samples are in B bins."""
    labels, num_classes = decisions.labels, decisions.labels.num_classes
    pair = labels.target * num_classes + decisions.predicted
    counts = labels.sum_by(pair, num_classes * num_classes)
    return counts.reshape(*counts.shape[:-1], num_classes, num_classes)


def counts_from_batch(
    preds: Tensor, target: Tensor | None, sample_weight: Tensor | None, num_classes: int, ignore_index: int | None
) -> ClassCounts:
    """Return the counts of each class from decisions, or from a confusion matrix ``preds`` if ``target`` is None."""
    if target is not None:
        decisions = flatten_decisions(preds, target, num_classes, ignore_index, sample_weight)
        raise_first(decisions.find_faults())
        return count_classes(decisions)
    if sample_weight is not None or ignore_index is not None:
        raise ValueError("sample_weight and ignore_index need a target: counts have no samples to weigh or ignore.")
    if preds.is_complex() or preds.dtype == torch.bool or preds.shape != (num_classes, num_classes):
        raise ValueError(
            f"preds without a target must be a confusion matrix of shape ({num_classes}, {num_classes}), "
            f"but got {preds.dtype} of shape {tuple(preds.shape)}."
        )
    bad = ~(preds.isfinite() & (preds >= 0))
    if bad.any():
        raise ValueError(f"preds without a target must hold finite counts >= 0, but got {preds[bad][0].item():g}.")
    return class_counts(preds)


def accuracy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of right decisions; in [0, 1], higher is better.

    It differs from the ``average_accuracy`` of `multiclass_quality_metrics`.

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
    return accuracy_from_counts(counts_from_batch(preds, target, sample_weight, num_classes, ignore_index))


def accuracy_from_counts(counts: ClassCounts) -> Tensor:
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
    """Compute for each class the share of its samples that are misclassified; in [0, 1], lower is better.

    Arguments and errors are those of `accuracy`. Without ``target``, ``preds`` must be a ``(C, C)`` confusion matrix of
    counts or weights, whose rows are the true classes.

    Returns:
        Float64 ``(C,)`` (float32 on MPS); NaN for a class without samples.

    Example:
        >>> import torch
        >>> class_error_rates(torch.tensor([[3, 1], [0, 2]]), num_classes=2)
        tensor([0.2500, 0.0000], dtype=torch.float64)
    """
    return class_error_rates_from_counts(counts_from_batch(preds, target, sample_weight, num_classes, ignore_index))


def class_error_rates_from_counts(counts: ClassCounts) -> Tensor:
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

    This is the macro F1 of torchmetrics and scikit-learn. K are the classes that occur in labels or decisions. The
    ``macro_fscore`` of `multiclass_quality_metrics` is another value: the F score of macro precision and macro recall.
    Arguments, result and errors are those of `accuracy`.

    Example:
        >>> macro_f1(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7778, dtype=torch.float64)
    """
    return macro_f1_from_counts(counts_from_batch(preds, target, sample_weight, num_classes, ignore_index))


def macro_f1_from_counts(counts: ClassCounts) -> Tensor:
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

    With :math:`n` samples, :math:`t_c` of class c, :math:`p_c` decisions for c, and :math:`r` right decisions:

    .. math:: \frac{r n - \sum_c t_c p_c}{\sqrt{(n^2 - \sum_c t_c^2) (n^2 - \sum_c p_c^2)}}

    Arguments and errors are those of `accuracy`.

    Returns:
        A float64 scalar (float32 on MPS); 0 if the equation is 0 / 0, for example if only one class is predicted.

    References:
        Gorodkin: Comparing two K-category assignments by a K-category correlation coefficient, 2004, Eq. 8.

    Example:
        >>> matthews_correlation(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7000, dtype=torch.float64)
    """
    return matthews_correlation_from_counts(counts_from_batch(preds, target, sample_weight, num_classes, ignore_index))


def matthews_correlation_from_counts(counts: ClassCounts) -> Tensor:
    """Return the Matthews correlation, of shape (...), from the counts (..., C) of each class."""
    right, true, predicted = counts.counts.unbind(-2)
    total = true.sum(-1)
    covariance = right.sum(-1) * total - (true * predicted).sum(-1)
    spread = (total**2 - true.square().sum(-1)) * (total**2 - predicted.square().sum(-1))
    is_defined = spread > 0
    return torch.where(is_defined, covariance / torch.where(is_defined, spread, 1.0).sqrt(), 0.0)


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

    - ``average_accuracy``: :math:`\frac{1}{C} \sum_c \frac{tp_c + tn_c}{tp_c + fp_c + fn_c + tn_c}`, **not** the share
      of right decisions; ``error_rate``: 1 minus ``average_accuracy``;
    - ``micro_precision`` and ``micro_recall``: :math:`\sum tp_c / \sum (tp_c + fp_c)` and
      :math:`\sum tp_c / \sum (tp_c + fn_c)` (both are the share of right decisions); ``micro_fscore``: their F score;
    - ``macro_precision`` and ``macro_recall``: the means of :math:`tp_c / (tp_c + fp_c)` and
      :math:`tp_c / (tp_c + fn_c)` over all C classes, including those that do not occur;
    - ``macro_fscore``: :math:`(1 + \beta^2) P R / (\beta^2 P + R)` of macro precision P and macro recall R, **not** the
      mean F score of the classes (`macro_f1`);
    - ``weighted_error_rate``: 1 minus the share of right decisions; ``balanced_error_rate``: 1 minus macro recall.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties go to the lower class index). Without ``target``: a ``(C, C)`` confusion
            matrix of counts or weights, whose rows are true classes.
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        beta: Weight > 0 of recall against precision in F scores.
        zero_division: The precision of a class that is never predicted, and the recall of an absent class: NaN (as in
            oneDAL; then the macro values are NaN), 0 or 1. With precision = recall = 0, an F score is NaN if
            ``zero_division`` is NaN, else 0.
        ignore_index: Label of samples to leave out.

    Returns:
        Float64 scalars in [0, 1] by name (float32 on MPS). Lower is better for error rates, and higher for the others.
        Without samples, ``average_accuracy`` and ``error_rate`` are NaN, and precision and recall ``zero_division``.

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
    counts = counts_from_batch(preds, target, sample_weight, num_classes, ignore_index)
    return quality_from_counts(counts, beta=beta, zero_division=zero_division)


def quality_from_counts(counts: ClassCounts, *, beta: float, zero_division: float) -> dict[str, Tensor]:
    """Return the metrics of `multiclass_quality_metrics` by name, (...) each, from the ``counts`` of each class."""
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
    """Check that ``beta`` is finite and above 0, and that ``zero_division`` is NaN, 0 or 1."""
    check_beta(beta)
    check_zero_division(zero_division)


def _divide(numerator: Tensor, denominator: Tensor, zero_division: float) -> Tensor:
    return torch.where(denominator == 0, zero_division, numerator / denominator)


def _fscore(precision: Tensor, recall: Tensor, beta: float, zero_division: float) -> Tensor:
    zero_fscore = float("nan") if zero_division != zero_division else 0.0
    return _divide((1 + beta**2) * precision * recall, beta**2 * precision + recall, zero_fscore)
