"""Miss and false-alarm rates at every threshold, their convex hull, and summary measures of a detector."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Literal, NamedTuple, overload

from torch import Tensor

from mpcs_torch.functional.detection.cost import (
    DetectionCost,
    OperatingPoint,
    min_cost_from_counts,
)
from mpcs_torch.functional.detection.equal_error_rate import EqualError, error_crossing
from mpcs_torch.functional.detection.errors import (
    ErrorCounts,
    ErrorRates,
    area_under_roc,
    convex_hull,
)
from mpcs_torch.functional.detection.llr_cost import MinCllr
from mpcs_torch.functional.detection.trial_measure import (
    BinaryTrials,
    ClassAverage,
    TrialMeasure,
)

CurveAverage = Literal["micro", "none"]
Curves = ErrorRates | list[ErrorRates]


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
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int,
    average: Literal["micro"],
    ignore_index: int | None = None,
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

    There are T targets and N non-targets. At the threshold t, scores s >= t are accepted:

    .. math:: P_{miss}(t) = \frac{|\{s_i < t\}_{targets}|}{T}, \quad P_{fa}(t) = \frac{|\{s_i \ge t\}_{nontargets}|}{N}

    The thresholds are the K - 1 distinct scores, and infinity. The other arguments, errors and warnings are those of
    `equal_error_rate`, without ``method``.

    Returns:
        `ErrorRates`: three ``(K,)`` float64 tensors, and the numbers of targets and non-targets. With ``num_classes``,
        a list with one `ErrorRates` per class or, by ``average="micro"``, one for all scores of all classes together.

    References:
        Martin et al.: The DET curve in assessment of detection task performance, Eurospeech 1997.

    Example:
        >>> import torch
        >>> curve = detection_curve(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> curve.p_miss.tolist(), curve.p_fa.tolist()
        ([0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 0.0])
    """
    return DetectionCurve(num_classes, average, ignore_index)(preds, target)


@dataclass(eq=False)
class DetectionCurve(TrialMeasure[Curves]):
    """The measure of `detection_curve`."""

    average: ClassAverage = "none"

    averages = CurveAverage  # the mean of curves is not a curve of any detector
    direction = None

    def value(self, by_class: Sequence[BinaryTrials]) -> Curves:
        """Return the curve of the detector, or a list with that of each class."""
        curves = [curve_of_trials(trials) for trials in by_class]
        return curves if len(curves) > 1 else curves[0]


def curve_of_trials(trials: BinaryTrials) -> ErrorRates:
    """Return the error rates at every threshold. If there are no targets or no non-targets, the rates are NaN."""
    if trials.missing is not None:
        number = trials.scores.new_tensor(nan)
        none = trials.labels.sum() * 0
        return ErrorRates(number, number, number, none, none)
    return trials.errors().rates()


class DetectionSummary(NamedTuple):
    """Measures of how well scores separate targets from non-targets: float64 scalars, and the error counts."""

    equal_error: EqualError
    """The equal error rate, interpolated on the convex hull; lower is better, at most 1/2."""
    area: Tensor
    """The area under the ROC curve; higher is better."""
    min_costs: list[DetectionCost]
    """The minimum cost at each operating point; lower is better."""
    min_cllr: Tensor
    """The minimum `cllr` in bits, in [0, 1]; lower is better."""
    counts: ErrorCounts
    """The errors at each threshold."""
    hull: ErrorCounts
    """The errors at the vertices of the convex hull."""


def summary_from_counts(
    counts: ErrorCounts, points: Sequence[OperatingPoint]
) -> DetectionSummary:
    """Compute the summary from error ``counts`` and operating ``points``."""
    hull = convex_hull(counts)
    return DetectionSummary(
        equal_error=error_crossing(hull.rates()),
        area=area_under_roc(counts),
        min_costs=[min_cost_from_counts(counts, point) for point in points],
        min_cllr=MinCllr().from_counts(hull),
        counts=counts,
        hull=hull,
    )
