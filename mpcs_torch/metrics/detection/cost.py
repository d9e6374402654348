"""MinDetectionCost: what errors cost where a detector is used, at the best threshold."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.detection.convex_hull import hull_vertices
from mpcs_torch.functional.detection.cost import DetectionCost, min_cost_of
from mpcs_torch.functional.detection.curve import ErrorCounts
from mpcs_torch.functional.detection.operating_point import OperatingPoint, as_points
from mpcs_torch.metrics.detection.base import ClassAverage, Problem, ScoreMetric


class CostMetric(ScoreMetric):
    """Costs at one operating point, or at several."""

    points: tuple[OperatingPoint, ...]

    def __init__(
        self,
        points: OperatingPoint | Sequence[OperatingPoint],
        *,
        num_classes: int | None = None,
        normalize: bool = True,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(num_classes, average=average, ignore_index=ignore_index, validate_args=validate_args, **kwargs)
        self.points = as_points(points)
        if not self.points:
            raise ValueError(f"points must be an OperatingPoint or some of them, but got {points!r}.")
        self.normalize = normalize

    def compute(self) -> Tensor:
        """Costs, float64: a scalar, (P,) for P > 1 points, by class in one more dimension if not averaged."""
        details = self.details()
        return self.averaged(details.normalized if self.normalize else details.cost)

    @abstractmethod
    def details(self) -> DetectionCost:
        """Costs, error rates and thresholds: scalars or (P,), by class in one more dimension unless pooled."""

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot `val` (default: the value so far) on `ax` (default: a new figure), flattening tables."""
        values = self.compute() if val is None else val
        return super().plot([_flat(v) for v in values] if isinstance(values, list | tuple) else _flat(values), ax)

    def costs_by(self, costs: Callable[[Problem, ErrorCounts], list[DetectionCost]]) -> DetectionCost:
        """The details, from the costs of a problem at each operating point."""

        def value(problem: Problem) -> Tensor:
            found = costs(problem, self.errors_of(problem))
            return torch.stack([torch.stack(cost) for cost in found], dim=1)

        shape = len(DetectionCost._fields), len(self.points)
        fields = self.stacked(self.each_problem(value, lambda nan: nan.expand(shape)))
        return DetectionCost(*(fields if len(self.points) > 1 else fields.squeeze(1)))


def _flat(values: Tensor) -> Tensor:
    return values.flatten() if values.ndim > 1 else values


class MinDetectionCost(CostMetric):
    """The least detection cost that a threshold can have, at each operating point; lower is better.

    The equation is that of `mpcs_torch.functional.detection_cost`, the choice of the threshold that of
    `mpcs_torch.functional.min_detection_cost`. `compute` gives normalised costs, `details` both kinds. All scores are
    kept: 5 bytes for one of float32, 9 for one of float64.

    Args:
        points: An `OperatingPoint`, or several.
        num_classes: None for scores ``(N, ...)`` and targets of 0 and 1, or C for scores ``(N, C, ...)`` and class
            indices ``(N, ...)``: each class against the rest.
        normalize: Whether costs are shares of what always accepting or always rejecting costs, whichever is less.
        average: With classes: ``"macro"`` for the mean of their costs, ``"pooled"`` for one problem of all N x C
            scores, ``"none"`` for the cost of each.
        ignore_index: Label of trials to leave out.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong value silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule; from `compute` if no batch
            was seen, or no target, or no nontarget. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch import OperatingPoint
        >>> from mpcs_torch.metrics import MinDetectionCost
        >>> metric = MinDetectionCost([OperatingPoint(0.5), OperatingPoint(0.01, c_miss=10)])
        >>> metric.update(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1]))
        >>> metric.compute()
        tensor([0.5000, 0.5000], dtype=torch.float64)
        >>> metric.thresholds()
        tensor([0.6500, 0.6500], dtype=torch.float64)
    """

    def details(self) -> DetectionCost:
        """Costs, error rates and thresholds: scalars or (P,), and by class in one more dimension unless pooled."""

        def costs(_: Problem, counts: ErrorCounts) -> list[DetectionCost]:
            vertices = hull_vertices(counts)
            return [min_cost_of(counts, vertices, point) for point in self.points]

        return self.costs_by(costs)

    def thresholds(self) -> Tensor:
        """Those of the least costs, which another metric takes by ``threshold_from``."""
        return self.details().threshold
