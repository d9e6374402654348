"""Sums in float32, which devices without float64 hold, lose nothing to rounding."""

import copy
import pickle
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.metrics.base import SumMetric

BATCHES = 4_000
LARGE, SMALL = 1e6, 0.01
"""A float32 above 2^19 has steps of 1/16: without compensation, no batch would change the sum."""


class Total(SumMetric):
    """The sum of all values, in float32."""

    total: Tensor

    def __init__(self, *, validate_args: bool = True, **kwargs: Any) -> None:
        super().__init__(locals(), value_rules=())
        self.add_sum("total", dtype=torch.float32)

    def update(self, values: Tensor) -> None:
        self.admit(tuple)
        self.add(total=values.sum())

    def compute(self) -> Tensor:
        return self.total


def grown(metric: Total, batches: int = BATCHES) -> Total:
    for _ in range(batches):
        metric.update(torch.tensor(SMALL))
    return metric


def test_small_batches_still_count_in_a_large_sum() -> None:
    metric = Total()
    metric.update(torch.tensor(LARGE))
    assert torch.tensor(LARGE) + torch.tensor(SMALL) == LARGE
    assert abs(grown(metric).compute().item() - (LARGE + BATCHES * SMALL)) <= 1 / 16


def test_nothing_is_carried_into_states_that_come_from_elsewhere() -> None:
    metric = Total()
    metric.update(torch.tensor(LARGE))
    grown(metric, 3)
    for other in (copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))):
        other.reset()
        assert grown(other, 1).compute() == torch.tensor(SMALL)
    assert metric(torch.tensor(SMALL)) == torch.tensor(SMALL), "the value of a batch alone"
