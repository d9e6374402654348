"""Epochs that end with a pass over the data, and the batches of a pass, beside loops in plain PyTorch."""

from typing import Any

import pytest
import torch
from sklearn.utils.class_weight import compute_class_weight
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch.learning import ConcernLoss, SoftmaxMarginLoss
from mpcs_torch.trainer.config.run import ConfigError
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.loop import LoopState, MeasuredEpoch
from mpcs_torch.trainer.prepare import prepare_run
from tests.trainer.toy import toy_config, toy_data


def plain_passes(passes: int, every: int, accumulate: int, *, drop_last: bool, batch_size: int) -> tuple[Any, Any]:
    """Return the steps done and the loss on the training samples after every n-th pass."""
    data = toy_data().train
    torch.manual_seed(5)
    dataset = TensorDataset(data.inputs, data.labels)
    loader = DataLoader(dataset, batch_size=batch_size, shuffle=True, drop_last=drop_last)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    steps, losses, done = [], [], 0
    for number in range(1, passes + 1):
        batches = list(loader)
        for start in range(0, len(batches), accumulate):
            group = batches[start : start + accumulate]
            optimizer.zero_grad()
            torch.stack(
                [nn.functional.cross_entropy(model(inputs), labels) for inputs, labels in group]
            ).mean().backward()
            optimizer.step()
            done += 1
        if number % every == 0:
            steps.append(done)
            losses.append(nn.functional.cross_entropy(model(data.inputs), data.labels).item())
    return steps, losses


@pytest.mark.parametrize("accumulate", [1, 2, 7])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize(("batch_size", "every"), [(10, 1), (10, 3), (44, 2)])
def test_epochs_end_with_the_passes_of_a_plain_loop(
    accumulate: int, drop_last: bool, batch_size: int, every: int
) -> None:
    training = {"batch_size": batch_size, "learning_rate": 0.05, "accumulate": accumulate, "drop_last": drop_last}
    config = toy_config(training=training, epochs={"count": 4, "unit": "pass", "every": every})
    steps: list[int] = []
    losses: list[float] = []

    def look(epoch: MeasuredEpoch, state: LoopState) -> None:
        steps.append(state.steps)
        losses.append(epoch.values["cross_entropy"])

    state = prepare_run(config, toy_data()).start([look])
    expected = plain_passes(4 * every, every, accumulate, drop_last=drop_last, batch_size=batch_size)
    assert steps == expected[0]
    assert losses == pytest.approx(expected[1], rel=1e-4)
    assert state.summed == 0, "no gradient is left over"


def test_a_pass_is_measured_after_its_last_step() -> None:
    with pytest.raises(ValueError, match="when must be after if unit is pass"):
        toy_config(epochs={"unit": "pass", "when": "before"})


@pytest.mark.parametrize("batch_size", [46, 1000])
def test_a_pass_without_batches_is_refused(batch_size: int) -> None:
    config = toy_config(training={"batch_size": batch_size, "drop_last": True})
    message = f"drop_last leaves no batch: training.batch_size is {batch_size}, but there are 45 training samples"
    with pytest.raises(ConfigError, match=message):
        prepare_run(config, toy_data())
    prepare_run(toy_config(training={"batch_size": "all", "drop_last": True}, epochs={"count": 1}), toy_data()).start()


def unbalanced() -> DataSplits:
    data = toy_data()
    kept = torch.cat([torch.arange(9), (data.train.labels == 2).nonzero().flatten()])
    return DataSplits(data.train.at(kept), data.test, data.class_names)


def mean_loss(logits: Tensor, target: Tensor, name: str, weight: Tensor) -> Tensor:
    """What the loss of a config must be, from the classes of the package and of torch."""
    spec = toy_config().score.concern.spec(["red", "yellow", "green"])
    made = {
        "cross_entropy": lambda: nn.CrossEntropyLoss(weight),
        "concern": lambda: ConcernLoss(spec, weight=weight),
        "softmax_margin": lambda: SoftmaxMarginLoss(spec, weight=weight),
    }
    loss: Tensor = made[name]()(logits, target)
    return loss


@pytest.mark.parametrize("name", ["cross_entropy", "concern", "softmax_margin"])
@pytest.mark.parametrize("given", ["balanced", [1.0, 2, 0.5]])
def test_class_weights_are_those_of_the_loss(name: str, given: Any) -> None:
    data = unbalanced()
    labels = data.train.labels
    training = {"class_weights": given}
    run = prepare_run(toy_config(loss={"name": name}, training=training), data)
    balanced = compute_class_weight("balanced", classes=labels.unique().numpy(), y=labels.numpy())
    weight = torch.as_tensor(balanced if given == "balanced" else given, dtype=torch.float32)
    logits = torch.randn(len(labels), 3, generator=torch.Generator().manual_seed(1))
    torch.testing.assert_close(run.state.loss(logits, labels), mean_loss(logits, labels, name, weight))


def own_loss(concern: object) -> nn.Module:
    return nn.NLLLoss()


def test_class_weights_reach_every_loss_with_weights() -> None:
    for loss in ({"path": f"{__name__}:own_loss"}, {"name": "recommended"}):
        run = prepare_run(toy_config(loss=loss, training={"class_weights": [1, 2, 3]}), toy_data())
        assert run.state.loss.weight.tolist() == [1, 2, 3]  # type: ignore[attr-defined]


def without_weight(concern: object) -> Any:
    return nn.functional.cross_entropy


def test_class_weights_that_cannot_be_are_refused() -> None:
    def prepare(given: object, loss: object = None, data: DataSplits | None = None) -> None:
        sections = {"training": {"class_weights": given}, "loss": loss or {"name": "cross_entropy"}}
        prepare_run(toy_config(**sections), data or toy_data())

    with pytest.raises(ConfigError, match=r"class_weights must be 3 numbers, one for each class, but got \[1"):
        prepare([1.0, 2.0])
    for wrong in ([1, 0, 1], [1, -1, 1], "even"):
        with pytest.raises(ValueError, match=r"training\.class_weights"):
            prepare(wrong)
    with pytest.raises(ConfigError, match=r"class_weights: .*without_weight has no buffer weight, which sets them"):
        prepare([1, 1, 1], {"path": f"{__name__}:without_weight"})
    data = toy_data()
    no_green = DataSplits(data.train.at((data.train.labels < 2).nonzero().flatten()), data.test, data.class_names)
    with pytest.raises(ConfigError, match=r"balanced needs training samples of each class, but got no \['green'\]"):
        prepare("balanced", data=no_green)
