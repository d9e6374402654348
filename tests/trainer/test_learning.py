"""Losses, schedulers and the selector of a run config: what they do to the loop, and what they leave on disk."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import cross_entropy

from mpcs_torch.learning import ConcernLoss
from mpcs_torch.trainer.checkpoints import checkpoint, open_selector
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.named_parts import SCHEDULERS
from mpcs_torch.trainer.result import _pick as picked_of
from mpcs_torch.trainer.result import first_best, read_records
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data


def learning_rates(**sections: object) -> list[float]:
    seen: list[float] = []

    def look(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        seen.append(state.optimizer.param_groups[0]["lr"])

    TrainingRun(toy_config(epochs={"count": 4}, **sections), toy_data()).train([look])
    return seen


def test_without_a_scheduler_the_learning_rate_stays() -> None:
    assert learning_rates() == [0.05] * 4


def test_cosine_may_rise_first() -> None:
    plain = learning_rates(scheduler={"name": "cosine"})
    warm = learning_rates(scheduler={"name": "cosine", "warmup_epochs": 2})
    assert warm[0] == pytest.approx(plain[0] * 2 / 3)  # a third before the first epoch
    assert warm[1:] == pytest.approx(plain[1:])


def test_cosine_falls_to_zero_over_the_epochs() -> None:
    assert learning_rates(scheduler={"name": "cosine"}) == pytest.approx(
        [0.05 * (1 + c) / 2 for c in (2**-0.5, 0, -(2**-0.5), -1)], abs=1e-9
    )


def test_mpcs_lr_follows_the_score_of_the_epoch() -> None:
    scores: list[float] = []
    rates: list[float] = []

    def look(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        scores.append(epoch.values["mpcs_count"])
        rates.append(state.optimizer.param_groups[0]["lr"])

    config = toy_config(
        scheduler={"name": "mpcs_lr", "score": "mpcs_count", "power": 2.0, "highest": 9.0}
    )
    TrainingRun(config, toy_data()).train([look])
    assert rates == pytest.approx([0.05 * (score / scores[0]) ** 2 for score in scores])


def test_a_plateau_lowers_it_when_a_score_no_longer_falls() -> None:
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.05)
    step = SCHEDULERS["plateau"](
        optimizer, 4, {"mpcs": "min"}, score="mpcs", patience=0, factor=0.1
    )
    rates = []
    for score in (0.3, 0.2, 0.4):
        step({"mpcs": score, "accuracy": score})
        rates.append(optimizer.param_groups[0]["lr"])
    assert rates == pytest.approx([0.05, 0.05, 0.005])


@pytest.mark.parametrize(("name", "share"), [("cross_entropy", 0.0), ("concern", 0.5)])
def test_a_loss_sees_the_concern_of_the_run(name: str, share: float) -> None:
    run = TrainingRun(toy_config(loss={"name": name}), toy_data())
    inputs, labels = toy_data().train.inputs, toy_data().train.labels
    logits = run.model(inputs)
    concern = run.config.score.concern.spec(toy_data().class_names).mpcs_weights()
    expected = ConcernLoss(concern, concern_share=share)(logits, labels)
    assert torch.allclose(run.loss(logits, labels), expected)


def test_a_scaled_loss_moves_the_gradient_by_the_latest_score() -> None:
    run = TrainingRun(
        toy_config(training={"batch_size": "all", "loss_scale": "mpcs_count"}), toy_data()
    )
    run.loss_scale = 0.25
    inputs, labels = toy_data().train.inputs, toy_data().train.labels
    weights = list(run.model.parameters())
    plain = torch.autograd.grad(cross_entropy(run.model(inputs), labels), weights)
    run.train_step(toy_data().train)
    assert all(
        torch.allclose(0.25 * g, w.grad)
        for g, w in zip(plain, weights, strict=True)
        if w.grad is not None
    )


def test_the_selector_leaves_the_checkpoint_whose_evaluation_is_the_record(
    tmp_path: Path,
) -> None:
    config = toy_config(selector={"by": "mpcs", "within": {"accuracy": 0.1}})
    run, _ = run_in_folder(config, toy_data(), tmp_path / "toy")
    selector = open_selector(run.config, tmp_path / "toy")
    assert selector is not None
    records = read_records(tmp_path / "toy" / "records.csv")
    assert selector.best is not None
    assert {"epoch": selector.best.number, **selector.best.values} == records[
        selector.best.number - 1
    ]
    run.model.load_state_dict(selector.load_best()["model"])
    values = run.measure(run.split).values
    assert {"epoch": selector.best.number, **values} == records[selector.best.number - 1]


def test_replacing_a_run_replaces_its_checkpoints_and_touches_no_other_file(
    tmp_path: Path,
) -> None:
    config = toy_config(selector={"by": "accuracy", "keep_last": True})
    run_in_folder(config, toy_data(), tmp_path)
    (tmp_path / "checkpoints" / "mine.pt").write_text("mine")
    run_in_folder(
        toy_config(seed=6, selector={"by": "mpcs", "keep_best_by": []}),
        toy_data(),
        tmp_path,
        overwrite=True,
    )
    left = sorted(path.name for path in (tmp_path / "checkpoints").iterdir())
    records = read_records(tmp_path / "records.csv")
    best = first_best(records, {"mpcs": "min"})["mpcs"]
    assert left == [f"epoch-{best:05}.pt", "manifest.json", "mine.pt"]
    run_in_folder(toy_config(), toy_data(), tmp_path, overwrite=True)
    assert [path.name for path in (tmp_path / "checkpoints").iterdir()] == ["mine.pt"]


def with_batch_norm(input_shape: torch.Size, num_classes: int) -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(input_shape[0], num_classes), torch.nn.BatchNorm1d(num_classes)
    )


def test_the_average_of_weights_and_running_statistics_is_what_is_measured_and_kept() -> (
    None
):
    """Against the average taken by hand in a run that is otherwise the same."""
    decay = 0.5
    sections = {"model": {"path": f"{__name__}:with_batch_norm"}}
    training = {"batch_size": 10, "learning_rate": 0.05}
    plain = TrainingRun(toy_config(training=training, **sections), toy_data())
    average: dict[str, torch.Tensor] = {}

    def follow(_: MeasuredEpoch, state: TrainingRun) -> None:
        for name, value in state.model.state_dict().items():
            average[name] = (
                decay * average[name] + (1 - decay) * value
                if name in average
                else value.clone()
            )

    plain.train([follow])
    averaged = TrainingRun(
        toy_config(training={**training, "averaging": decay}, **sections), toy_data()
    )
    state = averaged.train()
    ours = state.measured.state_dict()
    floating = [name for name, value in ours.items() if value.is_floating_point()]
    assert {"1.running_mean", "1.running_var"} < set(floating)
    for name in floating:
        torch.testing.assert_close(ours[name], average[name])
    assert checkpoint(state)["model"].keys() == plain.model.state_dict().keys()


def test_a_ramp_raises_the_margin_from_epoch_to_epoch() -> None:
    """From 0 to all of it between 2 and 8 of 10 epochs, in steps."""
    sections = {"loss": {"name": "softmax_margin", "margin": 3.0}, "epochs": {"count": 10}}
    run = TrainingRun(
        toy_config(training={"batch_size": 10, "margin_ramp": [0.2, 0.8]}, **sections),
        toy_data(),
    )
    margins: list[float] = []
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
    run = TrainingRun(
        toy_config(selector={"by": "mpcs", "top_k": 2, "keep_best_by": []}), toy_data()
    )
    selector = open_selector(run.config, tmp_path)
    assert selector is not None
    for epoch, mpcs in ((1, 0.1), (2, 0.2)):
        values = dict.fromkeys(run.config.columns, 0.5) | {"mpcs": mpcs}
        selector.update({"model": {}}, epoch=epoch, **values)
    (selector.folder / "epoch-00001.pt").unlink()
    epoch, reason, _ = picked_of(run, open_selector(run.config, tmp_path), {})
    assert epoch == 2
    assert reason.startswith("lowest mpcs (0.2) on train data")
    assert reason.endswith("; epoch 1 (0.1) is better, but its checkpoint is gone")
