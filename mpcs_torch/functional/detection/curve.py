"""Miss and false-alarm rates at every threshold, and their convex hull."""

from typing import Literal, overload

from torch import Tensor

from mpcs_torch.functional.detection.binary_trials import BinaryTrials, split_batch
from mpcs_torch.functional.detection.errors import ErrorRates, hull_of, observed_errors
from mpcs_torch.functional.inputs.checks import check_choice

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

    The thresholds are the distinct scores and infinity, so tied scores are accepted together.

    With classes, the average is ``"none"`` for a list of C curves, or ``"micro"`` for one curve of all N x C scores.
    The other arguments, errors and warnings are those of `equal_error_rate`, without its method.

    Returns:
        `ErrorRates`, three ``(K,)`` float64 tensors and the numbers of targets and non-targets, or C of them in a list.

    References:
        Martin et al.: The DET curve in assessment of detection task performance, Eurospeech 1997.

    Example:
        >>> import torch
        >>> curve = detection_curve(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> curve.p_miss.tolist(), curve.p_fa.tolist()
        ([0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 0.0])
    """
    check_choice("average", average, CurveAverage)  # the mean of curves is not a curve of any detector
    by_class = split_batch(preds, target, num_classes, average, ignore_index)
    curves = [curve_of_trials(trials) for trials in by_class]
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


def curve_of_trials(trials: BinaryTrials) -> ErrorRates:
    """Return the error rates of trials; without targets or non-targets, rates are NaN and both numbers are 0."""
    if trials.missing is not None:
        none = trials.labels.sum() * 0
        return ErrorRates(trials.nan, trials.nan, trials.nan, none, none)
    return trials.errors().rates()
