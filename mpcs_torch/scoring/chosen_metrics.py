"""The metrics that a file of predictions is scored by."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.rules import MAX_MATRIX_CLASSES
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.metric_sections import in_order
from mpcs_torch.scoring.predictions import Predictions

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.by_name import MetricEntry, Takes
    from mpcs_torch.metrics.metric_set import MetricSet

ONLY_WHEN_ASKED = ("mpcs_count", "mean_squared_error", "risk_coverage_area")
"""Twins of other metrics, of use beside published numbers, and a metric that keeps a number for every row."""


class ChosenMetrics(NamedTuple):
    """The metrics of a file, ready to be made, once for all rows or once for each group of rows."""

    entries: tuple["MetricEntry", ...]
    num_classes: int
    concern: ConcernSpec | None
    settings: Mapping[str, Any]
    is_soft: bool
    """Whether the labels of the file are soft."""

    def make(self) -> "MetricSet":
        """Make the metrics.

        Raises:
            ValueError: If a setting breaks a rule of its metric.
        """
        from mpcs_torch.metrics.metric_set import MetricSet

        return MetricSet(self.entries, self.num_classes, torch.device("cpu"), concern=self.concern, **self.settings)


def choose_metrics(
    predictions: Predictions,
    concern: ConcernSpec | None,
    entries: "Sequence[MetricEntry] | None",
    tuned: "Sequence[MetricEntry]",
    settings: Mapping[str, Any],
    *,
    is_soft: bool,
) -> ChosenMetrics:
    """Choose the metrics that are asked for, or all that the labels allow.

    Raises:
        PredictionsError: If a metric does not fit the labels or the number of classes.
    """
    if is_soft and concern is not None:
        raise PredictionsError(predictions.path, "has soft labels, but a concern needs one class for each row")
    classes = len(predictions.class_names)
    if entries is None:
        entries = _all_for(concern, classes, is_soft=is_soft)
    wrong = [entry.name for entry in entries if (entry.takes == "soft_labels") != is_soft]
    if wrong:
        kind, other = ("soft", "one class") if is_soft else ("one class", "soft")
        problem = f"has {kind} labels for each row, but {', '.join(wrong)} must have {other} labels"
        raise PredictionsError(predictions.path, problem)
    large = [entry.name for entry in entries if classes > MAX_MATRIX_CLASSES and _needs_matrix(entry)]
    if large:
        problem = f"must have at most {MAX_MATRIX_CLASSES} classes for {', '.join(large)}, but has {classes}"
        raise PredictionsError(predictions.path, problem)
    return ChosenMetrics((*entries, *tuned), classes, concern, settings, is_soft)


def _all_for(concern: ConcernSpec | None, classes: int, *, is_soft: bool) -> "list[MetricEntry]":
    from mpcs_torch.metrics.by_name import ENTRIES
    from mpcs_torch.metrics.concern.mpcs import MetaPatternConcernScore

    takes: set[Takes] = {"soft_labels"} if is_soft else {"decisions", "probabilities", "log_probabilities"}
    is_without_mpcs = has_free_errors(concern)
    allowed = {
        entry.name: entry
        for entry in ENTRIES
        if entry.takes in takes
        and entry.name not in ONLY_WHEN_ASKED
        and not (is_without_mpcs and entry.metric is MetaPatternConcernScore)
        and not (classes > MAX_MATRIX_CLASSES and _needs_matrix(entry))
    }
    return [allowed[name] for name in in_order(allowed, has_concern=concern is not None)]


def _needs_matrix(entry: "MetricEntry") -> bool:
    """Return whether a metric holds a number for each pair of classes."""
    from mpcs_torch.metrics.concern.expected_concern import ExpectedConcern
    from mpcs_torch.metrics.concern.risk_coverage_area import RiskCoverageArea

    return entry.takes == "decisions" or entry.metric in (ExpectedConcern, RiskCoverageArea)


def has_free_errors(concern: ConcernSpec | None) -> bool:
    """Return whether an error costs nothing, so that MPCS, which divides by costs, is not defined."""
    if concern is None or concern.weights is None:  # a factor is above 0
        return False
    return bool((concern.matrix() == 0).any())


def inputs_of(probs: Tensor, takes: "Collection[Takes]") -> "dict[Takes, Tensor]":
    """Return the forms of probabilities that metrics take."""
    inputs = dict.fromkeys(takes, probs)
    if "decisions" in takes:
        inputs["decisions"] = probs.argmax(dim=1)
    if "log_probabilities" in takes:
        inputs["log_probabilities"] = probs.log()
    return inputs
