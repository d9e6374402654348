"""The error rate of each class."""

from torch import Tensor

from mpcs_torch.functional.quality.class_counts import ClassCounts, class_counts
from mpcs_torch.functional.quality.confusion import confusion_of


def class_error_rates(
    preds: Tensor,
    target: Tensor | None = None,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of each class's samples that are misclassified; in [0, 1], lower is better.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties go to the lower class index); or, without ``target``, a ``(C, C)`` confusion
            matrix of counts or weights, rows true classes.
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        ignore_index: Label of samples to leave out.

    Returns:
        Float64 ``(C,)`` (float32 on MPS); NaN for a class without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Example:
        >>> import torch
        >>> class_error_rates(torch.tensor([[3, 1], [0, 2]]), num_classes=2)
        tensor([0.2500, 0.0000], dtype=torch.float64)
    """
    confusion = confusion_of(preds, target, sample_weight, num_classes=num_classes, ignore_index=ignore_index)
    return class_error_rates_of(class_counts(confusion))


def class_error_rates_of(counts: ClassCounts) -> Tensor:
    """Return the error rates of counts (..., C): (..., C)."""
    return 1 - counts.right / counts.true
