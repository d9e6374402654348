"""Coverage and selective accuracy of decisions with referrals."""

from torch import Tensor

from mpcs_torch.functional.concern.dangerous import checked_counts
from mpcs_torch.functional.inputs.arrays import ConcernLike


def coverage(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: ConcernLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of samples that are decided instead of referred; higher is better, 1 if none is referred.

    Args:
        preds: ``(N, ...)`` integer predicted classes, with -1 for samples that are referred and C, C + 1, ... for the
            coarse answers of the spec, or ``(N, C, ...)`` floating point scores, which decide every sample.
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        concern: A `ConcernSpec`; needed only if it has coarse answers.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        El-Yaniv, Wiener: On the Foundations of Noise-free Selective Classification, JMLR 11, 2010, Definition 1.

    Example:
        >>> import torch
        >>> coverage(torch.tensor([1, -1, 0, 2]), torch.tensor([1, 2, 0, 2]), num_classes=3)
        tensor(0.7500, dtype=torch.float64)
    """
    counts = checked_counts(preds, target, sample_weight, num_classes, concern, ignore_index)
    return counts.decided / counts.samples


def selective_accuracy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    concern: ConcernLike | None = None,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the accuracy of the samples that are decided, not referred; higher is better, 1 is perfect.

    Arguments and errors are those of `coverage`. A coarse answer that contains the true class is right.

    Returns:
        A float64 scalar (float32 on MPS); NaN if no sample is decided.

    References:
        El-Yaniv, Wiener: On the Foundations of Noise-free Selective Classification, JMLR 11, 2010, Definition 2: 1
        minus the selective risk.

    Example:
        >>> import torch
        >>> selective_accuracy(torch.tensor([1, -1, 1, 2]), torch.tensor([1, 2, 0, 2]), num_classes=3)
        tensor(0.6667, dtype=torch.float64)
    """
    counts = checked_counts(preds, target, sample_weight, num_classes, concern, ignore_index)
    return (counts.decided - counts.errors) / counts.decided
