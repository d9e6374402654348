"""Detection metrics beyond the laws: classes, points, thresholds from other metrics, and memory."""

import math
import warnings
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from matplotlib import pyplot
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.wrappers import BootStrapper, MinMaxMetric

from mpcs_torch import OperatingPoint
from mpcs_torch.functional import (
    ReversedScoresWarning,
    detection_curve,
    equal_error_rate,
)
from mpcs_torch.metrics import (
    ActualDetectionCost,
    Cllr,
    DetectionCurve,
    EqualErrorRate,
    FalseAlarmAtMiss,
    HalfTotalErrorRate,
    MinCllr,
    MinDetectionCost,
)
from mpcs_torch.processes import World
from tests.conftest import details
from tests.metrics.detection.cases import CLASSES, POINTS, class_scores, detections
from tests.processes.forked import forked_world, succeeded
from tests.refused import Refused

SCORES, LABELS = detections(60, 0)
BY_CLASS = class_scores(60, 0)


def updated(metric: Metric, batch: tuple[Tensor, Tensor] = (SCORES, LABELS)) -> Any:
    metric.update(*batch)
    return metric


@pytest.mark.parametrize(
    ("dtype", "size"), [(torch.float16, 3), (torch.float32, 5), (torch.float64, 9)]
)
@pytest.mark.parametrize("kind", [EqualErrorRate, Cllr, MinCllr, DetectionCurve])
def test_each_trial_takes_the_bytes_of_its_score_and_one_for_the_label(
    dtype: torch.dtype, size: int, kind: type[Metric]
) -> None:
    metric = updated(kind(), (SCORES.to(dtype), LABELS))
    kept = sum(tensor.nbytes for tensor in [*metric.scores, *metric.trial_labels])
    assert kept == size * len(SCORES)
    many = updated(kind(CLASSES), (BY_CLASS[0].to(dtype), BY_CLASS[1]))
    assert (
        sum(tensor.nbytes for tensor in [*many.scores, *many.trial_labels])
        <= size * BY_CLASS[0].numel()
    )


def test_classes_are_evaluated_one_by_one_averaged_or_all_at_once() -> None:
    scores, target = BY_CLASS
    one_hot = target.unsqueeze(1) == torch.arange(CLASSES)
    alone = [
        equal_error_rate(*pair).item() for pair in zip(scores.T, one_hot.T, strict=True)
    ]
    micro = equal_error_rate(scores.flatten(), one_hot.flatten()).item()
    averages: dict[Any, Any] = {
        "none": alone,
        "macro": sum(alone) / CLASSES,
        "micro": micro,
    }
    for average, expected in averages.items():
        metric = updated(EqualErrorRate(CLASSES, average=average), BY_CLASS)
        assert metric.compute().tolist() == pytest.approx(expected)
    curves = updated(DetectionCurve(CLASSES), BY_CLASS).compute()
    for curve, *pair in zip(curves, scores.T, one_hot.T, strict=True):
        assert torch.equal(curve.p_miss, detection_curve(*pair).p_miss)


def test_points_and_classes_are_two_dimensions() -> None:
    metric = updated(
        MinDetectionCost(POINTS, num_classes=CLASSES, average="none"), BY_CLASS
    )
    assert metric.compute().shape == metric.thresholds().shape == (2, CLASSES)
    for label in range(CLASSES):
        alone = details(
            MinDetectionCost(POINTS[1]), BY_CLASS[0][:, label], BY_CLASS[1] == label
        )
        assert metric.compute()[1, label] == alone.normalized
    macro = updated(MinDetectionCost(POINTS, num_classes=CLASSES), BY_CLASS)
    assert torch.equal(macro.compute(), metric.compute().mean(dim=1))


def test_learned_thresholds_are_taken_at_the_time_of_the_call() -> None:
    development = MinDetectionCost(POINTS, num_classes=CLASSES)
    evaluation = updated(ActualDetectionCost(POINTS, num_classes=CLASSES), BY_CLASS)
    with Refused("not_updated", "MinDetectionCost.compute"):
        evaluation.threshold_from(development)
    for seed in (1, 2):
        updated(development, class_scores(40, seed))
        evaluation.threshold_from(development)
        thresholds = development.thresholds()
        for place, label in ((0, 1), (1, 3)):
            alone = details(
                ActualDetectionCost(
                    POINTS[place], threshold=thresholds[place, label].item()
                ),
                BY_CLASS[0][:, label],
                BY_CLASS[1] == label,
            )
            assert evaluation.details().normalized[place, label] == alone.normalized
        assert torch.equal(
            evaluation.compute(), evaluation.details().normalized.mean(dim=1)
        )
    before = evaluation.compute()
    updated(development, class_scores(400, 3))
    assert torch.equal(evaluation.clone().compute(), before), (
        "later batches of the other metric must not matter"
    )


def test_a_learned_threshold_is_no_setting_of_others() -> None:
    evaluation = HalfTotalErrorRate()
    other = copy(evaluation)
    evaluation.threshold_from(updated(EqualErrorRate()))
    assert evaluation.thresholds_in_use != [[0.0]]
    assert other.thresholds_in_use == [[0.0]]
    assert (evaluation.threshold, evaluation.points) == (None, (OperatingPoint(0.5),))


ANY_SCORE = st.one_of(
    st.sampled_from([-math.inf, math.inf, 1e308, 1.5e308, 1.0, math.nextafter(1.0, 2.0)]),
    st.floats(allow_nan=False),
)
ANY_TRIALS = st.lists(st.tuples(ANY_SCORE, st.booleans()), min_size=2, max_size=12).filter(
    lambda trials: (
        len({label for _, label in trials}) == 2 and (math.inf, False) not in trials
    )
)


@pytest.mark.filterwarnings("ignore:the area under the ROC")
@given(ANY_TRIALS, st.sampled_from([0.01, 0.1, 0.5, 0.8, 0.9]))
def test_a_learned_threshold_gives_the_same_values_on_the_same_scores(
    trials: list[tuple[float, bool]], p_target: float
) -> None:
    """Except if a non-target scores infinity, which no threshold rejects."""
    scores, labels = zip(*trials, strict=True)
    batch = torch.tensor(scores, dtype=torch.float64), torch.tensor(labels)
    point = OperatingPoint(p_target)
    costs = (
        updated(MinDetectionCost(point), batch),
        updated(ActualDetectionCost(point), batch),
    )
    costs[1].threshold_from(costs[0])
    assert costs[1].details() == costs[0].details()
    rates = (
        updated(EqualErrorRate(method="nearest"), batch),
        updated(HalfTotalErrorRate(), batch),
    )
    rates[1].threshold_from(rates[0])
    assert rates[1].compute() == rates[0].compute()


def test_costs_of_points_and_classes_are_drawn() -> None:
    metric = updated(
        MinDetectionCost(POINTS, num_classes=CLASSES, average="none"), BY_CLASS
    )
    figure, _ = metric.plot(metric.compute())
    assert len(figure.axes[0].lines) == len(POINTS) * CLASSES
    pyplot.close(figure)


@pytest.mark.parametrize(
    "metric",
    [EqualErrorRate(), MinDetectionCost(POINTS), Cllr(), HalfTotalErrorRate(0.0)],
    ids=lambda metric: type(metric).__name__,
)
def test_a_batch_without_targets_has_the_value_nan(metric: Metric) -> None:
    warning = (
        f"{type(metric).__name__} needs targets and non-targets, but has seen no targets"
    )
    with pytest.warns(UserWarning, match=warning):
        assert metric(SCORES, torch.zeros_like(LABELS)).isnan().all()
    with pytest.warns(UserWarning, match=warning):
        assert metric.compute().isnan().all()
    assert updated(metric).compute().isfinite().all()


def test_a_curve_without_non_targets_is_nan() -> None:
    with pytest.warns(UserWarning, match="has seen no non-targets"):
        curve: Any = DetectionCurve()(SCORES, torch.ones_like(LABELS))
    assert curve.p_fa.isnan().all()


def test_a_class_that_never_occurs_makes_the_mean_nan() -> None:
    metric = updated(EqualErrorRate(CLASSES), (BY_CLASS[0], BY_CLASS[1].clamp(max=2)))
    with pytest.warns(UserWarning, match="has seen no targets of class 3: its value"):
        assert metric.compute().isnan()


@pytest.mark.filterwarnings("ignore:EqualErrorRate needs targets")
@pytest.mark.parametrize("wrap", [MinMaxMetric, partial(BootStrapper, num_bootstraps=3)])
def test_wrappers_take_a_batch_without_targets(
    wrap: Callable[[EqualErrorRate], Metric],
) -> None:
    values = wrap(EqualErrorRate())(torch.rand(8), torch.zeros(8, dtype=torch.int64))
    name = "raw" if wrap is MinMaxMetric else "mean"
    assert values[name].isnan()


def test_no_threshold_is_learned_without_targets() -> None:
    learned = updated(EqualErrorRate(), (torch.rand(8), torch.zeros(8, dtype=torch.int64)))
    with (
        pytest.warns(UserWarning, match="has seen no targets"),
        Refused("no_threshold", "source"),
    ):
        HalfTotalErrorRate().threshold_from(learned)


def test_reversed_scores_give_a_warning_unless_by_chance() -> None:
    metric, batch = (
        EqualErrorRate(2),
        (torch.tensor([[0.0, 0.0], [1.0, 0.5]]), torch.tensor([0, 1])),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metric(*batch)
    for _ in range(3):
        metric.update(*batch)
    with pytest.warns(
        ReversedScoresWarning, match=r"the area under the ROC of class 0 is 0, below 1/2"
    ):
        metric.compute()


@pytest.mark.parametrize("classes", [127, 128, 300])
def test_a_process_without_trials_agrees_with_one_that_has_all(
    classes: int, tmp_path: Path
) -> None:
    """However many bytes the labels take; what is kept is not changed."""
    scores, labels = torch.eye(classes).repeat(2, 1), torch.arange(classes).repeat(2)
    scores[classes - 1] = 0  # so that one rate is not 0
    alone = updated(EqualErrorRate(classes, average="none"), (scores, labels)).compute()

    def compute(world: World) -> None:
        metric = EqualErrorRate(classes, average="none")
        if world.is_first:
            metric.update(scores, labels)
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # torchmetrics warns of a process without trials
            assert torch.equal(metric.compute(), alone)
        assert sum(map(len, metric.trial_labels)) == (2 * classes if world.is_first else 0)

    assert succeeded(forked_world(tmp_path, 2, compute))


@pytest.mark.parametrize(
    ("classes", "batch"), [(None, (SCORES, LABELS)), (CLASSES, BY_CLASS)]
)
def test_the_curve_of_each_class_is_drawn(classes: int | None, batch: Any) -> None:
    metric = updated(DetectionCurve(classes), batch)
    for given_curves in (None, metric.compute()):
        figure, axes = metric.plot(given_curves)
        lines = [line for line in axes.lines if len(line.get_xdata()) > 2]
        assert len(lines) == (classes or 1)
        pyplot.close(figure)


@pytest.mark.parametrize(
    ("call", "refusal"),
    [
        (lambda: MinDetectionCost([]), Refused("not_empty", "points")),
        (
            lambda: MinDetectionCost([(0.5, 1, 1)]),
            Refused("instance", "points", (0.5, 1, 1), type="OperatingPoint"),
        ),
        (
            lambda: MinDetectionCost(OperatingPoint(1e-290, c_miss=1e-50)),
            Refused(
                "at_least", "p_target * c_miss and (1 - p_target) * c_fa", minimum=1e-300
            ),
        ),
        (lambda: FalseAlarmAtMiss(1.5), Refused("between", "p_miss")),
        (lambda: EqualErrorRate(1), Refused("at_least", "num_classes", 1, minimum=2)),
        (lambda: DetectionCurve(3, average="macro"), Refused("one_of", "average", "macro")),
        (lambda: HalfTotalErrorRate("0.5"), Refused("number_or_none", "threshold", "0.5")),
        (
            lambda: HalfTotalErrorRate().threshold_from(MinDetectionCost(POINTS)),
            Refused("other_points", "source"),
        ),
        (
            lambda: ActualDetectionCost(POINTS, num_classes=3).threshold_from(
                EqualErrorRate(3, average="micro")
            ),
            Refused(
                "other_detectors", "source", ours="3 classes", theirs="3 classes (micro)"
            ),
        ),
        (
            lambda: ActualDetectionCost(POINTS).threshold_from(EqualErrorRate(3)),
            Refused("other_detectors", "source", ours="no classes", theirs="3 classes"),
        ),
        (
            lambda: ActualDetectionCost(POINTS).threshold_from(Cllr()),
            Refused("instance", "source"),
        ),
        (
            lambda: EqualErrorRate(3).update(*BY_CLASS),
            Refused("class_dimension", "preds", classes=3),
        ),
    ],
)
def test_wrong_arguments_are_refused(call: Any, refusal: Refused) -> None:
    with refusal:
        call()
