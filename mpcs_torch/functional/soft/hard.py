"""The usual F of soft labels and predictions that are made hard by thresholds."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.soft_labels import SoftSamples, flatten_soft
from mpcs_torch.functional.soft.sums import SoftAverage, SoftSums, check_soft_settings, score_of, soft_sums

HARD_LABEL = 0.5
"""Soft labels above it are positive where labels have to be hard."""


def hard_f1(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    ignore: Tensor | None = None,
    *,
    num_classes: int,
    threshold: float | Tensor = 0.5,
    average: SoftAverage = "micro",
    zero_division: float = 0.0,
) -> Tensor:
    """Compute the F1 of predictions above a threshold against labels above 0.5; in [0, 1], higher is better.

    It is the score of soft labels in use before `soft_f1`, and it ignores how far a prediction is from its label.
    Thresholds of `best_f_thresholds` make it optimistic on the data that they were learned on.

    Args:
        preds: ``(N,)`` for one class, or ``(N, C)`` or ``(N, C, ...)``, floating point in [0, 1].
        target: The same shape, floating point, integer or bool, in [0, 1].
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        ignore: The shape of ``preds``, bool: True for each element to leave out.
        num_classes: C; 1 for predictions of shape ``(N,)``.
        threshold: A prediction above it is positive: a number, or ``(C,)`` with one for each class.
        average: ``"micro"`` over all elements, ``"macro"`` for the mean of the classes' values, ``"weighted"`` by the
            number of positive labels, ``"none"`` for one value per class.
        zero_division: The value of 0 / 0: 0, 1 or NaN.

    Returns:
        A float64 scalar (float32 on MPS), or ``(C,)`` with ``average="none"``. It has no gradient.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Harju, Mesaros: Evaluating classification systems against soft labels with fuzzy precision and recall,
        DCASE 2023, Section 3.1 (the rows "Hard" and "Hard / OT" of Table 2).

    Example:
        >>> hard_f1(torch.tensor([0.9, 0.6, 0.1]), torch.tensor([1.0, 0.2, 0.0]), num_classes=1)
        tensor(0.6667, dtype=torch.float64)
    """
    check_soft_settings(num_classes, average, zero_division)
    check_threshold(threshold, num_classes)
    samples = flatten_soft(preds, target, num_classes=num_classes, sample_weight=sample_weight, ignore=ignore)
    raise_first(samples.find_faults())
    return score_of(hard_sums(samples, threshold), beta=1.0, average=average, zero_division=zero_division)


def hard_sums(samples: SoftSamples, threshold: float | Tensor) -> SoftSums:
    """Sum predictions and labels of 0 and 1 over the samples, without looking at a value."""
    wide = widest_float(samples.predicted.device)
    if isinstance(threshold, Tensor):
        threshold = threshold.to(samples.predicted.device, wide)
    predicted, actual = (samples.predicted > threshold) & samples.counted, samples.actual > HARD_LABEL
    return soft_sums(samples._replace(predicted=predicted.float(), actual=actual.float()), wide)


def check_threshold(threshold: float | Tensor, num_classes: int) -> None:
    """Refuse a threshold that is NaN, and a tensor that does not have one number for each class."""
    if isinstance(threshold, Tensor) and (threshold.shape != (num_classes,) or not threshold.is_floating_point()):
        raise ValueError(
            f"threshold must be a number or floating point of shape ({num_classes},), "
            f"but got {threshold.dtype} of shape {tuple(threshold.shape)}."
        )
    if torch.as_tensor(threshold).isnan().any():
        raise ValueError(f"threshold must not be NaN, but got {threshold}.")
