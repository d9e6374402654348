"""A summary of detection scores, computed with a single sort of the scores."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from mpcs_torch.functional.detection.cost import DetectionCost, min_cost_of
from mpcs_torch.functional.detection.equal_error_rate import EqualError, crossing_of
from mpcs_torch.functional.detection.errors import ErrorCounts, area_under_roc, hull_vertices, observed_errors
from mpcs_torch.functional.detection.llr_cost import min_cllr_of
from mpcs_torch.functional.detection.operating_point import OperatingPoint, as_points


class DetectionSummary(NamedTuple):
    """Measures of how well scores separate targets from non-targets, float64 scalars, and the error counts."""

    equal_error: EqualError
    """The equal error rate on the convex hull; lower is better, at most 1/2."""
    area: Tensor
    """The area under the ROC; higher is better."""
    min_costs: list[DetectionCost]
    """The minimum cost at each operating point; lower is better."""
    min_cllr: Tensor
    """The minimum `cllr` in bits, in [0, 1]; lower is better."""
    counts: ErrorCounts
    """The errors at all thresholds or, if trials are distributed, at the thresholds that the measures need."""
    hull: ErrorCounts
    """The errors at the vertices of the convex hull."""


def detection_summary(
    preds: Tensor, target: Tensor, *, points: OperatingPoint | Sequence[OperatingPoint]
) -> DetectionSummary:
    """Compute equal error rate, area under the ROC, minimum costs and minimum `cllr` from one sort of the scores.

    Args:
        preds: ``(N,)`` scores, floating point, higher for targets; of any range.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.
        points: An `OperatingPoint`, or any number: p_target in (0, 1), and costs above 0.

    Returns:
        `DetectionSummary`: float64 scalars, and int64 counts ``(K,)``.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Warns:
        ReversedScoresWarning: If the area under the ROC is below 1/2.

    Example:
        >>> import torch
        >>> from mpcs_torch.functional import OperatingPoint
        >>> scores, labels = torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1])
        >>> summary = detection_summary(scores, labels, points=[OperatingPoint(p_target=0.1)])
        >>> print(f"{summary.equal_error.rate:.3f} {summary.min_costs[0].normalized:.3f} {summary.area:.3f}")
        0.250 0.500 0.750
    """
    checked = as_points(points)
    counts = observed_errors(preds, target)
    return summary_of(counts, area_under_roc(counts), checked)


def summary_of(counts: ErrorCounts, area: Tensor, points: Sequence[OperatingPoint]) -> DetectionSummary:
    """Compute the summary from the area under the ROC and from error counts, at all thresholds or the needed ones."""
    vertices = hull_vertices(counts)
    hull = counts.at(vertices)
    return DetectionSummary(
        equal_error=crossing_of(hull.rates()),
        area=area,
        min_costs=[min_cost_of(counts, vertices, point) for point in points],
        min_cllr=min_cllr_of(hull),
        counts=counts,
        hull=hull,
    )
