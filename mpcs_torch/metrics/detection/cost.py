"""MinDetectionCost, ActualDetectionCost and HalfTotalErrorRate: the costs of a detector's errors."""

from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.detection import cost as measures
from mpcs_torch.functional.detection.cost import DetectionCost, OperatingPoint
from mpcs_torch.functional.detection.trial_measure import ClassAverage, TrialMeasure
from mpcs_torch.metrics.detection.base import Rates, TrialMetric
from mpcs_torch.metrics.detection.equal_error_rate import EqualErrorRate


class _CostMetric(TrialMetric):
    """The base of detection costs at one or several operating points."""

    measure: measures.CostMeasure
    _mark: str
    """The legend of the point on a curve; ``{}`` stands for the label of the operating point."""

    def details(self) -> DetectionCost:
        """Return costs, error rates and thresholds for P points: (P,) or, by class, (P, C); no axis P if P is 1."""
        return self.measure.details(self.binary_trials())

    def _marks(self, labels: Sequence[int]) -> dict[str, list[Rates]]:
        details = self.details()
        rates = torch.stack([details.p_fa, details.p_miss], dim=-1).reshape(
            len(self.points), -1, 2
        )[:, labels]
        legends = [self._mark.format(point.label()) for point in self.points]
        return dict(zip(legends, rates.tolist(), strict=True))

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw as `SumMetric.plot` does; with ``val``, draw one line for each operating point and class."""
        if val is not None:
            val = (
                [_flat(costs) for costs in val]
                if isinstance(val, list | tuple)
                else _flat(val)
            )
        return super().plot(val, ax)


def _flat(values: Tensor) -> Tensor:
    return values.flatten() if values.ndim > 1 else values


class MinDetectionCost(_CostMetric):
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

    of = measures.MinDetectionCost
    _mark = "minimum cost, {}"

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
        measure = self.of(
            num_classes, average, ignore_index, points=points, normalize=normalize
        )
        super().__init__(measure, validate_args, kwargs)

    def thresholds(self) -> Tensor:
        """Return the thresholds with the minimum costs, in the shapes of `details`."""
        return self.details().threshold


class _ThresholdCost(_CostMetric):
    """The base of costs at thresholds that do not depend on the evaluated scores."""

    measure: measures.ActualDetectionCost

    def threshold_from(self, source: MinDetectionCost | EqualErrorRate) -> None:
        """Use the thresholds that ``source`` chooses on its batches so far; the batches of all processes count.

        Args:
            source: An `EqualErrorRate`, or a `MinDetectionCost` with the points of this metric. ``num_classes`` must be
                the same, and both metrics or none must evaluate by class.

        Raises:
            ValueError: If ``source`` is another kind of metric, has other classes or points, or has seen no targets or
                no non-targets.
        """
        is_chooser = isinstance(source, MinDetectionCost | EqualErrorRate)
        require(
            is_chooser,
            "instance",
            "source",
            source,
            type="MinDetectionCost or EqualErrorRate",
        )
        ours = self.measure
        theirs = source.measure
        if (ours.num_classes, ours.detectors) != (theirs.num_classes, theirs.detectors):
            raise InvalidValueError(
                "other_detectors",
                "source",
                ours=_class_pair(ours),
                theirs=_class_pair(theirs),
            )
        if isinstance(source, MinDetectionCost) and source.points != ours.points:
            raise InvalidValueError(
                "other_points", "source", list(source.points), points=list(ours.points)
            )
        learned = source.thresholds().reshape(-1, ours.detectors)
        require(not learned.isnan().any(), "no_threshold", "source")
        # A copy, so that copies of this metric, such as clones, keep their thresholds.
        self.measure = copy(ours)
        self.measure.thresholds_in_use = learned.expand(len(ours.points), -1).T.tolist()
        self._computed = None


def _class_pair(measure: TrialMeasure[Any]) -> str:
    if measure.num_classes is None:
        return "no classes"
    return f"{measure.num_classes} classes{'' if measure.detectors > 1 else ' (micro)'}"


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

    of = measures.ActualDetectionCost
    _mark = "at the threshold, {}"

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
        measure = self.of(
            num_classes,
            average,
            ignore_index,
            points=points,
            normalize=normalize,
            threshold=threshold,
        )
        super().__init__(measure, validate_args, kwargs)


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

    of = measures.HalfTotalErrorRate
    _mark = (
        "at the threshold"  # the costs of the operating point are part of the definition
    )

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
        super().__init__(
            self.of(num_classes, average, ignore_index, threshold=threshold),
            validate_args,
            kwargs,
        )
