"""The cases of the soft family."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torchmetrics import Metric

from mpcs_torch import metrics
from tests.metrics.batches import CLASSES, SOFT, soft_batch
from tests.metrics.case import Batch, MetricCase
from tests.oracles import naive


def soft_case(kind: type[Metric], beta_of_oracle: float, **options: Any) -> MetricCase:
    """Describe a macro-averaged soft score; perfect predictions get 1 with any average."""
    return MetricCase(
        make=partial(kind, CLASSES, average="macro", **options),
        higher_is_better=True,
        make_other=lambda: kind(CLASSES, **options),
        agreeing_batch=(torch.eye(CLASSES), torch.eye(CLASSES)),
        oracle=lambda batch: {
            "": naive.macro_soft_fbeta(batch[0].tolist(), batch[1].tolist(), beta_of_oracle)
        },
        batches=SOFT,
        make_stranger=metrics.SoftKLDivergence,  # soft scores share their sums
    )


def close_batch(size: int, seed: int) -> Batch:
    """Draw predictions close to their labels: of others, too few are hits for an F above 0."""
    preds, target = soft_batch(size, seed)
    return 0.3 * preds + 0.7 * target, target


SOFT_CASES: dict[type[Metric], MetricCase] = {
    metrics.SoftPrecision: soft_case(metrics.SoftPrecision, 0.0),
    metrics.SoftRecall: soft_case(metrics.SoftRecall, float("inf")),
    metrics.SoftF1: soft_case(metrics.SoftF1, 1.0),
    metrics.SoftFBeta: soft_case(metrics.SoftFBeta, 2.0, beta=2.0),
    metrics.HardF1: MetricCase(
        make=partial(metrics.HardF1, CLASSES, average="macro"),
        higher_is_better=True,
        make_other=lambda: metrics.HardF1(CLASSES, average="macro", threshold=0.2),
        agreeing_batch=(torch.eye(CLASSES), torch.eye(CLASSES)),
        oracle=lambda batch: {
            "": naive.macro_hard_f1(batch[0].tolist(), batch[1].tolist(), 0.5)
        },
        batches=replace(SOFT, draw=close_batch),
        make_stranger=lambda: metrics.SoftF1(CLASSES),
    ),
    metrics.SoftKLDivergence: MetricCase(
        make=partial(metrics.SoftKLDivergence),
        higher_is_better=False,
        make_other=lambda: metrics.SoftKLDivergence(epsilon=0.1),
        agreeing_batch=(torch.full((1, CLASSES), 0.25), torch.full((1, CLASSES), 0.5)),
        oracle=lambda batch: {
            "": naive.soft_kl_divergence(batch[0].tolist(), batch[1].tolist())
        },
        batches=SOFT,
    ),
}
