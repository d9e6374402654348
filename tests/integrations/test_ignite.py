"""Ignite's engines take the path of the plain loop."""

from pathlib import Path
from typing import Any

import pytest
import torch
from ignite.engine import Engine, Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy as IgniteAccuracy
from ignite.metrics import RunningAverage
from ignite.metrics.metric import (
    BatchWise,
    EpochWise,
    MetricUsage,
    RunningBatchWise,
    RunningEpochWise,
    SingleEpochRunningBatchWise,
)
from torch.utils.data import DataLoader
from torchmetrics import MetricCollection

from mpcs_torch.integrations.ignite import SelectCheckpoint, TorchMetric
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.metrics import Accuracy
from tests.integrations import plain_loop as plain


def test_pick_weights_and_learning_rates_are_those_of_the_plain_loop(tmp_path: Path) -> None:
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
    evaluator.add_event_handler(Events.COMPLETED, SelectCheckpoint(selector, net.state_dict, trainer))
    evaluator.add_event_handler(Events.COMPLETED, lambda: scheduler.step(evaluator.state.metrics["mpcs"]))
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: evaluator.run(valid))
    trainer.add_event_handler(Events.EPOCH_COMPLETED, lambda: rates.append(scheduler.get_last_lr()[0]))
    trainer.run(train, max_epochs=plain.EPOCHS)
    counted_from_1 = expected._replace(picked=expected.picked + 1)
    scores = [epoch.values["mpcs"] for epoch in selector.epochs]
    plain.assert_same(counted_from_1, selector, selector.load_best(), rates, scores)


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
    chosen = measured(plain.metrics()["mpcs"], output_transform=lambda output: (output["y_pred"], output["y"]))
    assert chosen == measured(plain.metrics()["mpcs"])


GENERATOR = torch.Generator().manual_seed(0)
BATCHES = [(torch.randn(5, 3, generator=GENERATOR), torch.arange(5) % 3) for _ in range(4)]


@pytest.mark.parametrize(
    "usage", [EpochWise, BatchWise, RunningEpochWise, RunningBatchWise, SingleEpochRunningBatchWise]
)
def test_each_usage_is_that_of_a_metric_of_ignite(usage: type[MetricUsage]) -> None:
    engine, seen = Engine(lambda engine, batch: batch), []
    collection = TorchMetric(MetricCollection({"of collection": Accuracy(3)}))
    for name, metric in {"theirs": IgniteAccuracy(), "ours": TorchMetric(Accuracy(3)), "all": collection}.items():
        metric.attach(engine, name, usage=usage())
    RunningAverage(TorchMetric(Accuracy(3))).attach(engine, "our average")
    RunningAverage(IgniteAccuracy()).attach(engine, "their average")
    engine.add_event_handler(Events.ITERATION_COMPLETED, lambda: seen.append(dict(engine.state.metrics)))
    engine.run(BATCHES, max_epochs=2)
    for metrics in (*seen, engine.state.metrics):
        assert metrics.get("ours") == metrics.get("theirs") == metrics.get("of collection")
        assert metrics.get("our average") == metrics.get("their average")
    assert "ours" in engine.state.metrics


def test_a_metric_that_is_not_attached_is_named(tmp_path: Path) -> None:
    selector = CheckpointSelector(tmp_path, SelectionRule("mpcs", {"mpcs": "min"}))
    evaluator = Engine(lambda engine, batch: batch)
    evaluator.add_event_handler(Events.COMPLETED, SelectCheckpoint(selector, dict, Engine(lambda *_: None)))
    with pytest.raises(ValueError, match="the rule needs the metric mpcs, but got nothing: attach it to the evaluator"):
        evaluator.run([0])
