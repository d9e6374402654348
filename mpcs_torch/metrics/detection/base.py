"""TrialMetric, the torchmetrics form of a measure of trials, which keeps all scores.

Errors are counted in whole numbers, so that comparisons of rates are exact; there is no ``sample_weight``.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.detection.curve import curve_of_trials
from mpcs_torch.functional.detection.equal_error_rate import EqualErrorRate
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.functional.detection.trial_measure import (
    BinaryTrials,
    ClassAverage,
    TrialMeasure,
)
from mpcs_torch.functional.inputs.checks import widest_float
from mpcs_torch.metrics.measure_metric import DefinedMetric

Rates = tuple[float, float]
"""The pair (false-alarm rate, miss rate), a point in a figure."""
MAX_CURVES = 7
"""The maximum number of curves in a figure: more would not have distinct colours."""


class TrialMetric(DefinedMetric):
    """A metric that keeps all scores in their input dtype, and one byte for each label.

    The detection metrics in a MetricCollection share these states.
    """

    measure: TrialMeasure[Any]
    scores: list[Tensor]
    # The ClasswiseWrapper of torchmetrics would overwrite the name `labels`.
    trial_labels: list[Tensor]

    def __init__(
        self, measure: TrialMeasure[Any], validate_args: bool, kwargs: Mapping[str, Any]
    ) -> None:
        """Initialize from a measure and the arguments of `torchmetrics.Metric`, ``kwargs``."""
        settings = {
            "num_classes": measure.num_classes,
            "ignore_index": measure.ignore_index,
        }
        super().__init__(measure, validate_args, kwargs, settings)
        self.add_samples(
            "scores", shape=() if measure.num_classes is None else (measure.num_classes,)
        )
        self.add_samples("trial_labels", dtype=torch.int32)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, ...), or (N, C, ...) if there are classes, and target (N, ...)."""
        batch = self.measure.rows(preds, target)
        self.admit(batch.find_faults)
        # A clone, because scores may share memory with the caller.
        self.add(scores=batch.scores.clone(), trial_labels=batch.labels)

    def compute(self) -> Any:
        """Return the value, float64: a scalar, or (C,) with ``average="none"``; for P > 1 points, (P,) or (P, C)."""
        return self.measure.value(self.binary_trials()).to(
            self.device, widest_float(self.device)
        )

    def binary_trials(self) -> list[BinaryTrials]:
        """Return the trials of the detector, or of each class; warn about classes without targets or non-targets."""
        with self.gathered():
            self.check_computable()
            by_class = self.measure.split(
                self.kept_samples("scores"), self.kept_samples("trial_labels")
            )
        for trials in by_class:
            if trials.missing is not None:
                rule = f"{type(self.measure).__name__} needs targets and non-targets"
                message = f"{rule}, but has seen no {trials.missing}{trials.name}: its value is NaN."
                warnings.warn(message, UserWarning, stacklevel=2)
        return by_class

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the figure shows curves
        by_class = self.binary_trials()
        curves = [curve_of_trials(trials) for trials in by_class]
        if len(curves) == 1:
            name = "detector" if self.num_classes is None else "all classes"
            return self._draw_curves({name: curves[0]}, self._marks([0]), title, on)
        equal = EqualErrorRate(len(curves), "none").value(by_class).tolist()
        by_rate = sorted(range(len(curves)), key=lambda label: equal[label], reverse=True)
        worst = by_rate[:MAX_CURVES]
        if len(curves) > MAX_CURVES:
            title += f" (worst {MAX_CURVES} of {len(curves)} classes by equal error rate)"
        return self._draw_curves(
            {f"class {label}": curves[label] for label in worst},
            self._marks(worst),
            title,
            on,
        )

    def _draw_curves(
        self,
        systems: Mapping[str, ErrorRates],
        marks: Mapping[str, Sequence[Rates]],
        title: str,
        on: Any,
    ) -> Any:
        """Draw the curves ``systems``, by their names in the legend, and mark points on them."""
        from mpcs_torch.plots.detection import det_curves

        return det_curves(systems, marks=marks, title=title, on=on)

    def _marks(self, labels: Sequence[int]) -> dict[str, list[Rates]]:  # noqa: ARG002  # for subclasses
        """Return points (false-alarm rate, miss rate) to mark: for each legend text, one point for each class."""
        return {}


class PlainTrialMetric(TrialMetric):
    """A metric of trials without further settings."""

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(self.of(num_classes, average, ignore_index), validate_args, kwargs)
