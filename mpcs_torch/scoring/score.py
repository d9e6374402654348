"""All metrics that predictions allow, in one pass."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import class_error_rates
from mpcs_torch.functional.probability.generalized import ProbabilityMeans
from mpcs_torch.functional.probability.measured import MeasuredProbabilities
from mpcs_torch.metrics import (
    DangerousErrors,
    ExpectedConcern,
    MetaPatternConcernScore,
    MulticlassQualityMetrics,
    ProbabilityAccuracy,
    SoftF1,
    SoftKLDivergence,
    SoftPrecision,
    SoftRecall,
)
from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.scoring.chunks import PredictionsError
from mpcs_torch.scoring.predictions import Predictions
from mpcs_torch.tables import Table

CELLS = 20_000
"""Of the histogram that measured probabilities come from."""
MOST_CLASSES = 30
"""More of them are not told one by one."""


class Scores(NamedTuple):
    """The values of a file of predictions."""

    rows: int
    class_names: list[str]
    values: dict[str, float]
    confusion: Tensor | None
    """int64 (C, C), rows true classes; None for soft labels."""
    reported: ProbabilityMeans | None
    measured: MeasuredProbabilities | None

    def table(self) -> Table:
        """Two columns."""
        return Table(["metric", "value"], [[name, f"{value:.6g}"] for name, value in self.values.items()])


def score(predictions: Predictions, concern: ConcernSpec | None, advance: Callable[[int], None]) -> Scores:
    """Score all rows, `advance` being told how many were added.

    Hard labels are scored by MPCS (with the defaults of `MetaPatternConcernScore`), dangerous errors, expected concern,
    quality and probability metrics; soft ones by soft precision, recall, F1 and divergence.

    Raises:
        PredictionsError: If there is no row, or a value breaks a rule.
    """
    classes, rows = len(predictions.class_names), 0
    metrics: dict[str, SumMetric] = {}
    for _, probs, target in predictions.chunks():
        if not metrics:
            if target.ndim == 2 and concern is not None:
                raise PredictionsError(predictions.path, "has soft labels, which a concern says nothing of")
            metrics = _soft_metrics(classes) if target.ndim == 2 else _hard_metrics(classes, concern)
        for metric in metrics.values():
            metric.update(probs, target)
        rows += len(probs)
        advance(len(probs))
    if not metrics:
        raise PredictionsError(predictions.path, "holds no row")
    values: dict[str, float] = {}
    for title, metric in metrics.items():
        computed = metric.compute()
        named = computed.items() if isinstance(computed, dict) else [(title, computed)]
        values |= {name: float(value) for name, value in named}
    quality, certainty = metrics.get("quality"), metrics.get("probability")
    confusion = quality.confusion.long() if isinstance(quality, MulticlassQualityMetrics) else None
    if confusion is not None and classes <= MOST_CLASSES:
        rates = zip(predictions.class_names, class_error_rates(confusion, num_classes=classes).tolist(), strict=True)
        values |= {f"error_rate of {name}": rate for name, rate in rates}
    return Scores(
        rows,
        predictions.class_names,
        values,
        confusion,
        certainty.reported() if isinstance(certainty, ProbabilityAccuracy) else None,
        certainty.bins() if isinstance(certainty, ProbabilityAccuracy) else None,
    )


def _hard_metrics(classes: int, concern: ConcernSpec | None) -> dict[str, SumMetric]:
    weights = torch.ones(classes, classes, dtype=torch.float64) if concern is None else concern.matrix()
    return {
        "mpcs": MetaPatternConcernScore(classes, concern=concern, from_logits=False),
        "dangerous": DangerousErrors(classes, concern=concern),
        "dangerous_rate": DangerousErrors(classes, concern=concern, normalize="samples"),
        "destructive_rate": DangerousErrors(classes, concern=concern, normalize="errors"),
        "expected_concern": ExpectedConcern(classes, concern=weights, from_logits=False),
        "expected_concern_of_least_concern_decisions": ExpectedConcern(
            classes, concern=weights, from_logits=False, decision="least_concern"
        ),
        "quality": MulticlassQualityMetrics(classes),
        "probability": ProbabilityAccuracy(classes, from_logits=False, cells=CELLS),
    }


def _soft_metrics(classes: int) -> dict[str, SumMetric]:
    scores = {"soft_precision": SoftPrecision, "soft_recall": SoftRecall, "soft_f1": SoftF1}
    averaged: dict[str, SumMetric] = {
        f"{name}_{average}": kind(classes, average=average)
        for name, kind in scores.items()
        for average in ("micro", "macro", "weighted")
    }
    return {**averaged, "soft_kl_divergence (epsilon 1e-7)": SoftKLDivergence(epsilon=1e-7)}
