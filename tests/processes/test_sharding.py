"""Shares of weights: parameters without a gradient, and errors of models that are told from those of exchanges."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, distributed, nn

from mpcs_torch.processes.sharding import load_whole_state, whole_state
from mpcs_torch.processes.world import World, _reached, told_by_backend
from tests.processes.forked import forked_world, succeeded


class HalfUsed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.unused = nn.Linear(3, 2), nn.Linear(3, 2)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.used(inputs)
        return outputs


def restore(world: World) -> None:
    """Take a step, in which a layer has no part, and give the optimizer its own state."""
    torch.manual_seed(0)
    model = HalfUsed()
    world.engine(model, is_sharded=True)
    optimizer = torch.optim.Adam(model.parameters())
    world.backward(model(torch.ones(4, 3)).sum())
    optimizer.step()
    told = [whole_state(optimizer, model)]
    distributed.broadcast_object_list(told, src=0)
    load_whole_state(optimizer, model, told[0])
    again = whole_state(optimizer, model)
    if world.is_first:
        assert sorted(again["state"]) == ["used.bias", "used.weight"]
        assert torch.equal(again["state"]["used.weight"]["exp_avg"], told[0]["state"]["used.weight"]["exp_avg"])


def test_a_parameter_that_never_had_a_gradient_has_no_state_to_restore(tmp_path: Path) -> None:
    assert succeeded(forked_world(tmp_path, 2, restore))


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        ("[gloo/tcp] closed", r"another process of this run cannot be reached: \[gloo/tcp\] closed"),
        ("no gradient", "^no gradient$"),
    ],
)
def test_errors_of_a_model_are_not_told_as_a_lost_process(raised: str, told: str) -> None:
    with pytest.raises(RuntimeError, match=told), _reached(of_exchange=told_by_backend):
        raise RuntimeError(raised)
