"""Metrics in Ignite's engines, and their states; `test_situations` has the handler that selects checkpoints."""

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from ignite.engine import Engine, Events
from ignite.metrics import Accuracy as IgniteAccuracy
from ignite.metrics import Metric as IgniteMetric
from ignite.metrics import MetricGroup, RunningAverage
from ignite.metrics.metric import (
    BatchWise,
    EpochWise,
    MetricUsage,
    RunningBatchWise,
    RunningEpochWise,
    SingleEpochRunningBatchWise,
)
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassF1Score,
)

from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.integrations.ignite import TorchMetric
from mpcs_torch.metrics import Accuracy, MacroF1, RiskCoverageArea
from tests.refused import Refused

GENERATOR = torch.Generator().manual_seed(0)
BATCHES = [(torch.randn(5, 3, generator=GENERATOR), torch.arange(5) % 3) for _ in range(4)]


def measured(metric: Any, engine: Engine, **settings: Any) -> dict[str, Any]:
    TorchMetric(metric, **settings).attach(engine, "name")
    for _ in range(2):  # the second run must not count samples of the first
        engine.run(BATCHES)
    metrics: dict[str, Any] = engine.state.metrics
    return metrics


def test_values_are_those_of_the_metrics_whatever_the_engine_gives() -> None:
    parts: dict[str, Any] = {"mpcs": MetaPatternConcernScore(3), "accuracy": Accuracy(3)}
    logits, target = [torch.cat(column) for column in zip(*BATCHES, strict=True)]
    expected = {name: float(part(logits, target)) for name, part in parts.items()}
    named = Engine(lambda engine, batch: {"y_pred": batch[0], "y": batch[1]})
    values = measured(MetricCollection(parts), named)
    assert {name: float(values[name]) for name in parts} == pytest.approx(expected)
    swapped = Engine(lambda engine, batch: batch[::-1])
    values = measured(parts["mpcs"], swapped, output_transform=lambda output: output[::-1])
    assert values["name"] == pytest.approx(expected["mpcs"])


METRICS: dict[str, Callable[[], Metric | MetricCollection]] = {
    "kept samples": lambda: RiskCoverageArea(3),
    "collection": lambda: MetricCollection({"f1": MacroF1(3), "accuracy": Accuracy(3)}),
    "lists of torchmetrics": lambda: MulticlassAUROC(3),
    "collection of torchmetrics": lambda: MetricCollection(
        [MulticlassAccuracy(3), MulticlassF1Score(3)]
    ),
}


def after(metric: IgniteMetric, *batches: Any) -> IgniteMetric:
    for batch in batches:
        metric.update(batch)
    return metric


@pytest.mark.parametrize("make", METRICS.values(), ids=METRICS)
def test_a_restored_metric_goes_on_with_its_batches(
    make: Callable[[], Metric | MetricCollection],
) -> None:
    expected = after(TorchMetric(make()), *BATCHES).compute()
    saved = after(TorchMetric(make()), *BATCHES[:2])
    state, half = saved.state_dict(), saved.compute()
    file = io.BytesIO()
    torch.save(state, file)
    assert after(saved, *BATCHES[2:]).compute() == expected
    new, used = TorchMetric(make()), after(TorchMetric(make()), *BATCHES[1:])
    used.compute()
    of_file = torch.load(io.BytesIO(file.getvalue()), weights_only=True)
    for metric, values in ((used, of_file), (new, state), (new, state)):
        metric.load_state_dict(values)  # further batches have not changed them
        assert metric.compute() == half
        assert after(metric, *BATCHES[2:]).compute() == expected


@pytest.mark.parametrize(
    ("saved", "other"),
    [
        (Accuracy(3), MulticlassAccuracy(3)),
        (Accuracy(3), Accuracy(4)),
        (MulticlassAccuracy(3), MulticlassF1Score(3)),
        (MulticlassAccuracy(3), MulticlassAccuracy(4)),
    ],
)
def test_states_of_other_metrics_are_refused(saved: Metric, other: Metric) -> None:
    state = after(TorchMetric(saved), BATCHES[0]).state_dict()
    with Refused("of_metrics", "state_dict"):
        TorchMetric(other).load_state_dict(state)


def test_groups_and_running_averages_save_our_states() -> None:
    def group() -> MetricGroup:
        return MetricGroup({"ours": TorchMetric(Accuracy(3)), "theirs": IgniteAccuracy()})

    restored, whole = group(), after(group(), *BATCHES).compute()
    restored.load_state_dict(after(group(), *BATCHES[:2]).state_dict())
    values = after(restored, *BATCHES[2:]).compute()
    assert values["ours"] == values["theirs"] == pytest.approx(whole["ours"])
    average = RunningAverage(TorchMetric(Accuracy(3)))
    average.load_state_dict(average.state_dict())


@pytest.mark.parametrize(
    "usage",
    [EpochWise, BatchWise, RunningEpochWise, RunningBatchWise, SingleEpochRunningBatchWise],
)
def test_each_usage_is_that_of_a_metric_of_ignite(usage: type[MetricUsage]) -> None:
    engine, seen = Engine(lambda engine, batch: batch), []
    collection = MetricCollection({"of collection": Accuracy(3)})
    IgniteAccuracy().attach(engine, "theirs", usage=usage())
    TorchMetric(Accuracy(3)).attach(engine, "ours", usage=usage())
    TorchMetric(collection).attach(engine, "all", usage=usage())
    RunningAverage(TorchMetric(Accuracy(3))).attach(engine, "our average")
    RunningAverage(IgniteAccuracy()).attach(engine, "their average")
    engine.add_event_handler(
        Events.ITERATION_COMPLETED, lambda: seen.append(dict(engine.state.metrics))
    )
    engine.run(BATCHES, max_epochs=2)
    for metrics in (*seen, engine.state.metrics):
        assert metrics.get("ours") == metrics.get("theirs") == metrics.get("of collection")
        assert metrics.get("our average") == metrics.get("their average")
    assert "ours" in engine.state.metrics
