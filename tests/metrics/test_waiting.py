"""Batches that wait in several processes."""

from pathlib import Path

import pytest
import torch

from mpcs_torch.metrics import Accuracy
from mpcs_torch.processes.world import World
from tests.processes.forked import forked_world, succeeded


def test_a_process_with_a_bad_batch_that_waits_lets_no_other_wait(tmp_path: Path) -> None:
    """The others get their value, and the process gets it after the error."""
    logits, target = torch.eye(4), torch.arange(4)

    def compute(world: World) -> None:
        metric = Accuracy(4)
        for number in range(6):
            metric.update(logits, target + 9 if world.is_first and number == 3 else target)
        if world.is_first:
            with pytest.raises(ValueError, match="update 4: target must hold class indices"):
                metric.compute()
            assert metric.batch_count == 5
        else:
            assert metric.compute() == 1
        assert metric.compute() == 1
        assert metric.batch_count == (5 if world.is_first else 6)

    assert succeeded(forked_world(tmp_path, 2, compute))
