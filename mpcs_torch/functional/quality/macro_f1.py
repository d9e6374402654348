"""The mean F1 of the classes."""

import torch
from torch import Tensor

from mpcs_torch.functional.quality.class_counts import ClassCounts, class_counts
from mpcs_torch.functional.quality.confusion import weighted_confusion


def macro_f1(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean F1 of the classes that occur, as true or as predicted; in [0, 1], higher is better.

    .. math:: \frac{1}{|K|} \sum_{c \in K} \frac{2 tp_c}{2 tp_c + fp_c + fn_c}

    The same as torchmetrics' and scikit-learn's macro F1. `multiclass_quality_metrics` has oneDAL's macro F, the F of
    macro precision and macro recall, which is another number.

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
        >>> macro_f1(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7778, dtype=torch.float64)
    """
    confusion = weighted_confusion(preds, target, sample_weight, num_classes=num_classes, ignore_index=ignore_index)
    return macro_f1_of(class_counts(confusion))


def macro_f1_of(counts: ClassCounts) -> Tensor:
    """Return the macro F1 of counts (..., C): (...)."""
    occurrences = counts.true + counts.predicted
    occurs = occurrences > 0
    per_class = 2 * counts.right / torch.where(occurs, occurrences, 1)
    return per_class.sum(-1) / occurs.sum(-1)
