"""Measures of trials: a detection metric is defined once, by its value for the trials of each detector.

A `TrialMeasure` says which settings are valid, how a batch is split into detectors, and what is computed for them. The
function of `mpcs_torch.functional` and the Metric of `mpcs_torch.metrics` follow from it.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from mpcs_torch.errors import Rule
from mpcs_torch.functional.detection.errors import (
    IGNORED,
    ErrorCounts,
    TrialBatch,
    area_under_roc,
    check_both_occur,
    count_errors,
    flatten_trials,
    missing_kind,
    trial_rules,
    warn_if_reversed,
)
from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import (
    check_choice,
    check_num_classes,
    widest_float,
)
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.measure import Direction

ClassAverage = Literal["macro", "micro", "none"]
Value = TypeVar("Value")


class BinaryTrials(NamedTuple):
    """The scores and labels of one detector: of targets, of one class against the rest, or of all classes pooled."""

    label: int | None
    """The class; None for targets, and for all classes pooled."""
    scores: Tensor
    """The scores: (M,), float64."""
    labels: Tensor
    """The mask of targets: (M,), bool."""

    @property
    def name(self) -> str:
        """The end of error messages: " of class c", or empty."""
        return "" if self.label is None else f" of class {self.label}"

    @property
    def missing(self) -> str | None:
        """The missing kind of trial: "targets", "non-targets", or None if both occur."""
        return missing_kind(self.labels)

    def errors(self) -> ErrorCounts:
        """Count the errors at each threshold; warn if the scores seem to be reversed."""
        counts = count_errors(self.scores, self.labels)
        warn_if_reversed(area_under_roc(counts), counts, self.name)
        return counts


@dataclass(eq=False)
class TrialMeasure(ABC, Generic[Value]):
    """A metric of detectors. The fields of a subclass are the settings of the metric."""

    num_classes: int | None = None
    average: ClassAverage = "macro"
    ignore_index: int | None = None

    averages: ClassVar[Any] = ClassAverage
    """The valid values of ``average``: a `Literal`."""
    direction: ClassVar[Direction | None] = "min"
    limits: ClassVar[tuple[float | None, float | None]] = (0.0, None)
    """The lowest and the highest possible value; None where there is no limit."""

    def __post_init__(self) -> None:
        """Check the settings; a subclass checks its own, too."""
        if self.num_classes is not None:
            check_num_classes(self.num_classes)
        check_choice("average", self.average, self.averages)

    @property
    def value_rules(self) -> Sequence[Rule]:
        """The rules of the values of rows."""
        return trial_rules(self.num_classes)

    @property
    def detectors(self) -> int:
        """The number of detectors: C if each class is evaluated against all other classes, otherwise 1."""
        if self.num_classes is None or self.average == "micro":
            return 1
        return self.num_classes

    def rows(self, preds: Tensor, target: Tensor) -> TrialBatch:
        """Flatten scores (N, ...) or (N, C, ...) and labels (N, ...); do not wait for an accelerator."""
        return flatten_trials(
            detached(preds),
            target,
            num_classes=self.num_classes,
            ignore_index=self.ignore_index,
        )

    def split(self, scores: Tensor, labels: Tensor) -> list[BinaryTrials]:
        """Drop ignored samples, and split scores and labels into one detector per class (or one for all)."""
        if widest_float(scores.device) != torch.float64:
            scores = scores.cpu()
            labels = labels.cpu()
        counted = labels != IGNORED
        if not counted.all():
            scores = scores[counted]
            labels = labels[counted]
        scores = scores.double()
        if self.num_classes is None:
            return [BinaryTrials(None, scores, labels == 1)]
        classes = torch.arange(self.num_classes, device=labels.device)
        is_class = labels.unsqueeze(1) == classes
        if self.average == "micro":
            return [BinaryTrials(None, scores.flatten(), is_class.flatten())]
        return [
            BinaryTrials(label, scores[:, label], is_class[:, label])
            for label in range(self.num_classes)
        ]

    @abstractmethod
    def value(self, by_class: Sequence[BinaryTrials]) -> Value:
        """Return the value of the detectors that `split` returned."""

    def __call__(self, preds: Tensor, target: Tensor) -> Value:
        """Return the value of a batch, whose detectors must all have targets and non-targets."""
        batch = self.rows(preds, target)
        raise_first(batch.find_faults())
        by_class = self.split(batch.scores, batch.labels)
        for trials in by_class:
            check_both_occur(trials.labels, trials.name)
        return self.value(by_class)


class DetectorStatistic(TrialMeasure[Tensor]):
    """A measure with a value for each detector; they are averaged over classes if ``average`` is ``"macro"``."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the statistics of one detector."""
        return ()

    @abstractmethod
    def statistics(self, trials: BinaryTrials) -> Tensor:
        """Return the statistics of one detector with targets and non-targets: float64, of the shape `shape`."""

    def details(self, by_class: Sequence[BinaryTrials]) -> Any:
        """Return the statistics (..., C), or (...) of a single detector; NaN without targets or without non-targets."""
        parts = list[Tensor]()
        for trials in by_class:
            if trials.missing is None:
                parts.append(self.statistics(trials))
            else:
                parts.append(trials.scores.new_full(self.shape, nan))
        return torch.stack(parts, dim=-1) if len(parts) > 1 else parts[0]

    def value(self, by_class: Sequence[BinaryTrials]) -> Tensor:
        """Return the value: by default, the statistics, averaged over classes."""
        return self.averaged(self.details(by_class))

    def averaged(self, values: Tensor) -> Tensor:
        """Return the mean of ``values`` (..., C) over classes if ``average`` is "macro"; else ``values`` unchanged."""
        if self.num_classes is None or self.average != "macro":
            return values
        return values.mean(dim=-1)


class ErrorStatistic(DetectorStatistic):
    """A statistic that depends on the numbers of errors at all thresholds alone."""

    @abstractmethod
    def from_counts(self, counts: ErrorCounts) -> Tensor:
        """Return the statistics of a detector with these errors, as `statistics` does."""

    def statistics(self, trials: BinaryTrials) -> Tensor:
        """Return the statistics of one detector with targets and non-targets: float64, of the shape `shape`."""
        return self.from_counts(trials.errors())
