"""ActualDetectionCost and HalfTotalErrorRate: what decisions at a threshold cost that other data have set."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.detection_cost import DetectionCost, OperatingPoint, check_threshold, cost_at
from mpcs_torch.functional.detection_curve import ErrorCounts
from mpcs_torch.metrics.detection_cost import CostMetric, MinDetectionCost
from mpcs_torch.metrics.detection_scores import Problem
from mpcs_torch.metrics.equal_error_rate import EqualErrorRate

ThresholdSource = MinDetectionCost | EqualErrorRate


class _ThresholdCost(CostMetric):
    """Costs at a threshold that is given, or learnt by another metric."""

    def __init__(
        self,
        points: OperatingPoint | Sequence[OperatingPoint],
        *,
        threshold: float | None,
        threshold_from: ThresholdSource | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(points, **kwargs)
        if threshold is not None:
            check_threshold(threshold)
            if threshold_from is not None:
                raise ValueError("threshold and threshold_from must not be given both.")
        self.threshold = threshold
        self._sources = () if threshold_from is None else (threshold_from,)  # in a tuple it is no module of ours
        if threshold_from is not None:
            self._check_source(threshold_from)
            self.compute_with_cache = False  # the other metric may have changed since

    def details(self) -> DetectionCost:
        """Costs, error rates and thresholds: scalars or (P,), and by class in one more dimension unless pooled."""
        by_problem = self._thresholds().expand(len(self.points), self._problem_count).T.tolist()

        def costs(problem: Problem, counts: ErrorCounts) -> list[DetectionCost]:
            thresholds = by_problem[problem.place]
            return [cost_at(counts, point, t) for point, t in zip(self.points, thresholds, strict=True)]

        return self.costs_by(costs)

    @property
    def _problem_count(self) -> int:
        return self.num_classes or 1 if self.is_by_class else 1

    def _thresholds(self) -> Tensor:
        """(P or 1, problems or 1)."""
        for source in self._sources:
            return source.thresholds().reshape(-1, self._problem_count)
        if self.threshold is not None:
            return torch.tensor([[self.threshold]], dtype=torch.float64)
        return torch.tensor([[point.bayes_threshold] for point in self.points], dtype=torch.float64)

    def _check_source(self, source: ThresholdSource) -> None:
        if not isinstance(source, ThresholdSource):
            raise ValueError(f"threshold_from must be a MinDetectionCost or an EqualErrorRate, but got {source!r}.")
        if (source.num_classes, source.is_by_class) != (self.num_classes, self.is_by_class):
            kind = "one class against the rest" if self.is_by_class else "a single detection problem"
            raise ValueError(f"threshold_from must see {self.num_classes} classes as {kind}, but does not.")


class ActualDetectionCost(_ThresholdCost):
    """The detection cost of decisions at a threshold, at each operating point; lower is better.

    The threshold is the Bayes threshold of each point, for scores that are natural-log likelihood ratios; or one that
    is given, or that another metric has learnt from development data, for scores of any range. Equation and references
    are those of `mpcs_torch.functional.actual_detection_cost`; errors those of `MinDetectionCost`.

    Args:
        points: An `OperatingPoint`, or several.
        threshold: None, or what scores must reach to be accepted, whatever the operating point.
        threshold_from: A `MinDetectionCost` with the same points, or an `EqualErrorRate`, with the same classes; read
            when this metric computes.
        **kwargs: Further arguments of `MinDetectionCost`.

    Example:
        >>> import torch
        >>> from mpcs_torch import OperatingPoint
        >>> from mpcs_torch.metrics import ActualDetectionCost, MinDetectionCost
        >>> development = MinDetectionCost(OperatingPoint(0.5))
        >>> evaluation = ActualDetectionCost(OperatingPoint(0.5), threshold_from=development)
        >>> development.update(torch.tensor([0.1, 0.3, 0.4, 0.9]), torch.tensor([0, 0, 1, 1]))
        >>> evaluation.update(torch.tensor([0.3, 0.5, 0.2, 0.9]), torch.tensor([0, 0, 1, 1]))
        >>> evaluation.compute()
        tensor(1., dtype=torch.float64)
    """

    def __init__(
        self,
        points: OperatingPoint | Sequence[OperatingPoint],
        *,
        threshold: float | None = None,
        threshold_from: ThresholdSource | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(points, threshold=threshold, threshold_from=threshold_from, **kwargs)
        if isinstance(threshold_from, MinDetectionCost) and threshold_from.points != self.points:
            rule = f"threshold_from must have the operating points {list(self.points)}"
            raise ValueError(f"{rule}, but has {list(threshold_from.points)}.")


class HalfTotalErrorRate(_ThresholdCost):
    """Mean of the miss and the false-alarm rate at a threshold, in [0, 1]; lower is better.

    Errors are those of `MinDetectionCost`.

    Args:
        threshold: What scores must reach to be accepted.
        threshold_from: In its place a `MinDetectionCost` with one point, or an `EqualErrorRate`, with the same classes,
            that learns it from development data; read when this metric computes.
        **kwargs: Arguments of `MinDetectionCost` but for its points and ``normalize``.

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
        self, threshold: float | None = None, *, threshold_from: ThresholdSource | None = None, **kwargs: Any
    ) -> None:
        if threshold is None and threshold_from is None:
            raise ValueError("threshold or threshold_from must be given.")
        super().__init__(
            OperatingPoint(0.5), threshold=threshold, threshold_from=threshold_from, normalize=False, **kwargs
        )
        if isinstance(threshold_from, MinDetectionCost) and len(threshold_from.points) != 1:
            raise ValueError(f"threshold_from must have one operating point, but has {len(threshold_from.points)}.")
