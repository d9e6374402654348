"""Ignite's engines take the path of the plain loop."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from ignite.engine import (
    Engine,
    Events,
    create_supervised_evaluator,
    create_supervised_trainer,
)
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
from torch.utils.data import DataLoader
from torchmetrics import Metric, MetricCollection
from torchmetrics.classification import (
    MulticlassAccuracy,
    MulticlassAUROC,
    MulticlassConfusionMatrix,
    MulticlassF1Score,
)

from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.integrations.ignite import SelectCheckpoint, TorchMetric
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.metrics import Accuracy, MacroF1, RiskCoverageArea
from tests.integrations import plain_loop as plain
from tests.refused import Refused


def test_pick_weights_and_learning_rates_are_those_of_the_plain_loop(
    tmp_path: Path,
) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    train, valid = (DataLoader(split, plain.BATCH) for split in plain.data())
    net = plain.model()
    optimizer = torch.optim.SGD(net.parameters(), lr=plain.RATE)
    scheduler, rates = plain.scheduler(optimizer), []
    selector = CheckpointSelector(tmp_path / "ignite", plain.rule())
    trainer = create_supervised_trainer(net, optimizer, plain.loss())
    evaluator = create_supervised_evaluator(net)
    for name, metric in plain.metrics().items():
        TorchMetric(metric).attach(evaluator, name)
    evaluator.add_event_handler(
        Events.COMPLETED, SelectCheckpoint(selector, state=net.state_dict, trainer=trainer)
    )
    evaluator.add_event_handler(
        Events.COMPLETED, lambda: scheduler.step(evaluator.state.metrics["mpcs"])
    )
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(valid))
    trainer.add_event_handler(
        Events.EPOCH_COMPLETED, lambda: rates.append(scheduler.get_last_lr()[0])
    )
    trainer.run(train, max_epochs=plain.EPOCHS)
    counted_from_1 = expected._replace(picked=expected.picked + 1)
    scores = [epoch.values["mpcs"] for epoch in selector.epochs]
    plain.assert_same(counted_from_1, selector, selector.load_best(), rates, scores)


def test_evaluations_around_the_training_are_not_recorded(tmp_path: Path) -> None:
    trainer, evaluator = Engine(lambda *_: None), Engine(lambda *_: None)
    evaluator.add_event_handler(
        Events.COMPLETED,
        lambda engine: engine.state.metrics.update(mpcs=engine.state.output),
    )
    evaluator.add_event_handler(
        Events.ITERATION_COMPLETED, lambda engine: setattr(engine.state, "output", 1.0)
    )
    rule = SelectionRule("mpcs", {"mpcs": "min"})
    best = SelectCheckpoint(tmp_path / "best", rule, state=dict, trainer=trainer)
    evaluator.add_event_handler(Events.COMPLETED, best)
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run([0]))
    evaluator.run([0])
    trainer.run([0], max_epochs=2)
    evaluator.run([0])
    assert [epoch.number for epoch in best.selector.epochs] == [1, 2]


def measured(metric: Any, **given: Any) -> dict[str, Any]:
    net, (_, valid) = plain.model(), plain.data()
    evaluator = Engine(lambda engine, batch: {"y_pred": net(batch[0]), "y": batch[1]})
    TorchMetric(metric, **given).attach(evaluator, "given")
    for _ in range(2):  # the second run must not count samples of the first
        evaluator.run(DataLoader(valid, plain.BATCH))
    metrics: dict[str, Any] = evaluator.state.metrics
    return metrics


def test_a_collection_gives_each_of_its_values() -> None:
    found = measured(MetricCollection(plain.metrics()))
    alone = {name: measured(metric)["given"] for name, metric in plain.metrics().items()}
    assert {name: float(found[name]) for name in alone} == alone


def test_the_output_of_an_engine_can_be_transformed() -> None:
    chosen = measured(
        plain.metrics()["mpcs"],
        output_transform=lambda output: (output["y_pred"], output["y"]),
    )
    assert chosen == measured(plain.metrics()["mpcs"])


METRICS: dict[str, Callable[[], Metric | MetricCollection]] = {
    "sums": lambda: Accuracy(3),
    "kept samples": lambda: RiskCoverageArea(3),
    "collection": lambda: MetricCollection(
        {"mpcs": MetaPatternConcernScore(3), "f1": MacroF1(3), "acc": Accuracy(3)}
    ),
    "torchmetrics": lambda: MulticlassAccuracy(3),
    "lists of torchmetrics": lambda: MulticlassAUROC(3),
    "collection of torchmetrics": lambda: MetricCollection(
        [MulticlassAccuracy(3), MulticlassF1Score(3)]
    ),
}
GENERATOR = torch.Generator().manual_seed(0)
BATCHES = [(torch.randn(5, 3, generator=GENERATOR), torch.arange(5) % 3) for _ in range(4)]


def after(metric: IgniteMetric, *batches: Any) -> IgniteMetric:
    for batch in batches:
        metric.update(batch)
    return metric


@pytest.mark.parametrize("name", METRICS)
def test_a_restored_metric_goes_on_with_its_batches(name: str) -> None:
    def make() -> TorchMetric:
        return TorchMetric(METRICS[name]())

    expected = after(make(), *BATCHES).compute()
    saved = after(make(), *BATCHES[:2])
    state, half = saved.state_dict(), saved.compute()
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    restored, used = make(), after(make(), *BATCHES[1:])
    used.compute()
    restored.load_state_dict(torch.load(file, weights_only=True))
    assert restored.compute() == half
    used.load_state_dict(state)
    for metric in (restored, used, saved):
        assert after(metric, *BATCHES[2:]).compute() == expected
    again = make()
    again.load_state_dict(state)  # updates have not changed it
    assert again.compute() == half


def test_a_state_of_another_metric_is_refused() -> None:
    state = TorchMetric(Accuracy(3)).state_dict()
    with Refused("of_metrics", "state_dict"):
        TorchMetric(MulticlassAccuracy(3)).load_state_dict(state)
    with Refused("of_metrics", "state_dict"):
        TorchMetric(Accuracy(4)).load_state_dict(state)
    for metric in (TorchMetric(Accuracy(3)), IgniteAccuracy()):
        with pytest.raises(ValueError, match="Argument state_dict should be a dictionary"):
            metric.load_state_dict({})


def test_groups_and_running_averages_save_our_states() -> None:
    def group() -> MetricGroup:
        return MetricGroup({"ours": TorchMetric(Accuracy(3)), "theirs": IgniteAccuracy()})

    restored, average = group(), RunningAverage(TorchMetric(Accuracy(3)))
    restored.load_state_dict(after(group(), *BATCHES[:2]).state_dict())
    values = after(restored, *BATCHES[2:]).compute()
    assert (
        values["ours"]
        == values["theirs"]
        == pytest.approx(after(group(), *BATCHES).compute()["ours"])
    )
    average.load_state_dict(average.state_dict())


@pytest.mark.parametrize(
    "usage",
    [EpochWise, BatchWise, RunningEpochWise, RunningBatchWise, SingleEpochRunningBatchWise],
)
def test_each_usage_is_that_of_a_metric_of_ignite(usage: type[MetricUsage]) -> None:
    engine, seen = Engine(lambda engine, batch: batch), []
    collection = TorchMetric(MetricCollection({"of collection": Accuracy(3)}))
    for name, metric in {
        "theirs": IgniteAccuracy(),
        "ours": TorchMetric(Accuracy(3)),
        "all": collection,
    }.items():
        metric.attach(engine, name, usage=usage())
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


@pytest.mark.parametrize(
    "other", [MulticlassF1Score(3), MulticlassAccuracy(4), MulticlassConfusionMatrix(3)]
)
def test_states_of_other_metrics_are_refused(other: Metric) -> None:
    saved = TorchMetric(MulticlassAccuracy(3))
    saved.update((torch.tensor([0, 1]), torch.tensor([0, 0])))
    with Refused("of_metrics", "state_dict"):
        TorchMetric(other).load_state_dict(saved.state_dict())
