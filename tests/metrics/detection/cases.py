"""The detection metrics as cases of the laws."""

from collections.abc import Callable
from dataclasses import astuple
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch import OperatingPoint, metrics
from mpcs_torch.functional.detection.errors import flatten_trials
from tests.metrics.case import Batch, Batches, MetricCase
from tests.oracles import naive_detection as naive
from tests.refused import Refused

CLASSES = 4
POINTS = [OperatingPoint(0.5), OperatingPoint(0.1, c_miss=3.0)]
OTHER_POINTS = [OperatingPoint(0.5), OperatingPoint(0.3)]
Scores, Labels = list[float], list[bool]


def kept(scores: Tensor, labels: Tensor, num_classes: int | None) -> tuple[Tensor, Tensor]:
    batch = flatten_trials(scores, labels, num_classes=num_classes, ignore_index=None)
    return batch.scores, batch.labels


def detections(size: int, seed: int) -> Batch:
    """Draw trials of which every third is a target, with scores far outside [0, 1] and some ties."""
    target = (torch.arange(size) % 3 == 1).long()
    noise = torch.randn(size, generator=torch.Generator().manual_seed(seed))
    return ((noise + 1.5 * target - 0.7) * 4).round() / 2, target


def class_scores(size: int, seed: int) -> Batch:
    target = torch.arange(size) % CLASSES
    noise = torch.randn(size, CLASSES, generator=torch.Generator().manual_seed(seed))
    return (noise + 1.5 * torch.eye(CLASSES)[target]) * 2 - 1, target


DETECTIONS = Batches(
    draw=detections,
    bad=(torch.tensor([-9.0, 0.0]), torch.tensor([1, 2])),
    refusal=Refused("trial_labels", "target", 2, sample=1),
    ignoring={"ignore_index": -1},
    ignored=(torch.zeros(2), torch.tensor([-1, -1])),
)
CLASS_SCORES = Batches(
    draw=class_scores,
    bad=(torch.zeros(2, CLASSES), torch.tensor([0, CLASSES])),
    refusal=Refused("class_indices", "target", 4, sample=1, last=3),
    ignoring={"ignore_index": -1},
    ignored=(torch.zeros(2, CLASSES), torch.tensor([-1, -1])),
)


def detection_case(
    make: Callable[..., Metric],
    make_other: Callable[[], Metric],
    oracle: Callable[[Scores, Labels], dict[str, float]],
    *,
    higher_is_better: bool = False,
) -> MetricCase:
    """Describe a metric of one detector; on scores that separate the classes widely, no setting matters."""
    return MetricCase(
        make=make,
        higher_is_better=higher_is_better,
        make_other=make_other,
        agreeing_batch=(torch.tensor([-9.0, 9.0]), torch.tensor([0, 1])),
        oracle=lambda batch: oracle(batch[0].tolist(), batch[1].bool().tolist()),
        given_core=lambda s, y: kept(s, y, None),
        batches=DETECTIONS,
        # Other settings share the states.
        make_stranger=lambda: make(ignore_index=7),
    )


def class_case(
    kind: type[Metric],
    oracle: Callable[[Scores, Labels], dict[str, float]],
    *,
    higher_is_better: bool | None = False,
) -> MetricCase:
    """Describe a metric of all classes at once; another ignore_index agrees where that label does not occur."""

    def micro(batch: Batch) -> dict[str, float]:
        is_class = batch[1].unsqueeze(1) == torch.arange(CLASSES)
        return oracle(batch[0].flatten().tolist(), is_class.flatten().tolist())

    return MetricCase(
        make=lambda **settings: kind(CLASSES, average="micro", **settings),
        higher_is_better=higher_is_better,
        make_other=lambda: kind(CLASSES, average="micro", ignore_index=3),
        agreeing_batch=(9 * torch.eye(CLASSES)[:3] - 4, torch.arange(3)),
        oracle=micro,
        given_core=lambda s, y: kept(s, y, CLASSES),
        batches=CLASS_SCORES,
    )


def costs(scores: Scores, labels: Labels) -> dict[str, float]:
    return {
        str(place): naive.min_cost(scores, labels, astuple(point))
        for place, point in enumerate(POINTS)
    }


def bayes_costs(scores: Scores, labels: Labels) -> dict[str, float]:
    return {
        str(place): naive.cost_at(scores, labels, point.bayes_threshold, astuple(point))
        for place, point in enumerate(POINTS)
    }


def named_curve(scores: Scores, labels: Labels) -> dict[str, float]:
    points = naive.curve(scores, labels)
    names = ("p_miss", "p_fa", "thresholds")
    rates = {
        f"{name} {row}": point[place]
        for place, name in enumerate(names)
        for row, point in enumerate(points)
    }
    return {**rates, "targets 0": sum(labels), "nontargets 0": len(labels) - sum(labels)}


def learned_cost(**settings: Any) -> Metric:
    """Make a metric with a learned threshold of 0.75, the middle of (0, 1.5)."""
    development = metrics.MinDetectionCost(OperatingPoint(0.5))
    development.update(torch.tensor([0.0, 1.5]), torch.tensor([0, 1]))
    evaluation = metrics.ActualDetectionCost(OperatingPoint(0.5), **settings)
    evaluation.threshold_from(development)
    return evaluation


DETECTION: dict[type[Metric], MetricCase] = {
    metrics.EqualErrorRate: detection_case(
        metrics.EqualErrorRate,
        lambda: metrics.EqualErrorRate(method="nearest"),
        lambda s, y: {"": naive.equal_error_rate(s, y)},
    ),
    metrics.MinDetectionCost: detection_case(
        partial(metrics.MinDetectionCost, POINTS),
        lambda: metrics.MinDetectionCost(OTHER_POINTS),
        costs,
    ),
    metrics.ActualDetectionCost: detection_case(
        partial(metrics.ActualDetectionCost, POINTS),
        lambda: metrics.ActualDetectionCost(OTHER_POINTS),
        bayes_costs,
    ),
    metrics.HalfTotalErrorRate: detection_case(
        partial(metrics.HalfTotalErrorRate, 0.25),
        lambda: metrics.HalfTotalErrorRate(2.25),
        lambda s, y: {"": naive.cost_at(s, y, 0.25, (0.5, 1.0, 1.0)) / 2},
    ),
    metrics.PartialAUC: detection_case(
        partial(metrics.PartialAUC, 0.3),
        lambda: metrics.PartialAUC(0.5),
        lambda s, y: {"": naive.partial_auc(s, y, 0.3)},
        higher_is_better=True,
    ),
    metrics.MissAtFalseAlarm: detection_case(
        partial(metrics.MissAtFalseAlarm, 0.3),
        lambda: metrics.MissAtFalseAlarm(0.5),
        lambda s, y: {"": naive.miss_at_false_alarm(s, y, 0.3)},
    ),
    metrics.FalseAlarmAtMiss: detection_case(
        partial(metrics.FalseAlarmAtMiss, 0.1),
        lambda: metrics.FalseAlarmAtMiss(0.5),
        lambda s, y: {
            "": naive.miss_at_false_alarm(
                [-score for score in s], [not target for target in y], 0.1
            )
        },
    ),
    metrics.PrecisionRecallBreakEven: class_case(
        metrics.PrecisionRecallBreakEven, lambda s, y: {"": naive.break_even(s, y)}
    ),
    metrics.HMeasure: class_case(
        metrics.HMeasure, lambda s, y: {"": naive.h_measure(s, y)}, higher_is_better=True
    ),
    metrics.Cllr: class_case(metrics.Cllr, lambda s, y: {"": naive.cllr(s, y)}),
    metrics.MinCllr: class_case(metrics.MinCllr, lambda s, y: {"": naive.min_cllr(s, y)}),
    metrics.DetectionCurve: class_case(
        metrics.DetectionCurve, named_curve, higher_is_better=None
    ),
}
MORE_DETECTION = {
    "ActualDetectionCost at a learned threshold": detection_case(
        learned_cost,
        lambda: metrics.ActualDetectionCost(OperatingPoint(0.5), threshold=-2.0),
        lambda s, y: {"": naive.cost_at(s, y, 0.75, (0.5, 1.0, 1.0))},
    ),
}
