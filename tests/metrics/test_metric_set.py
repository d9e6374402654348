"""One set measures groups of samples in turn, whatever its metrics hold."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.evaluation.chosen import inputs_of
from mpcs_torch.metrics import BrierScore, DangerousErrors, ExpectedConcern, MetaPatternConcernScore
from mpcs_torch.metrics.by_name import BY_NAME, MetricEntry
from mpcs_torch.metrics.metric_set import MetricSet, States, numbers_in
from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy
from tests.metrics.batches import random_batch

NAMES = ("accuracy", "mpcs", "calibration_slope", "measured_decisiveness", "risk_coverage_area", "dangerous")


class MeanSize(Metric):
    """Hold a number that is no state, as wrappers of other metrics do, and add in place."""

    batches = 0
    samples: Tensor

    def __init__(self, validate_args: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("samples", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, preds: Tensor, target: Tensor) -> None:
        self.samples += len(target)
        self.batches += 1

    def compute(self) -> Tensor:
        return self.samples / self.batches


def make() -> MetricSet:
    entries = [*(BY_NAME[name] for name in NAMES), MetricEntry("mean_size", MeanSize, "probabilities")]
    return MetricSet(entries, 4, torch.device("cpu"))


def test_groups_that_take_turns_have_the_values_of_their_own_sets() -> None:
    logits, target = random_batch(240, seed=5)
    probs = logits.double().softmax(1)
    one, own = make(), [make() for _ in range(3)]
    states: list[States | None] = [None] * 3
    for part in torch.arange(240).split(60):
        for group, alone in enumerate(own):
            rows = part[group::3]
            inputs = inputs_of(probs[rows], one.takes)
            one.load(states[group])
            one.update(inputs, target[rows])
            states[group] = one.states()
            alone.update(inputs, target[rows])
    for held, alone in zip(states, own, strict=True):
        for measured in (one, make()):  # one that was never updated gives no warning
            measured.load(held)
            assert measured.values() == pytest.approx(alone.values(), rel=1e-12)


def test_states_that_are_mostly_0_are_packed() -> None:
    metrics = make()
    logits, target = random_batch(40, seed=5)
    metrics.update(inputs_of(logits.double().softmax(1), metrics.takes), target)
    assert numbers_in(metrics.states()) < 1200  # 2 x 21599 counts of cells


def test_values_of_one_metric_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics, calls = make(), []
    compute = ProbabilityAccuracy.bins
    monkeypatch.setattr(ProbabilityAccuracy, "bins", lambda self: calls.append(0) or compute(self))
    logits, target = random_batch(40, seed=5)
    metrics.update(inputs_of(logits.double().softmax(1), metrics.takes), target)
    assert len(metrics.values()) == 7
    assert len(calls) == 1


WEIGHTS = 0.5 + torch.arange(16.0).reshape(4, 4) / 8
VARIANTS: dict[type[Metric], list[dict[str, Any]]] = {
    ProbabilityAccuracy: [
        {"cells": 20_000},
        {"cells": 20_000, "n_bins": 3},
        {"cells": 20_000, "n_bins": 3, "span": "unit"},
        {"cells": 20_000, "epsilon": 0.2},
    ],
    MetaPatternConcernScore: [{}, {"k": 2}, {"k": 2, "t": 20}, {"concern": WEIGHTS}],
    ExpectedConcern: [{}, {"concern": WEIGHTS}, {"priors": torch.tensor([0.1, 0.2, 0.3, 0.4])}],
    DangerousErrors: [{}, {"normalize": "samples"}, {"normalize": "errors"}],
    BrierScore: [{}, {"over_classes": "mean"}],
}
"""Settings by which a metric of the register has other values, of which some change its states and some do not."""


@pytest.mark.parametrize("metric", VARIANTS, ids=lambda metric: metric.__name__)
def test_entries_with_other_settings_have_the_values_of_their_own_sets(metric: type[Metric]) -> None:
    registered = next(entry for entry in BY_NAME.values() if entry.metric is metric)
    key = "measured_decisiveness" if registered.key is not None else None
    entries = [
        MetricEntry(f"variant {place}", metric, registered.takes, settings, key=key)
        for place, settings in enumerate(VARIANTS[metric])
    ]
    logits, target = random_batch(240, seed=5)
    found = []
    for chosen in (entries, *([entry] for entry in entries)):
        measured = MetricSet(chosen, 4, torch.device("cpu"))
        for rows in torch.arange(240).split(100):
            measured.update(inputs_of(logits[rows].double().softmax(1), measured.takes), target[rows])
        found.append(measured.values())
    together, *alone = found
    assert together == {name: value for each in alone for name, value in each.items()}
    assert len(set(together.values())) == len(entries), "else one metric could serve all"
