"""Detection costs at a threshold that was not fitted to the same scores."""

from collections.abc import Sequence

from torch import Tensor

from mpcs_torch.functional.detection.binary_trials import BinaryTrials, ClassAverage, average_classes, split_batch
from mpcs_torch.functional.detection.cost import DetectionCost, cost_at, no_costs, stack_costs
from mpcs_torch.functional.detection.operating_point import OperatingPoint, at_least_one_point

HALF_TOTAL = OperatingPoint(0.5)
"""The operating point at which the detection cost is the half total error rate."""


def actual_detection_cost(
    preds: Tensor,
    target: Tensor,
    *,
    points: OperatingPoint | Sequence[OperatingPoint],
    threshold: float | None = None,
    num_classes: int | None = None,
    normalize: bool = True,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the detection cost at a given threshold, or at the Bayes threshold of each point; lower is better.

    Without a threshold, ``preds`` are natural-log likelihood ratios, and the cost beyond that of `min_detection_cost`
    is due to calibration. With one, such as the threshold of a development set, scores may be of any range. The
    equation, the other arguments, the result and the errors are those of `min_detection_cost`.

    Args:
        preds: Scores, as in `min_detection_cost`.
        target: Labels, as in `min_detection_cost`.
        points: An `OperatingPoint`, or several.
        threshold: Scores of at least this are accepted, at all operating points; not NaN. None for the Bayes threshold
            of each point.
        num_classes: As in `min_detection_cost`.
        normalize: As in `min_detection_cost`.
        average: As in `min_detection_cost`.
        ignore_index: As in `min_detection_cost`.

    Example:
        >>> import torch
        >>> scores, labels = torch.tensor([-2.0, 1.0, 3.0]), torch.tensor([0, 1, 1])
        >>> actual_detection_cost(scores, labels, points=OperatingPoint(p_target=0.1))
        tensor(0.5000, dtype=torch.float64)
        >>> actual_detection_cost(scores, labels, points=OperatingPoint(p_target=0.1), threshold=0.0)
        tensor(0., dtype=torch.float64)
    """
    details = actual_detection_cost_details(
        preds,
        target,
        points=points,
        threshold=threshold,
        num_classes=num_classes,
        average=average,
        ignore_index=ignore_index,
    )
    costs = details.normalized if normalize else details.cost
    return average_classes(costs, num_classes=num_classes, average=average)


def actual_detection_cost_details(
    preds: Tensor,
    target: Tensor,
    *,
    points: OperatingPoint | Sequence[OperatingPoint],
    threshold: float | None = None,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> DetectionCost:
    """Compute the detection cost at a threshold, raw and normalised, with its error rates and its threshold.

    Arguments and errors are those of `actual_detection_cost`, shapes those of `min_detection_cost_details`.

    Example:
        >>> import torch
        >>> scores, labels = torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1])
        >>> details = actual_detection_cost_details(scores, labels, points=OperatingPoint(0.5), threshold=0.5)
        >>> details.cost, details.p_miss
        (tensor(0.2500, dtype=torch.float64), tensor(0.5000, dtype=torch.float64))
    """
    checked = at_least_one_point(points)
    check_threshold(threshold)
    found = split_batch(preds, target, num_classes=num_classes, average=average, ignore_index=ignore_index)
    return cost_of_trials_at(found, checked, [thresholds_at(checked, threshold)] * len(found))


def half_total_error_rate(
    preds: Tensor,
    target: Tensor,
    *,
    threshold: float | None = None,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the mean of the miss rate and the false-alarm rate at a threshold, in [0, 1]; lower is better.

    It is the raw cost of `actual_detection_cost` at p_target = 0.5, whose Bayes threshold is 0. Arguments, result and
    errors are those of `actual_detection_cost`.

    Example:
        >>> import torch
        >>> half_total_error_rate(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]), threshold=0.5)
        tensor(0.2500, dtype=torch.float64)
    """
    return actual_detection_cost(
        preds,
        target,
        points=HALF_TOTAL,
        threshold=threshold,
        num_classes=num_classes,
        normalize=False,
        average=average,
        ignore_index=ignore_index,
    )


def half_total_error_rate_details(
    preds: Tensor,
    target: Tensor,
    *,
    threshold: float | None = None,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> DetectionCost:
    """Compute the half total error rate (``cost``) with both error rates and the threshold.

    Arguments and errors are those of `half_total_error_rate`, shapes those of `min_detection_cost_details`.

    Example:
        >>> import torch
        >>> half_total_error_rate_details(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]), threshold=0.5).p_fa
        tensor(0., dtype=torch.float64)
    """
    return actual_detection_cost_details(
        preds,
        target,
        points=HALF_TOTAL,
        threshold=threshold,
        num_classes=num_classes,
        average=average,
        ignore_index=ignore_index,
    )


def cost_of_trials_at(
    found: Sequence[BinaryTrials], points: Sequence[OperatingPoint], thresholds: Sequence[Sequence[float]]
) -> DetectionCost:
    """Compute the costs of binary trials, stacked, at thresholds by trials and point; NaN if a kind is missing."""

    def costs(trials: BinaryTrials, of_points: Sequence[float]) -> list[DetectionCost]:
        if trials.missing is not None:
            return no_costs(trials, len(points))
        counts = trials.errors()
        return [cost_at(counts, point, threshold) for point, threshold in zip(points, of_points, strict=True)]

    return stack_costs([costs(trials, row) for trials, row in zip(found, thresholds, strict=True)])


def thresholds_at(points: Sequence[OperatingPoint], threshold: float | None) -> list[float]:
    """Return a threshold for each point: the given one, or the Bayes threshold of the point."""
    return [point.bayes_threshold if threshold is None else float(threshold) for point in points]


def check_threshold(threshold: float | None) -> None:
    """Refuse a threshold that is neither a number nor None."""
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool) and threshold == threshold
    if threshold is not None and not is_number:
        raise ValueError(f"threshold must be a number or None, but got {threshold!r}.")
