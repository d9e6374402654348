"""The share of right decisions."""

from torch import Tensor

from mpcs_torch.functional.quality.class_counts import ClassCounts, class_counts
from mpcs_torch.functional.quality.confusion import weighted_confusion


def accuracy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of right decisions; in [0, 1], higher is better.

    torchmetrics and scikit-learn call it (micro) accuracy. `multiclass_quality_metrics` has oneDAL's average accuracy,
    which is another number.

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
    confusion = weighted_confusion(preds, target, sample_weight, num_classes=num_classes, ignore_index=ignore_index)
    return accuracy_of(class_counts(confusion))


def accuracy_of(counts: ClassCounts) -> Tensor:
    """Return the accuracy of counts (..., C): (...)."""
    return counts.right.sum(-1) / counts.true.sum(-1)
