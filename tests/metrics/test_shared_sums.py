"""Measures that share sums have the values that they have alone."""

from typing import Any

import pytest
import torch

from mpcs_torch.functional.concern.dangerous import DangerousErrors
from mpcs_torch.functional.concern.expected_concern import ExpectedConcern
from mpcs_torch.functional.concern.mpcs import MetaPatternConcernScore
from mpcs_torch.functional.probability.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.functional.probability.scores import BrierScore
from mpcs_torch.metrics.metric_entry import MetricEntry
from mpcs_torch.metrics.named_metrics import BY_NAME
from mpcs_torch.metrics.shared_sums import shared_sums
from tests.metrics.batches import random_batch

WEIGHTS = 0.5 + torch.arange(16.0).reshape(4, 4) / 8
VARIANTS: dict[Any, list[dict[str, Any]]] = {
    ProbabilityAccuracy: [
        {"cells": 20_000},
        {"cells": 20_000, "n_bins": 3},
        {"cells": 20_000, "n_bins": 3, "span": "unit"},
        {"cells": 20_000, "epsilon": 0.2},
    ],
    MetaPatternConcernScore: [{}, {"k": 2}, {"k": 2, "t": 20}, {"concern": WEIGHTS}],
    ExpectedConcern: [
        {},
        {"concern": WEIGHTS},
        {"priors": torch.tensor([0.1, 0.2, 0.3, 0.4])},
    ],
    DangerousErrors: [{}, {"normalize": "samples"}, {"normalize": "errors"}],
    BrierScore: [{}, {"over_classes": "mean"}],
}
"""Settings by which a metric of the register has other values, of which some change its states and some do not."""


@pytest.mark.parametrize("metric", VARIANTS, ids=str)
def test_entries_with_other_settings_have_the_values_of_their_own_groups(
    metric: Any,
) -> None:
    registered = next(entry for entry in BY_NAME.values() if entry.of == metric)
    # Of several values, one that the settings change.
    key = "measured_decisiveness" if registered.key is not None else None
    entries = [
        MetricEntry(f"variant {place}", metric, registered.takes, settings, key=key)
        for place, settings in enumerate(VARIANTS[metric])
    ]
    logits, target = random_batch(240, seed=5)
    preds = (
        logits.argmax(1) if registered.takes == "decisions" else logits.double().softmax(1)
    )

    def values_of(chosen: list[MetricEntry]) -> dict[str, float]:
        values = dict[str, float]()
        for group in shared_sums(chosen, 4):
            measure = group.first
            sums = measure.named(measure.sums(measure.rows(preds, target)))
            computed = group.values(sums)
            for entry in group.entries:
                values[entry.name] = entry.number(computed[entry.name])
        return values

    together = values_of(entries)
    assert len(together) == len(entries)
    for entry in entries:
        assert values_of([entry]) == {entry.name: together[entry.name]}
    assert len(set(together.values())) == len(entries), "else one metric could serve all"
