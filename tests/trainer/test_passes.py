"""Epochs that end with a pass over the data, beside loops in plain PyTorch."""

from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun
from tests.refused import sentence
from tests.trainer.toy import toy_config, toy_data


def plain_passes(passes: int, every: int, *, batch_size: int) -> tuple[Any, Any]:
    """Return the steps done and the loss on the training samples after every n-th pass."""
    data = toy_data().train
    torch.manual_seed(5)
    dataset = TensorDataset(data.inputs, data.labels)
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    steps, losses, done = [], [], 0
    for number in range(1, passes + 1):
        for inputs, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            done += 1
        if number % every == 0:
            steps.append(done)
            losses.append(
                nn.functional.cross_entropy(model(data.inputs), data.labels).item()
            )
    return steps, losses


@pytest.mark.parametrize(("batch_size", "every"), [(10, 1), (10, 3), (44, 2)])
def test_epochs_end_with_the_passes_of_a_plain_loop(batch_size: int, every: int) -> None:
    training = {"batch_size": batch_size, "learning_rate": 0.05}
    config = toy_config(
        training=training, epochs={"count": 4, "unit": "pass", "every": every}
    )
    steps: list[int] = []
    losses: list[float] = []

    def look(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        steps.append(state.steps)
        losses.append(epoch.values["cross_entropy"])

    TrainingRun(config, toy_data()).train([look])
    expected = plain_passes(4 * every, every, batch_size=batch_size)
    assert steps == expected[0]
    assert losses == pytest.approx(expected[1], rel=1e-4)


def test_a_pass_is_measured_after_its_last_step() -> None:
    with pytest.raises(ValueError, match=sentence("after_pass", "when")):
        toy_config(epochs={"unit": "pass", "when": "before"})
