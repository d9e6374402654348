"""The cases of the probability family."""

from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torchmetrics import Metric

from mpcs_torch import metrics
from mpcs_torch.functional.probability.probability_accuracy import ProbabilityAccuracy
from tests.metrics.batches import (
    CERTAIN,
    CLASSES,
    HARD,
    PROBABILITIES,
    WIDE,
)
from tests.metrics.case import Batch, MetricCase
from tests.oracles import naive


def mean_case(kind: type[Metric], power: float) -> MetricCase:
    """Describe a mean of the probability of the true class; the floor changes nothing if this probability is high."""

    def oracle(batch: Batch) -> dict[str, float]:
        logits, target = batch
        probs = [
            row[label]
            for row, label in zip(logits.softmax(1).tolist(), target.tolist(), strict=True)
        ]
        return {"": naive.generalized_mean(probs, power, 0.005)}

    return MetricCase(
        make=partial(kind, CLASSES),
        higher_is_better=True,
        make_other=lambda: kind(CLASSES, epsilon=0.2),
        agreeing_batch=(CERTAIN[0].double(), CERTAIN[1]),
        oracle=oracle,
        batches=WIDE,
    )


def probability_case(cells: int | None, *, from_logits: bool = True) -> MetricCase:
    """Describe the means and the slope; if all decisions are right, the number of bins changes nothing."""
    options: dict[str, Any] = {"delta": None, "cells": cells, "from_logits": from_logits}

    def oracle(batch: Batch) -> dict[str, float]:
        probs = batch[0].softmax(1) if from_logits else batch[0]
        return naive.probability_accuracy(
            probs.tolist(), batch[1].tolist(), n_bins=3, epsilon=0.005
        )

    logits, target = CERTAIN[0].double(), CERTAIN[1]
    counting = ProbabilityAccuracy(CLASSES, 1000)
    return MetricCase(
        make=partial(metrics.ProbabilityAccuracy, CLASSES, n_bins=3, **options),
        higher_is_better=None,
        make_other=lambda: metrics.ProbabilityAccuracy(CLASSES, n_bins=2, **options),
        agreeing_batch=(logits if from_logits else logits.softmax(1), target),
        oracle=oracle,
        given_core=lambda scores, labels: counting.sums(counting.rows(scores, labels)),
        batches=WIDE if from_logits else PROBABILITIES,
        # Other numbers of bins share the states.
        make_stranger=lambda: metrics.ProbabilityAccuracy(CLASSES, epsilon=0.1, **options),
    )


def entropy_case(*, normalized: bool) -> MetricCase:
    """Describe the cross entropy of logits or of log-probabilities."""

    def draw(size: int, seed: int) -> Batch:
        logits, target = WIDE.draw(size, seed)
        return logits.log_softmax(1), target

    batches = WIDE
    if normalized:
        uniform = torch.full((2, CLASSES), 1 / CLASSES).log()
        batches = replace(HARD, draw=draw, bad=(uniform, torch.tensor([0, CLASSES])))
    return MetricCase(
        make=partial(metrics.CrossEntropy, CLASSES, normalized=normalized),
        higher_is_better=False,
        make_other=lambda: metrics.CrossEntropy(
            CLASSES, normalized=normalized, ignore_index=3
        ),
        agreeing_batch=(torch.eye(CLASSES)[:3].log_softmax(1), torch.arange(3)),
        oracle=lambda batch: {
            "": naive.cross_entropy(batch[0].softmax(1).tolist(), batch[1].tolist())
        },
        batches=batches,
    )


PROBABILITY: dict[type[Metric], MetricCase] = {
    metrics.GeometricAccuracy: mean_case(metrics.GeometricAccuracy, 0.0),
    metrics.Decisiveness: mean_case(metrics.Decisiveness, 1.0),
    metrics.Robustness: mean_case(metrics.Robustness, -2 / 3),
    metrics.ProbabilityAccuracy: probability_case(None),
    metrics.BrierScore: MetricCase(
        make=partial(metrics.BrierScore, CLASSES),
        higher_is_better=False,
        make_other=lambda: metrics.BrierScore(CLASSES, over_classes="mean"),
        agreeing_batch=(100 * torch.eye(CLASSES), torch.arange(CLASSES)),
        oracle=lambda batch: {
            "": naive.brier_score(batch[0].softmax(1).tolist(), batch[1].tolist())
        },
        batches=WIDE,
        # The mean over classes shares the states.
        make_stranger=lambda: metrics.BrierScore(CLASSES, ignore_index=3),
    ),
    metrics.CrossEntropy: entropy_case(normalized=False),
    metrics.Overconfidence: MetricCase(
        make=partial(metrics.Overconfidence, CLASSES),
        higher_is_better=None,
        make_other=lambda: metrics.Overconfidence(CLASSES, ignore_index=3),
        agreeing_batch=(2 * torch.eye(CLASSES)[:3].double(), torch.arange(3)),
        oracle=lambda batch: {
            "": naive.overconfidence(batch[0].softmax(1).tolist(), batch[1].tolist())
        },
        batches=WIDE,
    ),
}
MORE_PROBABILITY = {  # settings with states of their own
    "ProbabilityAccuracy by cells": probability_case(100_000),
    "ProbabilityAccuracy of probabilities": probability_case(None, from_logits=False),
    "CrossEntropy of log-probabilities": entropy_case(normalized=True),
}
