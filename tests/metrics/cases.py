"""One case for each public Metric: how to make it, how to feed it, and its value from an independent oracle."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from mpcs_torch import ConcernSpec, DangerousErrors, ExpectedConcern, MetaPatternConcernScore, metrics
from mpcs_torch.functional import ErrorRates
from mpcs_torch.functional.concern.dangerous import count_dangerous
from mpcs_torch.functional.concern.expected_concern import decide, sum_costs
from mpcs_torch.functional.concern.mpcs import pattern_terms, score_terms
from mpcs_torch.functional.inputs.decisions import Decisions, flatten_decisions
from mpcs_torch.functional.inputs.probabilities import Samples, Scale, flatten_samples
from mpcs_torch.functional.inputs.soft_labels import SoftSamples, flatten_soft
from mpcs_torch.functional.probability.brier_score import brier_sums
from mpcs_torch.functional.probability.cross_entropy import entropy_sums
from mpcs_torch.functional.probability.generalized import power_sum
from mpcs_torch.functional.probability.measured_counts import count_probabilities
from mpcs_torch.functional.quality.confusion import count_pairs
from mpcs_torch.functional.soft.divergence import divergence_sums
from mpcs_torch.functional.soft.sums import soft_sums
from mpcs_torch.metrics.base import SumMetric
from tests.metrics.case import Batch, Fed, MetricCase
from tests.metrics.detection.cases import DETECTION, MORE_DETECTION
from tests.oracles import algorithm_1, naive

CLASSES = 4
CONCERN = ConcernSpec(CLASSES, releases=[[0, 1], [2, 3, 1]], factor=0.25)


def random_batch(size: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    return (
        2 * torch.randn(size, CLASSES, generator=generator),
        torch.randint(0, CLASSES, (size,), generator=generator),
    )


def soft_batch(size: int, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    logits = 2 * torch.randn(2, size, CLASSES, generator=generator)
    return logits[0].softmax(dim=1), logits[1].softmax(dim=1)


def decided(preds: Tensor, target: Tensor) -> Decisions:
    return flatten_decisions(preds, target, num_classes=CLASSES, ignore_index=None, sample_weight=None)


def flat(preds: Tensor, target: Tensor, scale: Scale = "logits") -> Samples:
    return flatten_samples(preds, target, num_classes=CLASSES, scale=scale, ignore_index=None, sample_weight=None)


def flat_soft(preds: Tensor, target: Tensor) -> SoftSamples:
    return flatten_soft(preds, target, num_classes=CLASSES, sample_weight=None, ignore=None)


HARD = Fed(
    draw=random_batch,
    bad=(torch.zeros(2, CLASSES), torch.tensor([0, CLASSES])),
    rule=r"target must hold class indices from 0 to 3 .*",
    quoted="4",
    ignoring={"ignore_index": -1},
    ignored=(torch.zeros(2, CLASSES), torch.tensor([-1, -1])),
)
WIDE = replace(HARD, draw=lambda size, seed: (random_batch(size, seed)[0].double(), random_batch(size, seed)[1]))
PROBABILITIES = replace(
    HARD,
    draw=lambda size, seed: (random_batch(size, seed)[0].softmax(1), random_batch(size, seed)[1]),
    bad=(torch.full((2, CLASSES), 1 / CLASSES), torch.tensor([0, CLASSES])),
)
SOFT = Fed(
    draw=soft_batch,
    bad=(torch.full((2, CLASSES), 0.5), torch.tensor([[1.0, 0.0, 0.0, 0.0], [2.0, 0.0, 0.0, 0.0]])),
    rule="target must hold degrees of truth from 0 to 1",
    quoted=r"\[2, 0, 0, 0\]",
    ignoring={},
    ignored=(torch.zeros(2, CLASSES), torch.zeros(2, CLASSES), None, torch.ones(2, CLASSES, dtype=torch.bool)),
)


def mpcs_oracle(batch: Batch) -> dict[str, float]:
    logits, target = batch
    concern = CONCERN.matrix().tolist()
    return {"": algorithm_1.score(logits.softmax(dim=1).tolist(), target.tolist(), 3, 20, concern)}


def dangerous_oracle(batch: Batch) -> dict[str, float]:
    logits, target = batch
    predictions = [max(range(CLASSES), key=row.__getitem__) for row in logits.tolist()]
    errors = [(true, guess) for true, guess in zip(target.tolist(), predictions, strict=True) if true != guess]
    dangerous = len([pair for pair in errors if pair not in {(0, 1), (2, 3), (2, 1)}])
    return {"": dangerous}


def expected_concern_oracle(batch: Batch) -> dict[str, float]:
    """Decide for the class of minimum risk, and sum the concern of wrong decisions."""
    logits, target = batch
    concern = CONCERN.matrix().tolist()
    cost, constant = 0.0, [0.0] * CLASSES
    for row, true in zip(logits.softmax(dim=1).tolist(), target.tolist(), strict=True):
        risks = [sum(row[i] * concern[i][j] for i in range(CLASSES) if i != j) for j in range(CLASSES)]
        decided = min(range(CLASSES), key=risks.__getitem__)
        cost += concern[true][decided] if decided != true else 0.0
        constant = [total + (concern[true][j] if j != true else 0.0) for j, total in enumerate(constant)]
    return {"": cost / min(constant)}


# In both batches class 0 is true and predicted, and no released class is near.
MPCS_AGREEING = (torch.tensor([[9.0, -9.0, 0.0, 1.0]]), torch.tensor([0]))

CASES: dict[type[SumMetric], MetricCase] = {
    MetaPatternConcernScore: MetricCase(
        make=lambda **settings: MetaPatternConcernScore(CLASSES, k=3, t=20, concern=CONCERN, **settings),
        higher_is_better=False,
        make_other=lambda: MetaPatternConcernScore(CLASSES, k=3, t=20),
        agreeing_batch=MPCS_AGREEING,
        oracle=mpcs_oracle,
        core=lambda logits, target: score_terms(
            pattern_terms(logits.softmax(dim=1), target, k=3, t=20, concern=CONCERN.matrix()),
            k=3,
            correct_concern="sum",
        ),
        fed=HARD,
    ),
    DangerousErrors: MetricCase(
        make=lambda **settings: DangerousErrors(CLASSES, concern=CONCERN, **settings),
        higher_is_better=False,
        make_other=lambda: DangerousErrors(CLASSES),
        agreeing_batch=MPCS_AGREEING,
        oracle=dangerous_oracle,
        core=lambda logits, target: count_dangerous(decided(logits, target), CONCERN.released()),
        fed=HARD,
    ),
    ExpectedConcern: MetricCase(
        make=lambda **settings: ExpectedConcern(CLASSES, concern=CONCERN, decision="least_concern", **settings),
        higher_is_better=False,
        make_other=lambda: ExpectedConcern(CLASSES, concern=CONCERN),
        agreeing_batch=(torch.tensor([[9.0, -9.0, 0.0, 1.0], [0.0, 9.0, 0.0, 1.0]]), torch.tensor([0, 1])),
        oracle=expected_concern_oracle,
        core=lambda logits, target: sum_costs(
            decide(
                logits,
                target,
                concern=CONCERN.matrix(),
                decision="least_concern",
                from_logits=True,
                ignore_index=None,
                sample_weight=None,
            ),
            CONCERN.matrix(),
        ),
        fed=HARD,
    ),
}


def quality_case(kind: type[SumMetric], name: str | None, higher_is_better: bool | None) -> MetricCase:
    """Describe a metric of a confusion matrix; another ignore_index agrees on batches without that label."""
    options = {"zero_division": 0.0} if name in naive.ONEDAL or kind is metrics.MulticlassQualityMetrics else {}

    def oracle(batch: Batch) -> dict[str, float]:
        logits, target = batch
        values = naive.quality(logits.tolist(), target.tolist(), CLASSES)
        if kind is metrics.ClassErrorRates:
            return {str(label): rate for label, rate in enumerate(values["class_error_rates"])}
        return {entry: values[entry] for entry in naive.ONEDAL} if name is None else {"": values[name]}

    return MetricCase(
        make=lambda **settings: kind(CLASSES, **options, **settings),
        higher_is_better=higher_is_better,
        make_other=lambda: kind(CLASSES, **options, ignore_index=3),
        agreeing_batch=(torch.eye(CLASSES)[:3], torch.arange(3)),
        oracle=oracle,
        core=lambda logits, target: (count_pairs(decided(logits, target)),),
        fed=HARD,
    )


def soft_case(kind: type[SumMetric], beta: float, options: dict[str, Any] | None = None) -> MetricCase:
    """Describe a macro-averaged soft score; perfect predictions get 1 with any average."""
    return MetricCase(
        make=lambda **settings: kind(CLASSES, average="macro", **(options or {}), **settings),
        higher_is_better=True,
        make_other=lambda: kind(CLASSES, **(options or {})),
        agreeing_batch=(torch.eye(CLASSES), torch.eye(CLASSES)),
        oracle=lambda batch: {"": naive.macro_soft_fbeta(batch[0].tolist(), batch[1].tolist(), beta)},
        core=lambda p, y: soft_sums(flat_soft(p, y), torch.float64),
        fed=SOFT,
        make_stranger=metrics.SoftKLDivergence,  # soft scores share their sums
    )


def mean_case(kind: type[SumMetric], power: float) -> MetricCase:
    """Describe a mean of the probability of the true class; the floor changes nothing if this probability is high."""

    def oracle(batch: Batch) -> dict[str, float]:
        logits, target = batch
        probs = [row[label] for row, label in zip(logits.softmax(1).tolist(), target.tolist(), strict=True)]
        return {"": naive.generalized_mean(probs, power, 0.005)}

    return MetricCase(
        make=lambda **settings: kind(CLASSES, **settings),
        higher_is_better=True,
        make_other=lambda: kind(CLASSES, epsilon=0.2),
        agreeing_batch=MPCS_AGREEING,
        oracle=oracle,
        core=lambda logits, target: (
            power_sum(
                logits.softmax(1).gather(1, target.unsqueeze(1)).squeeze(1), torch.ones(40).double(), power, 0.005
            ),
        ),
        fed=HARD,
    )


def probability_case(cells: int | None, *, from_logits: bool = True) -> MetricCase:
    """Describe the means and the slope; if all decisions are right, the number of bins changes nothing."""
    options: dict[str, Any] = {"delta": None, "cells": cells, "from_logits": from_logits}

    def oracle(batch: Batch) -> dict[str, float]:
        probs = batch[0].softmax(1) if from_logits else batch[0]
        return naive.probability_accuracy(probs.tolist(), batch[1].tolist(), n_bins=3, epsilon=0.005)

    logits, target = MPCS_AGREEING
    return MetricCase(
        make=lambda **settings: metrics.ProbabilityAccuracy(CLASSES, n_bins=3, **options, **settings),
        higher_is_better=None,
        make_other=lambda: metrics.ProbabilityAccuracy(CLASSES, n_bins=2, **options),
        agreeing_batch=(logits if from_logits else logits.softmax(1), target),
        oracle=oracle,
        core=lambda scores, labels: count_probabilities(scores.softmax(1), labels, labels >= 0, 1000),
        fed=HARD if from_logits else PROBABILITIES,
        make_stranger=lambda: metrics.ProbabilityAccuracy(CLASSES, epsilon=0.1, **options),  # others share the states
    )


def entropy_case(*, normalized: bool) -> MetricCase:
    """Describe the cross entropy of logits or of log-probabilities."""

    def draw(size: int, seed: int) -> Batch:
        logits, target = WIDE.draw(size, seed)
        return logits.log_softmax(1), target

    uniform = torch.full((2, CLASSES), 1 / CLASSES).log()
    return MetricCase(
        make=lambda **settings: metrics.CrossEntropy(CLASSES, normalized=normalized, **settings),
        higher_is_better=False,
        make_other=lambda: metrics.CrossEntropy(CLASSES, normalized=normalized, ignore_index=3),
        agreeing_batch=(torch.eye(CLASSES)[:3].log_softmax(1), torch.arange(3)),
        oracle=lambda batch: {"": naive.cross_entropy(batch[0].softmax(1).tolist(), batch[1].tolist())},
        core=lambda scores, target: entropy_sums(flat(scores, target, "log_probs" if normalized else "logits")),
        fed=replace(HARD, draw=draw, bad=(uniform, torch.tensor([0, CLASSES]))) if normalized else WIDE,
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
CASES |= {kind: quality_case(kind, name, higher) for kind, (name, higher) in SINGLE.items()}
CASES |= {
    metrics.MulticlassQualityMetrics: quality_case(metrics.MulticlassQualityMetrics, None, None),
    metrics.ClassErrorRates: quality_case(metrics.ClassErrorRates, None, False),
    metrics.SoftPrecision: soft_case(metrics.SoftPrecision, 0.0),
    metrics.SoftRecall: soft_case(metrics.SoftRecall, float("inf")),
    metrics.SoftF1: soft_case(metrics.SoftF1, 1.0),
    metrics.SoftFBeta: soft_case(metrics.SoftFBeta, 2.0, {"beta": 2.0}),
    metrics.SoftKLDivergence: MetricCase(
        make=lambda **settings: metrics.SoftKLDivergence(**settings),
        higher_is_better=False,
        make_other=lambda: metrics.SoftKLDivergence(epsilon=0.1),
        agreeing_batch=(torch.full((1, CLASSES), 0.25), torch.full((1, CLASSES), 0.5)),
        oracle=lambda batch: {"": naive.soft_kl_divergence(batch[0].tolist(), batch[1].tolist())},
        core=lambda p, y: divergence_sums(flat_soft(p, y), epsilon=0.0),
        fed=SOFT,
    ),
    metrics.GeometricAccuracy: mean_case(metrics.GeometricAccuracy, 0.0),
    metrics.Decisiveness: mean_case(metrics.Decisiveness, 1.0),
    metrics.Robustness: mean_case(metrics.Robustness, -2 / 3),
    metrics.ProbabilityAccuracy: probability_case(None),
    metrics.BrierScore: MetricCase(
        make=lambda **settings: metrics.BrierScore(CLASSES, **settings),
        higher_is_better=False,
        make_other=lambda: metrics.BrierScore(CLASSES, over_classes="mean"),
        agreeing_batch=(100 * torch.eye(CLASSES), torch.arange(CLASSES)),
        oracle=lambda batch: {"": naive.brier_score(batch[0].softmax(1).tolist(), batch[1].tolist())},
        core=lambda logits, target: brier_sums(flat(logits, target)),
        fed=WIDE,
        make_stranger=lambda: metrics.BrierScore(CLASSES, ignore_index=3),  # the other one shares the states
    ),
    metrics.CrossEntropy: entropy_case(normalized=False),
    **DETECTION,
}
BY_NAME = {kind.__name__: case for kind, case in CASES.items()}
BY_NAME |= {  # settings with states of their own
    "ProbabilityAccuracy by cells": probability_case(100_000),
    "ProbabilityAccuracy of probabilities": probability_case(None, from_logits=False),
    "CrossEntropy of log-probabilities": entropy_case(normalized=True),
    **MORE_DETECTION,
}


def values_of(computed: Tensor | dict[str, Tensor] | ErrorRates) -> dict[str, float]:
    if isinstance(computed, Tensor) and computed.ndim:
        return {str(index): value for index, value in enumerate(computed.tolist())}
    if isinstance(computed, ErrorRates):
        return {k: v for name, part in computed._asdict().items() for k, v in enumerated(name, part.reshape(-1))}
    named = computed if isinstance(computed, dict) else {"": computed}
    return {name: value.item() for name, value in named.items()}


def enumerated(name: str, values: Tensor) -> list[tuple[str, float]]:
    return [(f"{name} {index}", value) for index, value in enumerate(values.tolist())]
