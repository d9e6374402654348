"""Losses, schedulers and the selector of a run config: what they do to the loop, and what they leave on disk."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from mpcs_torch.learning import ConcernLoss
from mpcs_torch.trainer.checkpoints import checkpoint
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.named_parts import SCHEDULERS
from mpcs_torch.trainer.result import first_best, read_records
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data


def epochs_of(run: TrainingRun) -> list[tuple[MeasuredEpoch, float]]:
    """Train, and return the epochs, and the learning rate after each."""
    epochs: list[tuple[MeasuredEpoch, float]] = []

    def look(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        epochs.append((epoch, state.optimizer.param_groups[0]["lr"]))

    run.train([look])
    return epochs


HALF = 2**-0.5
"""The cosine of a quarter of the way from 1 to -1."""


@pytest.mark.parametrize(
    ("sections", "rates"),
    [
        ({}, [1, 1, 1, 1]),
        ({"scheduler": {"name": "cosine"}}, [(1 + HALF) / 2, 0.5, (1 - HALF) / 2, 0]),
        # Of two epochs in which the rate rises, the first begins at a third, and the second at two thirds.
        (
            {"scheduler": {"name": "cosine", "warmup_epochs": 2}},
            [(1 + HALF) / 3, 0.5, (1 - HALF) / 2, 0],
        ),
    ],
)
def test_the_learning_rate_follows_its_schedule(
    sections: dict[str, Any], rates: list[float]
) -> None:
    run = TrainingRun(toy_config(epochs={"count": 4}, **sections), toy_data())
    expected = [0.05 * rate for rate in rates]
    assert [rate for _, rate in epochs_of(run)] == pytest.approx(expected, abs=1e-9)


def test_mpcs_lr_follows_the_score_of_the_epoch() -> None:
    scheduler = {"name": "mpcs_lr", "score": "mpcs_count", "power": 2.0, "highest": 9.0}
    epochs = epochs_of(TrainingRun(toy_config(scheduler=scheduler), toy_data()))
    first = epochs[0][0].values["mpcs_count"]
    for epoch, rate in epochs:
        assert rate == pytest.approx(0.05 * (epoch.values["mpcs_count"] / first) ** 2)


def test_a_plateau_lowers_it_when_a_score_no_longer_falls() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.05)
    settings = {"score": "mpcs", "patience": 0, "factor": 0.1}
    step = SCHEDULERS["plateau"](optimizer, 4, {"mpcs": "min"}, **settings)
    for score, rate in ((0.3, 0.05), (0.2, 0.05), (0.4, 0.005)):
        step({"mpcs": score, "accuracy": score})
        assert optimizer.param_groups[0]["lr"] == pytest.approx(rate)


def test_a_loss_sees_the_concern_of_the_run() -> None:
    run, train = (
        TrainingRun(toy_config(loss={"name": "concern"}), toy_data()),
        toy_data().train,
    )
    logits = run.model(train.inputs)
    spec = run.config.score.concern.spec(toy_data().class_names)
    expected = ConcernLoss(spec.mpcs_weights(), concern_share=0.5)(logits, train.labels)
    torch.testing.assert_close(run.loss(logits, train.labels), expected)


def test_a_scaled_loss_moves_the_gradient_by_the_latest_score() -> None:
    training = {"batch_size": "all", "loss_scale": "mpcs_count"}
    run, train = TrainingRun(toy_config(training=training), toy_data()), toy_data().train
    run.loss_scale = 0.25
    loss = 0.25 * cross_entropy(run.model(train.inputs), train.labels)
    expected = torch.autograd.grad(loss, list(run.model.parameters()))
    run.train_step(train)
    gradients = [weight.grad for weight in run.model.parameters()]
    torch.testing.assert_close(gradients, list(expected))


def test_replacing_a_run_replaces_its_checkpoints_and_touches_no_other_file(
    tmp_path: Path,
) -> None:
    checkpoints = tmp_path / "checkpoints"

    def left_by(selector: dict[str, Any] | None) -> list[str]:
        run_in_folder(toy_config(selector=selector), toy_data(), tmp_path, overwrite=True)
        return sorted(path.name for path in checkpoints.iterdir())

    left_by({"by": "accuracy", "keep_last": True})
    (checkpoints / "mine.pt").write_text("mine")
    left = left_by({"by": "mpcs", "keep_best_by": []})
    best = first_best(read_records(tmp_path / "records.csv"), {"mpcs": "min"})["mpcs"]
    assert left == [f"epoch-{best:05}.pt", "manifest.json", "mine.pt"]
    assert left_by(None) == ["mine.pt"]


def with_batch_norm(input_shape: torch.Size, num_classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(input_shape[0], num_classes), torch.nn.BatchNorm1d(num_classes)
    )


def test_the_average_of_weights_and_running_statistics_is_what_is_measured_and_kept() -> (
    None
):
    """Against the average taken by hand in a run that is otherwise the same."""
    training = {"batch_size": 10, "learning_rate": 0.05}
    model = {"path": f"{__name__}:with_batch_norm"}
    plain = TrainingRun(toy_config(training=training, model=model), toy_data())
    average: dict[str, torch.Tensor] = {}

    def follow(_: MeasuredEpoch, state: TrainingRun) -> None:
        for name, value in state.model.state_dict().items():
            before = average.get(name, value)
            average[name] = 0.5 * before + 0.5 * value

    plain.train([follow])
    training["averaging"] = 0.5
    state = TrainingRun(toy_config(training=training, model=model), toy_data()).train()
    measured = state.measured.state_dict()
    for name in ("0.weight", "0.bias", "1.weight", "1.running_mean", "1.running_var"):
        torch.testing.assert_close(measured[name], average[name])
    assert checkpoint(state)["model"].keys() == plain.model.state_dict().keys()


def test_a_ramp_raises_the_margin_from_epoch_to_epoch() -> None:
    """From 0 to all of it between 2 and 8 of 10 epochs, in steps."""
    config = toy_config(
        loss={"name": "softmax_margin", "margin": 3.0},
        epochs={"count": 10},
        training={"batch_size": 10, "margin_ramp": [0.2, 0.8]},
    )
    margins: list[float] = []
    run = TrainingRun(config, toy_data())
    run.train([lambda _, state: margins.append(state.loss.margin)])  # type: ignore[attr-defined]
    assert margins == pytest.approx([0, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3, 3])


@pytest.mark.parametrize(
    ("sections", "code"),
    [
        ({"training": {"margin_ramp": [0.1, 0.6]}}, "needs"),
        (
            {"training": {"margin_ramp": [0.6, 0.6]}, "loss": {"name": "softmax_margin"}},
            "caused_by",
        ),
    ],
)
def test_a_ramp_that_cannot_be_is_refused(sections: dict[str, Any], code: str) -> None:
    with Refused(code, raises=ConfigError):
        TrainingRun(toy_config(**sections), toy_data())


@pytest.mark.filterwarnings("ignore:.*is missing or damaged:UserWarning")
def test_a_better_epoch_whose_checkpoint_is_gone_is_told(tmp_path: Path) -> None:
    config = toy_config(selector={"by": "mpcs", "top_k": 2, "keep_best_by": []})
    _, result = run_in_folder(config, toy_data(), tmp_path)
    for name in (f"checkpoints/epoch-{result.epoch:05}.pt", "result.json"):
        (tmp_path / name).unlink()
    _, again = run_in_folder(config, toy_data(), tmp_path, resume=True)
    assert again.values["train"]["mpcs"] > result.values["train"]["mpcs"]
    better = f"epoch {result.epoch} ({result.values['train']['mpcs']:.6g}) is better"
    assert again.reason.endswith(f"; {better}, but its checkpoint is gone")
