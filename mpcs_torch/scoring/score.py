"""All metrics that predictions allow, in one pass."""

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.rules import MAX_MATRIX_CLASSES
from mpcs_torch.functional.probability.generalized import ProbabilityMeans
from mpcs_torch.functional.probability.measured import MeasuredProbabilities
from mpcs_torch.functional.quality.class_rates import class_rates
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.scoring.tuned import tuned_entries
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # torchmetrics takes seconds to import: it is loaded when predictions are scored
    from mpcs_torch.metrics.by_name import MetricEntry, Takes
    from mpcs_torch.metrics.metric_set import MetricSet
    from mpcs_torch.processes.world import World

MOST_CLASSES = 30
"""With more classes, they are not listed one by one."""
ONLY_WHEN_ASKED = ("mpcs_count", "mean_squared_error", "risk_coverage_area")
"""Twins of other metrics, of use beside published numbers, and a metric that keeps a number for every row."""


class Scores(NamedTuple):
    """The values of a file of predictions."""

    rows: int
    class_names: list[str]
    values: dict[str, float]
    """By metric."""
    confusion: Tensor | None
    """int64 (C, C), rows true classes; None for soft labels."""
    reported: ProbabilityMeans | None
    measured: MeasuredProbabilities | None
    notes: Sequence[str] = ()
    """Metrics that were left out, and the reasons."""

    def table(self) -> Table:
        """Return a row for each metric."""
        return Table(["metric", "value"], [[name, f"{value:.6g}"] for name, value in self.values.items()])

    def per_class(self) -> dict[str, dict[str, float]]:
        """Return samples, precision, recall and error rate of each class; empty for soft labels."""
        if self.confusion is None:
            return {}
        columns = {"samples": self.confusion.sum(dim=1), **class_rates(self.confusion)._asdict()}
        return {
            name: {column: values[label].item() for column, values in columns.items()}
            for label, name in enumerate(self.class_names)
        }

    def warnings(self) -> list[str]:
        """Return what the values say against using the predictions as they are, and what was left out."""
        told = list(self.notes)
        least, most = (self.values.get(name, math.nan) for name in ("least_concern_cost", "expected_concern"))
        if least > most:
            told.append(
                f"decisions with the minimum expected concern cost more ({least:.6g}) than deciding for the most "
                f"probable class ({most:.6g}), probably because the probabilities are not calibrated (mpcs calibrate)"
            )
        return told

    def class_table(self) -> Table | None:
        """Return a row for each class; None for soft labels, and where there are more than `MOST_CLASSES`."""
        rows = self.per_class()
        if not rows or len(rows) > MOST_CLASSES:
            return None
        header = ["class", "samples", "precision", "recall", "error rate"]
        cells = [[name, *(f"{value:.6g}" for value in row.values())] for name, row in rows.items()]
        return Table(header, cells)


def score(
    predictions: Predictions,
    concern: ConcernSpec | None,
    advance: Callable[[int], None],
    *,
    entries: "Sequence[MetricEntry] | None" = None,
    settings: Mapping[str, Any] | None = None,
    world: "World | None" = None,
    development: Predictions | None = None,
) -> Scores:
    """Score all rows in one pass of bounded memory; several processes take turns with the chunks of the file.

    Args:
        predictions: An open file.
        concern: Which errors matter, for the metrics that ask.
        advance: Called with the number of rows that were added, to show progress.
        entries: The metrics. Default: all that the labels of the file allow.
        settings: Further settings for the metrics that have them, such as ``k`` and ``t`` of MPCS.
        world: The processes that score the file together, all of which return the scores of the whole. Default: this
            one.
        development: An open file of soft labels, which is read as a whole: hard F is also measured at the thresholds
            that are best there.

    Raises:
        PredictionsError: If there is no row, a value breaks a rule, or a metric does not fit the labels.
    """
    rows = 0
    metrics: MetricSet | None = None
    rank, size = (0, 1) if world is None else (world.rank, world.size)
    for number, (_, probs, target) in enumerate(predictions.chunks()):
        if metrics is None:
            if development is not None and target.ndim == 1:
                raise PredictionsError(predictions.path, "must have soft labels for thresholds of a development file")
            tuned = [] if development is None else tuned_entries(development, predictions.class_names)
            metrics = _metrics_for(predictions, concern, entries, tuned, settings or {}, is_soft=target.ndim == 2)
        if number % size == rank:
            metrics.update(_inputs(probs, metrics.takes), target)
        rows += len(probs)
        advance(len(probs))
    if metrics is None:
        raise PredictionsError(predictions.path, "holds no row")
    notes = []
    if entries is None and _has_free_errors(concern):
        notes.append("mpcs is left out: it divides by weights, and the concern has weights of 0")
    if entries is None and len(predictions.class_names) > MAX_MATRIX_CLASSES and target.ndim == 1:
        notes.append(
            f"more than {MAX_MATRIX_CLASSES} classes: metrics of pairs of classes, such as accuracy, are left out"
        )
    if development is not None and development.path.samefile(predictions.path):
        notes.append("hard F at thresholds that were learned on the file that is scored is optimistic")
    return _scores(rows, predictions.class_names, metrics, notes)


def _metrics_for(
    predictions: Predictions,
    concern: ConcernSpec | None,
    entries: "Sequence[MetricEntry] | None",
    tuned: "Sequence[MetricEntry]",
    settings: Mapping[str, Any],
    *,
    is_soft: bool,
) -> "MetricSet":
    """Make the metrics that are asked for, or all that the labels allow."""
    from mpcs_torch.metrics.metric_set import MetricSet

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
    try:
        return MetricSet([*entries, *tuned], classes, torch.device("cpu"), concern=concern, **settings)
    except ValueError as error:
        raise PredictionsError(predictions.path, str(error)) from None


def _all_for(concern: ConcernSpec | None, classes: int, *, is_soft: bool) -> "list[MetricEntry]":
    from mpcs_torch.metrics.by_name import ENTRIES
    from mpcs_torch.metrics.concern.mpcs import MetaPatternConcernScore

    takes: set[Takes] = {"soft_labels"} if is_soft else {"decisions", "probabilities", "log_probabilities"}
    has_free_errors = _has_free_errors(concern)
    return [
        entry
        for entry in ENTRIES
        if entry.takes in takes
        and entry.name not in ONLY_WHEN_ASKED
        and not (has_free_errors and entry.metric is MetaPatternConcernScore)
        and not (classes > MAX_MATRIX_CLASSES and _needs_matrix(entry))
    ]


def _needs_matrix(entry: "MetricEntry") -> bool:
    """Return whether a metric holds a number for each pair of classes."""
    from mpcs_torch.metrics.concern.expected_concern import ExpectedConcern
    from mpcs_torch.metrics.concern.risk_coverage_area import RiskCoverageArea

    return entry.takes == "decisions" or entry.metric in (ExpectedConcern, RiskCoverageArea)


def _has_free_errors(concern: ConcernSpec | None) -> bool:
    if concern is None or concern.weights is None:  # a factor is above 0
        return False
    return bool((concern.matrix() == 0).any())


def _inputs(probs: Tensor, takes: "Collection[Takes]") -> "dict[Takes, Tensor]":
    """Return the forms of probabilities that metrics take."""
    inputs = dict.fromkeys(takes, probs)
    if "decisions" in takes:
        inputs["decisions"] = probs.argmax(dim=1)
    if "log_probabilities" in takes:
        inputs["log_probabilities"] = probs.log()
    return inputs


def _scores(rows: int, class_names: list[str], metrics: "MetricSet", notes: Sequence[str]) -> Scores:
    from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy

    values, confusion = metrics.results()
    with metrics.gathered() as gathered:
        certainty = next((metric for metric in gathered.values() if isinstance(metric, ProbabilityAccuracy)), None)
        reported, measured = (None, None) if certainty is None else (certainty.reported(), certainty.bins())
    return Scores(rows, class_names, values, confusion, reported, measured, notes)
