"""The cases of the quality family."""

from collections import Counter
from functools import partial

import torch
from torchmetrics import Metric

from mpcs_torch import metrics
from tests.metrics.batches import CLASSES, HARD
from tests.metrics.case import Batch, MetricCase
from tests.oracles import naive


def quality_case(
    kind: type[Metric], name: str | None, higher_is_better: bool | None
) -> MetricCase:
    """Describe a metric of a confusion matrix; another ignore_index agrees on batches without that label."""
    options = (
        {"zero_division": 0.0}
        if name in naive.ONEDAL or kind is metrics.MulticlassQualityMetrics
        else {}
    )

    def oracle(batch: Batch) -> dict[str, float]:
        logits, target = batch
        values = naive.quality(logits.tolist(), target.tolist(), CLASSES)
        if kind is metrics.ClassErrorRates:
            return {
                str(label): rate for label, rate in enumerate(values["class_error_rates"])
            }
        if kind is metrics.ConfusionMatrix:
            pairs = Counter(
                (true, max(range(CLASSES), key=row.__getitem__))
                for row, true in zip(logits.tolist(), target.tolist(), strict=True)
            )
            return {str(i): pairs[divmod(i, CLASSES)] for i in range(CLASSES**2)}
        return (
            {entry: values[entry] for entry in naive.ONEDAL}
            if name is None
            else {"": values[name]}
        )

    return MetricCase(
        make=partial(kind, CLASSES, **options),
        higher_is_better=higher_is_better,
        make_other=lambda: kind(CLASSES, **options, ignore_index=3),
        agreeing_batch=(torch.eye(CLASSES)[:3], torch.arange(3)),
        oracle=oracle,
        fed=HARD,
    )


SINGLE = {
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
QUALITY = {
    kind: quality_case(kind, name, higher) for kind, (name, higher) in SINGLE.items()
}
QUALITY |= {
    metrics.MulticlassQualityMetrics: quality_case(
        metrics.MulticlassQualityMetrics, None, None
    ),
    metrics.ClassErrorRates: quality_case(metrics.ClassErrorRates, None, False),
    metrics.ConfusionMatrix: quality_case(metrics.ConfusionMatrix, None, None),
}
