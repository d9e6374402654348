"""ActualDetectionCost and HalfTotalErrorRate: what decisions at a threshold cost that other data have set."""

from collections.abc import Sequence
from typing import Any

from mpcs_torch.functional.detection.cost import DetectionCost, check_threshold, cost_at
from mpcs_torch.functional.detection.curve import ErrorCounts
from mpcs_torch.functional.detection.operating_point import OperatingPoint
from mpcs_torch.metrics.detection.base import Problem
from mpcs_torch.metrics.detection.cost import CostMetric, MinDetectionCost
from mpcs_torch.metrics.detection.equal_error_rate import EqualErrorRate


class _ThresholdCost(CostMetric):
    """Costs at thresholds that come from elsewhere."""

    def __init__(
        self, points: OperatingPoint | Sequence[OperatingPoint], *, threshold: float | None, **kwargs: Any
    ) -> None:
        super().__init__(points, **kwargs)
        self.by_problem: list[list[float]] | None = None
        """A threshold for each operating point, problem by problem."""
        if threshold is not None:
            check_threshold(threshold)
            self.by_problem = [[float(threshold)] * len(self.points)] * self.problem_count

    def threshold_from(self, source: MinDetectionCost | EqualErrorRate) -> None:
        """Take the thresholds that another metric has learnt from what it has seen so far, in all processes.

        Args:
            source: A `MinDetectionCost` with the same operating points, or an `EqualErrorRate`; with the same classes.

        Raises:
            ValueError: If it is another metric, or one of other classes or points, or has nothing to learn from.
        """
        if not isinstance(source, MinDetectionCost | EqualErrorRate):
            raise ValueError(f"source must be a MinDetectionCost or an EqualErrorRate, but got {source!r}.")
        ours, theirs = ((metric.num_classes, metric.is_by_class) for metric in (self, source))
        if ours != theirs:
            kinds = [
                f"{n} classes{'' if by_class else ' pooled'}" if n else "no classes" for n, by_class in (ours, theirs)
            ]
            raise ValueError(f"source must have {kinds[0]}, but has {kinds[1]}.")
        if isinstance(source, MinDetectionCost) and source.points != self.points:
            raise ValueError(
                f"source must have the operating points {list(self.points)}, but has {list(source.points)}."
            )
        thresholds = source.thresholds().reshape(-1, self.problem_count)
        self.by_problem = thresholds.expand(len(self.points), -1).T.tolist()
        self._computed = None

    def details(self) -> DetectionCost:
        """Costs, error rates and thresholds: scalars or (P,), and by class in one more dimension unless pooled."""
        thresholds = self.by_problem
        if thresholds is None:
            raise ValueError(f"{type(self).__name__} needs a threshold: give one, or call threshold_from first.")

        def costs(problem: Problem, counts: ErrorCounts) -> list[DetectionCost]:
            at = zip(self.points, thresholds[problem.place], strict=True)
            return [cost_at(counts, point, threshold) for point, threshold in at]

        return self.costs_by(costs)


class ActualDetectionCost(_ThresholdCost):
    """The detection cost of decisions at a threshold, at each operating point; lower is better.

    The threshold is the Bayes threshold of each point, for scores that are natural-log likelihood ratios; or one that
    is given, or that another metric has learnt from development data (`threshold_from`), for scores of any range.
    Equation and references are those of `mpcs_torch.functional.actual_detection_cost`; errors those of
    `MinDetectionCost`.

    Args:
        points: An `OperatingPoint`, or several.
        threshold: None, or what scores must reach to be accepted, whatever the operating point.
        **kwargs: Further arguments of `MinDetectionCost`.

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
        self, points: OperatingPoint | Sequence[OperatingPoint], *, threshold: float | None = None, **kwargs: Any
    ) -> None:
        super().__init__(points, threshold=threshold, **kwargs)
        if self.by_problem is None:
            self.by_problem = [[point.bayes_threshold for point in self.points]] * self.problem_count


class HalfTotalErrorRate(_ThresholdCost):
    """Mean of the miss and the false-alarm rate at a threshold, in [0, 1]; lower is better.

    Errors are those of `MinDetectionCost`.

    Args:
        threshold: What scores must reach to be accepted; None to take it `threshold_from` another metric.
        **kwargs: Arguments of `MinDetectionCost` but for its points (here p = 0.5) and ``normalize``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import HalfTotalErrorRate
        >>> metric = HalfTotalErrorRate(0.5)
        >>> metric.update(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]))
        >>> metric.compute()
        tensor(0.2500, dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def __init__(self, threshold: float | None = None, **kwargs: Any) -> None:
        super().__init__(OperatingPoint(0.5), threshold=threshold, normalize=False, **kwargs)
