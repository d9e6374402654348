"""Miss and false-alarm rates at every threshold, and their convex hull."""

from typing import Literal, overload

from torch import Tensor

from mpcs_torch.functional.detection.binary_trials import BinaryTrials, split_batch
from mpcs_torch.functional.detection.errors import ErrorRates, hull_of, observed_errors

CurveAverage = Literal["micro", "none"]


@overload
def detection_curve(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: None = None,
    average: CurveAverage = "none",
    ignore_index: int | None = None,
) -> ErrorRates: ...
@overload
def detection_curve(
    preds: Tensor, target: Tensor, *, num_classes: int, average: Literal["micro"], ignore_index: int | None = None
) -> ErrorRates: ...
@overload
def detection_curve(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    average: Literal["none"] = "none",
    ignore_index: int | None = None,
) -> list[ErrorRates]: ...


def detection_curve(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    average: CurveAverage = "none",
    ignore_index: int | None = None,
) -> ErrorRates | list[ErrorRates]:
    r"""Compute the miss and false-alarm rates at every threshold, in [0, 1]; lower is better.

    .. math:: P_{miss}(t) = \frac{|\{s_i < t\}_{targets}|}{T}, \quad P_{fa}(t) = \frac{|\{s_i \ge t\}_{nontargets}|}{N}

    The thresholds are the distinct scores and infinity, so tied scores are accepted together. A score of +inf is
    accepted at every threshold but the last.

    There is no ``sample_weight``: trials are counted in whole numbers, so that ties and crossings are exact.

    Args:
        preds: ``(N, ...)`` scores, floating point, higher for targets; of any range, infinities included. With classes
            ``(N, C, ...)``.
        target: ``(N, ...)`` integers or bools: 1 for targets, 0 for non-targets; with classes, class indices. Both
            targets and non-targets must occur, with classes for each class.
        num_classes: None, or C to evaluate each class against the rest.
        average: With classes: ``"none"`` for a list of C curves, ``"micro"`` for one curve of all N x C scores.
        ignore_index: Label of trials to ignore.

    Returns:
        `ErrorRates`: three ``(K,)`` float64 tensors and the numbers of targets and non-targets; or a list of C.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Warns:
        ReversedScoresWarning: If an area under the ROC is below 1/2.

    References:
        Martin et al.: The DET curve in assessment of detection task performance, Eurospeech 1997.

    Example:
        >>> import torch
        >>> curve = detection_curve(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> curve.p_miss.tolist(), curve.p_fa.tolist()
        ([0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 0.0])
    """
    check_curve_average(average)
    found = split_batch(preds, target, num_classes=num_classes, average=average, ignore_index=ignore_index)
    curves = [curve_of_trials(trials) for trials in found]
    return curves if num_classes is not None and average == "none" else curves[0]


def roc_convex_hull(preds: Tensor, target: Tensor) -> ErrorRates:
    """Compute the vertices of the lower convex hull of the detection curve (the upper one of the ROC).

    A detector that chooses between two thresholds at random reaches any point between two vertices.

    Args:
        preds: ``(N,)`` scores, floating point, higher for targets; of any range.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.

    Returns:
        `ErrorRates` of the vertices, by ascending threshold.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    References:
        Provost, Fawcett: Robust classification for imprecise environments, Machine Learning 42, 2001.

    Example:
        >>> import torch
        >>> hull = roc_convex_hull(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> hull.p_miss.tolist(), hull.p_fa.tolist()
        ([0.0, 0.0, 1.0], [1.0, 0.0, 0.0])
    """
    return hull_of(observed_errors(preds, target)).rates()


def check_curve_average(average: str) -> None:
    """Refuse an average that curves do not have: the mean of curves is not a curve of any detector."""
    if average not in ("micro", "none"):
        raise ValueError(f"average must be 'micro' or 'none', but got {average!r}.")


def curve_of_trials(trials: BinaryTrials) -> ErrorRates:
    """Return the error rates of binary trials, or NaN and numbers of 0 if targets or non-targets are missing."""
    if trials.missing is not None:
        none = trials.labels.sum() * 0
        return ErrorRates(trials.nan, trials.nan, trials.nan, none, none)
    return trials.errors().rates()
