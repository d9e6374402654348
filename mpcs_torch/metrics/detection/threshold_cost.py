"""ActualDetectionCost and HalfTotalErrorRate: the cost of decisions at a threshold that was set on other data."""

from collections.abc import Mapping, Sequence
from typing import Any

from mpcs_torch.functional.detection.binary_trials import ClassAverage
from mpcs_torch.functional.detection.cost import DetectionCost
from mpcs_torch.functional.detection.operating_point import OperatingPoint
from mpcs_torch.functional.detection.threshold_cost import (
    HALF_TOTAL,
    check_threshold,
    cost_of_trials_at,
    thresholds_at,
)
from mpcs_torch.metrics.detection.base import DetectionMetric
from mpcs_torch.metrics.detection.cost import CostMetric, MinDetectionCost
from mpcs_torch.metrics.detection.equal_error_rate import EqualErrorRate


class _ThresholdCost(CostMetric):
    """A metric of costs at thresholds that do not depend on its own scores."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """Check and keep the ``locals()`` of the constructor."""
        check_threshold(arguments["threshold"])
        super().__init__(arguments)
        self.thresholds_in_use = [thresholds_at(self.points, self.threshold)] * self._thresholds_per_point
        """For each class (or for the one detector), a threshold for each operating point."""

    def threshold_from(self, source: MinDetectionCost | EqualErrorRate) -> None:
        """Use the thresholds that another metric has learned from the batches it has seen so far, in all processes.

        Args:
            source: A `MinDetectionCost` with the same operating points, or an `EqualErrorRate`; with the same classes.

        Raises:
            ValueError: If the source is another kind of metric, has other classes or points, or has seen no batch.
        """
        if not isinstance(source, MinDetectionCost | EqualErrorRate):
            raise ValueError(f"source must be a MinDetectionCost or an EqualErrorRate, but got {source!r}.")
        if (self.num_classes, self.is_by_class) != (source.num_classes, source.is_by_class):
            raise ValueError(f"source must have {_classes_of(self)}, but has {_classes_of(source)}.")
        if isinstance(source, MinDetectionCost) and source.points != self.points:
            raise ValueError(
                f"source must have the operating points {list(self.points)}, but has {list(source.points)}."
            )
        learned = source.thresholds().reshape(-1, self._thresholds_per_point)
        self.thresholds_in_use = learned.expand(len(self.points), -1).T.tolist()
        self._computed = None

    def details(self) -> DetectionCost:
        """Return costs, error rates and thresholds: scalars or (P,), with a last dimension (C,) unless micro."""
        return cost_of_trials_at(self.binary_trials(), self.points, self.thresholds_in_use)

    @property
    def _thresholds_per_point(self) -> int:
        return int(self.num_classes) if self.is_by_class else 1


def _classes_of(metric: DetectionMetric) -> str:
    if metric.num_classes is None:
        return "no classes"
    return f"{metric.num_classes} classes{'' if metric.is_by_class else ' (micro)'}"


class ActualDetectionCost(_ThresholdCost):
    """Compute the detection cost of decisions at a threshold, at each operating point; lower is better.

    The threshold is the Bayes threshold of each point, for scores that are natural-log likelihood ratios; or a given
    threshold, or one learned by another metric from development data (`threshold_from`), for scores of any range.
    Equation and references are those of `mpcs_torch.functional.actual_detection_cost`; errors those of
    `MinDetectionCost`.

    Args:
        points: An `OperatingPoint`, or several.
        threshold: Scores of at least this are accepted, at all operating points. None for the Bayes threshold of each.
        num_classes: As in `MinDetectionCost`.
        normalize: As in `MinDetectionCost`.
        average: As in `MinDetectionCost`.
        ignore_index: As in `MinDetectionCost`.
        validate_args: As in `MinDetectionCost`.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from mpcs_torch import OperatingPoint
        >>> from mpcs_torch.metrics import ActualDetectionCost, MinDetectionCost
        >>> development = MinDetectionCost(OperatingPoint(0.5))
        >>> development.update(torch.tensor([0.1, 0.3, 0.4, 0.9]), torch.tensor([0, 0, 1, 1]))
        >>> evaluation = ActualDetectionCost(OperatingPoint(0.5))
        >>> evaluation.threshold_from(development)
        >>> evaluation.update(torch.tensor([0.3, 0.5, 0.2, 0.9]), torch.tensor([0, 0, 1, 1]))
        >>> evaluation.compute()
        tensor(1., dtype=torch.float64)
    """

    def __init__(
        self,
        points: OperatingPoint | Sequence[OperatingPoint],
        *,
        threshold: float | None = None,
        num_classes: int | None = None,
        normalize: bool = True,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())


class HalfTotalErrorRate(_ThresholdCost):
    """Compute the mean of the miss rate and the false-alarm rate at a threshold, in [0, 1]; lower is better.

    Errors are those of `MinDetectionCost`.

    Args:
        threshold: Scores of at least this are accepted. None for 0, the Bayes threshold of natural-log likelihood
            ratios at p_target = 0.5. `threshold_from` replaces it by the threshold of another metric.
        num_classes: As in `MinDetectionCost`.
        average: As in `MinDetectionCost`.
        ignore_index: As in `MinDetectionCost`.
        validate_args: As in `MinDetectionCost`.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import HalfTotalErrorRate
        >>> metric = HalfTotalErrorRate(0.5)
        >>> metric.update(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]))
        >>> metric.compute()
        tensor(0.2500, dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        threshold: float | None = None,
        *,
        num_classes: int | None = None,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__({**locals(), "points": HALF_TOTAL, "normalize": False})

    def _mark_label(self, point: OperatingPoint) -> str:  # noqa: ARG002  # its costs are part of the definition
        return "at the threshold"
