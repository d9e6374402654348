"""The plain PyTorch loop that every framework must repeat: same data in the same order, same model, same updates."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import TensorDataset
from torchmetrics import MetricCollection

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.learning import MPCSLR, CheckpointSelector, SelectionRule, SoftmaxMarginLoss
from mpcs_torch.metrics import Accuracy

LIGHTS = ConcernSpec(
    ["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]], factor=0.1
)
EPOCHS, BATCH, STEPS, RATE = 6, 10, 6, 1.0
"""STEPS in each epoch."""


class Outcome(NamedTuple):
    """The values that a framework must reproduce."""

    picked: int
    """Counted from 0."""
    weights: dict[str, Tensor]
    rates: list[float]
    """The learning rate after each epoch."""
    scores: list[float]


def data() -> tuple[TensorDataset, TensorDataset]:
    """Training and validation samples of three overlapping classes."""
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(90) % 3
    inputs = torch.randn(90, 4, generator=generator) + torch.eye(3, 4)[labels]
    return TensorDataset(inputs[:60], labels[:60]), TensorDataset(inputs[60:], labels[60:])


def model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def loss() -> SoftmaxMarginLoss:
    return SoftmaxMarginLoss(LIGHTS, margin=2.0, label_smoothing=0.02)


def metrics(**settings: Any) -> MetricCollection:
    parts = {
        "mpcs": MetaPatternConcernScore(3, concern=LIGHTS, **settings),
        "accuracy": Accuracy(3, **settings),
    }
    return MetricCollection(parts)


def scheduler(optimizer: torch.optim.Optimizer) -> MPCSLR:
    """Smoothing and warmup, so that a step too many or too few shows."""
    return MPCSLR(optimizer, smoothing=0.3, warmup_steps=2, highest=2.0)


def rule(mpcs: str = "mpcs", accuracy: str = "accuracy") -> SelectionRule:
    directions = {mpcs: MetaPatternConcernScore, accuracy: Accuracy}
    return SelectionRule(mpcs, directions, within={accuracy: 0.2})


def plain_loop(folder: Path) -> Outcome:
    train, valid = data()
    net, criterion, measured = model(), loss(), metrics()
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE)
    schedule, selector = scheduler(optimizer), CheckpointSelector(folder, rule())
    rates, scores = [], []
    for epoch in range(EPOCHS):
        for batch in torch.arange(60).split(BATCH):
            inputs, labels = train[batch]
            optimizer.zero_grad()
            criterion(net(inputs), labels).backward()
            optimizer.step()
        with torch.no_grad():
            for start in range(0, 30, BATCH):
                inputs, labels = valid[start : start + BATCH]
                measured.update(net(inputs), labels)
        values = measured.compute()
        measured.reset()
        selector.update(net.state_dict, epoch=epoch, **values)
        schedule.step(values["mpcs"])
        rates.append(schedule.get_last_lr()[0])
        scores.append(values["mpcs"].item())
    assert selector.best is not None
    return Outcome(selector.best.number, selector.load_best(), rates, scores)


def assert_same(
    expected: Outcome,
    selector: CheckpointSelector,
    weights: Mapping[str, Tensor],
    rates: Sequence[float],
    scores: Sequence[float],
    *,
    rounding: float = 0.0,
) -> None:
    """Assert that a framework picked the same epoch with the same weights, by the same learning rates and scores.

    A framework that adds up samples in another order may differ by rounding.
    """
    assert selector.best is not None
    assert selector.best.number == expected.picked
    torch.testing.assert_close(
        dict(weights), dict(expected.weights), rtol=1e6 * rounding, atol=0.0
    )
    assert list(rates) == pytest.approx(expected.rates, rel=rounding, abs=0.0)
    assert list(scores) == pytest.approx(expected.scores, rel=rounding, abs=0.0)
