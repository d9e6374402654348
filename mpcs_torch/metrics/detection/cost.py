"""MinDetectionCost, ActualDetectionCost and HalfTotalErrorRate: the costs of a detector's errors."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from torch import Tensor

from mpcs_torch.functional.detection import cost as kernel
from mpcs_torch.functional.detection.cost import OperatingPoint, at_least_one_point
from mpcs_torch.functional.detection.errors import ClassAverage, ErrorRates
from mpcs_torch.metrics.detection.base import DetectionMetric, Rates
from mpcs_torch.metrics.detection.equal_error_rate import EqualErrorRate


class CostMetric(DetectionMetric):
    """The base of detection costs at one or several operating points."""

    points: tuple[OperatingPoint, ...]
    __jit_ignored_attributes__: ClassVar[list[str]] = [*DetectionMetric.__jit_ignored_attributes__, "points"]

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """Initialize from the ``locals()`` of a constructor, and store ``points`` as a tuple."""
        super().__init__({**arguments, "points": at_least_one_point(arguments["points"])})

    def compute(self) -> Tensor:
        """Return the costs for P points, float64: (P,) or, with ``average="none"``, (P, C); no axis P if P is 1."""
        details = self.details()
        return self.averaged(details.normalized if self.normalize else details.cost)

    @abstractmethod
    def details(self) -> kernel.DetectionCost:
        """Return costs, error rates and thresholds for P points: (P,) or, by class, (P, C); no axis P if P is 1."""

    def _marks(self, curves: dict[int, ErrorRates]) -> dict[str, list[Rates]]:
        details = self.details()
        p_fa, p_miss = (rates.reshape(len(self.points), -1).tolist() for rates in (details.p_fa, details.p_miss))
        return {
            self._mark_label(point): [(p_fa[place][label], p_miss[place][label]) for label in curves]
            for place, point in enumerate(self.points)
        }

    def _mark_label(self, point: OperatingPoint) -> str:
        return f"at the threshold, {point.label()}"

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw as `SumMetric.plot` does; with ``val``, draw one line for each operating point and class."""
        if val is not None:
            val = [_flat(costs) for costs in val] if isinstance(val, list | tuple) else _flat(val)
        return super().plot(val, ax)


def _flat(values: Tensor) -> Tensor:
    return values.flatten() if values.ndim > 1 else values


class MinDetectionCost(CostMetric):
    """Compute the minimum detection cost over all thresholds, for each operating point; lower is better.

    The threshold is the middle of an interval of optimal thresholds. Of several such intervals, the widest bounded
    interval is used (the lowest of equally wide intervals). If no bounded interval is optimal, the threshold is -inf if
    accepting all trials is optimal, otherwise +inf. If all thresholds cost the same, the threshold is 0. The threshold
    +inf rejects all trials, even those with a score of +inf.

    For the equation see `mpcs_torch.functional.min_detection_cost`. All scores are kept: 5 bytes for each float32
    score, 9 for each float64 score. The other arguments and the errors are those of `EqualErrorRate`, without
    ``method``.

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
        super().__init__(locals())

    def details(self) -> kernel.DetectionCost:
        """Return costs, error rates and thresholds for P points: (P,) or, by class, (P, C); no axis P if P is 1."""
        return kernel.min_cost_of_trials(self.binary_trials(), self.points)

    def _mark_label(self, point: OperatingPoint) -> str:
        return f"minimum cost, {point.label()}"

    def thresholds(self) -> Tensor:
        """Return the thresholds with the minimum costs, in the shapes of `details`."""
        return self.details().threshold


class _ThresholdCost(CostMetric):
    """The base of costs at thresholds that do not depend on the evaluated scores."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        kernel.check_threshold(arguments["threshold"])
        super().__init__(arguments)
        self.thresholds_in_use = [kernel.thresholds_at(self.points, self.threshold)] * self._thresholds_per_point()
        """The thresholds: one list for each class (a single list without classes), with one threshold per point."""

    def threshold_from(self, source: MinDetectionCost | EqualErrorRate) -> None:
        """Use the thresholds that ``source`` chooses on its batches so far; the batches of all processes count.

        Args:
            source: An `EqualErrorRate`, or a `MinDetectionCost` with the points of this metric. ``num_classes`` must be
                the same, and both metrics or none must evaluate by class.

        Raises:
            ValueError: If ``source`` is another kind of metric, has other classes or points, or has seen no targets or
                no non-targets.
        """
        if not isinstance(source, MinDetectionCost | EqualErrorRate):
            raise ValueError(f"source must be a MinDetectionCost or an EqualErrorRate, but got {source!r}.")
        if (self.num_classes, self.is_by_class) != (source.num_classes, source.is_by_class):
            raise ValueError(f"source must have {_class_pair(self)}, but has {_class_pair(source)}.")
        if isinstance(source, MinDetectionCost) and source.points != self.points:
            raise ValueError(
                f"source must have the operating points {list(self.points)}, but has {list(source.points)}."
            )
        learned = source.thresholds().reshape(-1, self._thresholds_per_point())
        if learned.isnan().any():
            raise ValueError("source must have seen targets and non-targets, but has no threshold.")
        self.thresholds_in_use = learned.expand(len(self.points), -1).T.tolist()
        self._computed = None

    def details(self) -> kernel.DetectionCost:
        """Return costs, error rates and thresholds for P points: (P,) or, by class, (P, C); no axis P if P is 1."""
        return kernel.cost_of_trials_at(self.binary_trials(), self.points, self.thresholds_in_use)

    def _thresholds_per_point(self) -> int:
        return int(self.num_classes) if self.is_by_class else 1


def _class_pair(metric: DetectionMetric) -> str:
    if metric.num_classes is None:
        return "no classes"
    return f"{metric.num_classes} classes{'' if metric.is_by_class else ' (micro)'}"


class ActualDetectionCost(_ThresholdCost):
    """Compute the detection cost at a given threshold, for each operating point; lower is better.

    By default, the threshold is the Bayes threshold of each point, for scores that are natural-log likelihood ratios.
    For scores of any range, pass a ``threshold``, or use the one that another metric chose on development data
    (`threshold_from`). Arguments are those of `mpcs_torch.functional.actual_detection_cost`; for ``validate_args`` and
    errors see `EqualErrorRate`.

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

    The other arguments and the errors are those of `MinDetectionCost`, without ``points`` and ``normalize``.

    Args:
        threshold: Scores of at least this value are accepted. None stands for 0, the Bayes threshold of natural-log
            likelihood ratios at p_target = 0.5. `threshold_from` replaces the threshold by that of another metric.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import HalfTotalErrorRate
        >>> HalfTotalErrorRate(0.5)(torch.tensor([0.1, 0.4, 0.9]), torch.tensor([0, 1, 1]))
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
        super().__init__({**locals(), "points": kernel.HALF_TOTAL, "normalize": False})

    def _mark_label(self, point: OperatingPoint) -> str:  # noqa: ARG002  # its costs are part of the definition
        return "at the threshold"
