"""DetectionMetric, the base of detection metrics, which keeps all scores and splits them into binary trials.

Errors are counted in whole numbers, so that comparisons of rates are exact; there is no ``sample_weight``.
"""

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.detection.curve import curve_of_trials
from mpcs_torch.functional.detection.equal_error_rate import error_crossing
from mpcs_torch.functional.detection.errors import (
    BinaryTrials,
    ClassAverage,
    ErrorRates,
    average_classes,
    check_split,
    class_values,
    convex_hull,
    flatten_trials,
    split_trials,
    trial_rules,
)
from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.metrics.base import SumMetric

Rates = tuple[float, float]
"""The pair (false-alarm rate, miss rate), a point in a figure."""
MAX_CURVES = 7
"""The maximum number of curves in a figure: more would not have distinct colours."""


class DetectionMetric(SumMetric):
    """A metric that keeps all scores in their input dtype, and one byte for each label.

    The detection metrics in a MetricCollection share these states.
    """

    scores: list[Tensor]
    trial_labels: list[Tensor]  # the name `labels` would be overwritten by torchmetrics' ClasswiseWrapper

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        check_split(arguments["num_classes"], arguments["average"])
        super().__init__(
            arguments, value_rules=trial_rules(arguments["num_classes"]), state_settings=("num_classes", "ignore_index")
        )
        self.add_samples("scores", shape=() if self.num_classes is None else (self.num_classes,))
        self.add_samples("trial_labels", dtype=torch.int32)

    @property
    def is_by_class(self) -> bool:
        """Whether each class is evaluated against all other classes."""
        return self.num_classes is not None and self.average != "micro"

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, ...), or (N, C, ...) if there are classes, and target (N, ...)."""
        batch = flatten_trials(detached(preds), target, num_classes=self.num_classes, ignore_index=self.ignore_index)
        self.admit(lambda: batch.faults)
        self.add(scores=batch.scores.clone(), trial_labels=batch.labels)  # scores may share memory with the caller

    def binary_trials(self) -> list[BinaryTrials]:
        """Return the trials of the detector, or of each class; warn about classes without targets or non-targets."""
        with self.gathered():
            self.check_computable()
            scores, labels = self.kept_samples("scores"), self.kept_samples("trial_labels")
            by_class = split_trials(scores, labels, self.num_classes, self.average)
        for trials in by_class:
            if trials.missing is not None:
                rule = f"{type(self).__name__} needs targets and non-targets"
                message = f"{rule}, but has seen no {trials.missing}{trials.name}: its value is NaN."
                warnings.warn(message, UserWarning, stacklevel=2)
        return by_class

    def averaged(self, values: Tensor) -> Tensor:
        """Average ``values`` over classes if ``average`` is ``"macro"``; move the result to the metric's device."""
        values = average_classes(values, self.num_classes, self.average)
        return values.to(self.device, widest_float(self.device))

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the figure shows curves
        curves = [curve_of_trials(trials) for trials in self.binary_trials()]
        if not self.is_by_class:
            name = "detector" if self.num_classes is None else "all classes"
            return self._draw_curves({0: curves[0]}, [name], title, on)
        equal = [error_crossing(convex_hull(curve.counts()).rates()).rate.item() for curve in curves]
        worst = sorted(range(len(curves)), key=equal.__getitem__, reverse=True)[:MAX_CURVES]
        if len(curves) > MAX_CURVES:
            title += f" (worst {MAX_CURVES} of {len(curves)} classes by equal error rate)"
        names = [f"class {label}" for label in worst]
        return self._draw_curves({label: curves[label] for label in worst}, names, title, on)

    def _draw_curves(self, curves: dict[int, ErrorRates], names: list[str], title: str, on: Any) -> Any:
        """Draw ``curves``, whose keys are classes (0 for a single curve), with ``names`` in the legend."""
        from mpcs_torch.plots.detection import det_curves

        systems = dict(zip(names, curves.values(), strict=True))
        return det_curves(systems, marks=self._marks(curves), title=title, on=on)

    def _marks(self, curves: dict[int, ErrorRates]) -> dict[str, list[Rates]]:  # noqa: ARG002  # for subclasses
        """Return points (false-alarm rate, miss rate) to mark: for each legend text, one point on each curve."""
        return {}


class ScalarDetectionMetric(DetectionMetric):
    """A metric with one value for each detector."""

    def compute(self) -> Tensor:
        """Return the value, float64: a scalar, or (C,) with ``average="none"``."""
        return self.averaged(class_values(self.binary_trials(), self.statistic))

    @abstractmethod
    def statistic(self, trials: BinaryTrials, /) -> Tensor:
        """Return the value of one detector, or of one class against the rest: a float64 scalar."""


class PlainDetectionMetric(ScalarDetectionMetric):
    """A detection metric without further settings."""

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())
