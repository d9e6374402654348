"""Costs of decisions at a threshold that is not fitted to the scores themselves."""

from torch import Tensor

from mpcs_torch.functional.detection.cost import DetectionCost, cost_at, detection_cost
from mpcs_torch.functional.detection.curve import observed_errors
from mpcs_torch.functional.detection.operating_point import OperatingPoint, check_point


def actual_detection_cost(
    preds: Tensor, target: Tensor, *, p_target: float, c_miss: float = 1.0, c_fa: float = 1.0
) -> DetectionCost:
    """The detection cost of log-likelihood ratios at the Bayes threshold: what calibration makes of a detector.

    ``preds`` are natural-log likelihood ratios. Arguments and errors are those of `detection_cost`.

    Example:
        >>> actual_detection_cost(torch.tensor([-2.0, 1.0, 3.0]), torch.tensor([0, 1, 1]), p_target=0.1).cost
        tensor(0.0500, dtype=torch.float64)
    """
    point = check_point(OperatingPoint(p_target, c_miss, c_fa))
    return cost_at(observed_errors(preds, target), point, point.bayes_threshold)


def half_total_error_rate(preds: Tensor, target: Tensor, *, threshold: float) -> Tensor:
    """Mean of the miss and the false-alarm rate at a threshold, usually of a development set; lower is better.

    Example:
        >>> half_total_error_rate(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]), threshold=0.5)
        tensor(0.2500, dtype=torch.float64)
    """
    return detection_cost(preds, target, threshold=threshold, p_target=0.5).cost
