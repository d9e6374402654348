"""The cases of the quality family."""

from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torchmetrics import Metric

from mpcs_torch import metrics
from tests.metrics.batches import CLASSES, HARD
from tests.metrics.case import Batch, MetricCase
from tests.oracles import naive


def values_of(batch: Batch) -> dict[str, Any]:
    logits, target = batch
    return naive.quality(logits.tolist(), target.tolist(), CLASSES)


def values_of_onedal(batch: Batch) -> dict[str, float]:
    values = values_of(batch)
    return {name: values[name] for name in naive.ONEDAL}


def rates_of_classes(batch: Batch) -> dict[str, float]:
    rates = values_of(batch)["class_error_rates"]
    return {str(label): rate for label, rate in enumerate(rates)}


def cells(batch: Batch) -> dict[str, float]:
    """Count pairs of a true class and a decision, row by row of the matrix."""
    logits, target = batch
    pairs = Counter[tuple[int, int]]()
    for row, true in zip(logits.tolist(), target.tolist(), strict=True):
        pairs[true, max(range(CLASSES), key=row.__getitem__)] += 1
    return {str(i): pairs[divmod(i, CLASSES)] for i in range(CLASSES**2)}


def quality_case(
    kind: type[Metric],
    oracle: Callable[[Batch], dict[str, float]],
    higher_is_better: bool | None,
    **options: float,
) -> MetricCase:
    """Describe a metric of a confusion matrix; another ignore_index agrees on batches without that label."""
    return MetricCase(
        make=partial(kind, CLASSES, **options),
        higher_is_better=higher_is_better,
        make_other=lambda: kind(CLASSES, **options, ignore_index=3),
        agreeing_batch=(torch.eye(CLASSES)[:3], torch.arange(3)),
        oracle=oracle,
        batches=HARD,
    )


SINGLE: dict[type[Metric], tuple[str, bool]] = {
    metrics.AverageAccuracy: ("average_accuracy", True),
    metrics.ErrorRate: ("error_rate", False),
    metrics.MicroPrecision: ("micro_precision", True),
    metrics.MicroRecall: ("micro_recall", True),
    metrics.MicroFScore: ("micro_fscore", True),
    metrics.MacroPrecision: ("macro_precision", True),
    metrics.MacroRecall: ("macro_recall", True),
    metrics.MacroFScore: ("macro_fscore", True),
    metrics.WeightedErrorRate: ("weighted_error_rate", False),
    metrics.BalancedErrorRate: ("balanced_error_rate", False),
    metrics.Accuracy: ("accuracy", True),
    metrics.MacroF1: ("macro_f1", True),
    metrics.MatthewsCorrelation: ("matthews_correlation", True),
}
"""Name of the oracle and direction of each metric that is a single value."""


def single_case(kind: type[Metric]) -> MetricCase:
    """Describe a metric of `SINGLE`."""
    name, higher_is_better = SINGLE[kind]
    options = {"zero_division": 0.0} if name in naive.ONEDAL else {}
    return quality_case(
        kind, lambda batch: {"": values_of(batch)[name]}, higher_is_better, **options
    )


QUALITY = {
    **{kind: single_case(kind) for kind in SINGLE},
    metrics.MulticlassQualityMetrics: quality_case(
        metrics.MulticlassQualityMetrics, values_of_onedal, None, zero_division=0.0
    ),
    metrics.ClassErrorRates: quality_case(metrics.ClassErrorRates, rates_of_classes, False),
    metrics.ConfusionMatrix: quality_case(metrics.ConfusionMatrix, cells, None),
}
