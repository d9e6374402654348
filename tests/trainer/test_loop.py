"""The reference loop beside a loop in plain PyTorch, scikit-learn and plain Python."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn import metrics as sklearn_metrics
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch.trainer.config.parts import PartError
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.result import open_trained
from tests.oracles import algorithm_1
from tests.refused import Refused
from tests.trainer.toy import toy_config, toy_data


def epochs_of(**changed: Any) -> list[MeasuredEpoch]:
    epochs: list[MeasuredEpoch] = []
    TrainingRun(toy_config(**changed), toy_data()).train(
        [lambda epoch, state: epochs.append(epoch)]
    )
    return epochs


def plain_values(model: nn.Module) -> dict[str, float]:
    data = toy_data()
    with torch.no_grad():
        logits, test_logits = model(data.train.inputs), model(data.test.inputs)
    labels, predicted = data.train.labels, logits.argmax(dim=1)
    probs = logits.softmax(dim=1)
    concern = [[1, 0.1, 1], [1, 1, 1], [1, 1, 1]]
    score = (probs.tolist(), labels.tolist(), 3, 20, concern)
    pairs = list(zip(labels.tolist(), predicted.tolist(), strict=True))
    return {
        "accuracy": float(sklearn_metrics.accuracy_score(labels, predicted)),
        "f1_macro": float(sklearn_metrics.f1_score(labels, predicted, average="macro")),
        "mcc": float(sklearn_metrics.matthews_corrcoef(labels, predicted)),
        "mean_squared_error": nn.functional.mse_loss(
            probs, nn.functional.one_hot(labels, 3).float()
        ).item(),
        "cross_entropy": nn.functional.cross_entropy(logits, labels).item(),
        "mpcs": algorithm_1.score(*score),
        "mpcs_count": algorithm_1.score(*score, correct_concern="count"),
        "dangerous": sum(
            true != guess and (true, guess) != (0, 1) for true, guess in pairs
        ),
        "test_accuracy": float(
            sklearn_metrics.accuracy_score(data.test.labels, test_logits.argmax(dim=1))
        ),
    }


def plain_loop(when: str, every: int, count: int) -> list[dict[str, float]]:
    """The order of random draws that published runs have, written down a second time."""
    data = toy_data()
    torch.manual_seed(5)
    loader = DataLoader(
        TensorDataset(data.train.inputs, data.train.labels), batch_size=10, shuffle=True
    )
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    values = []
    while True:
        for step, (inputs, labels) in enumerate(loader):
            if step % every == 0 and when == "before":
                values.append(plain_values(model))
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            if step % every == 0 and when == "after":
                values.append(plain_values(model))
            if len(values) == count:
                return values


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("every", [1, 3])
def test_epochs_are_those_of_a_plain_loop(when: str, every: int) -> None:
    epochs = epochs_of(
        epochs={"count": 12, "every": every, "when": when, "test": ["accuracy"]}
    )
    assert [epoch.number for epoch in epochs] == list(range(1, 13))
    for epoch, plain in zip(epochs, plain_loop(when, every, 12), strict=True):
        assert epoch.values == pytest.approx(plain, rel=1e-5)


def test_whole_batches_step_once_a_pass() -> None:
    states: list[int] = []
    config = toy_config(training={"batch_size": "all"}, epochs={"count": 3})
    TrainingRun(config, toy_data()).train([lambda epoch, state: states.append(state.steps)])
    assert states == [1, 2, 3]


def test_hooks_may_change_the_optimizer() -> None:
    def stop_learning(epoch: MeasuredEpoch, state: TrainingRun) -> None:
        for group in state.optimizer.param_groups:
            group["lr"] = 0.0

    epochs: list[MeasuredEpoch] = []
    TrainingRun(toy_config(), toy_data()).train(
        [stop_learning, lambda epoch, state: epochs.append(epoch)]
    )
    assert len({epoch.values["cross_entropy"] for epoch in epochs}) == 1


def test_mixed_precision_learns_as_well() -> None:
    epochs = epochs_of(device={"precision": "bf16-mixed"})
    assert epochs[-1].values["accuracy"] > 0.8


def test_settings_that_do_not_fit_the_data_are_refused() -> None:
    with Refused("does_not_fit", "toy: score", raises=ConfigError) as refused:
        epochs_of(score={"k": 5})
    assert refused.value.fields["cause"].code == "rank"
    with Refused("does_not_fit", "toy: score", raises=ConfigError) as refused:
        epochs_of(score={"k": 3, "concern": {"releases": [[2, 3]]}})
    assert refused.value.fields["cause"].problems[0].path == ("releases", 0, 1)
    for classes in (4, ["yellow", "red", "green"]):
        with Refused("does_not_fit", "toy: score", raises=ConfigError) as refused:
            epochs_of(score={"k": 3, "concern": {"classes": classes}})
        assert refused.value.fields["cause"].code == "classes_of_data"


def test_a_model_that_does_not_fit_the_data_is_refused() -> None:
    with Refused("caused_by", "model: cnn_m:", raises=PartError):
        epochs_of(model={"name": "cnn_m"})
    with Refused("caused_by", "model: rnn:", raises=PartError):
        epochs_of(model={"name": "rnn"})


def test_epochs_can_be_evaluated_on_the_first_batches_of_a_pass_of_their_own() -> None:
    epochs = epochs_of(epochs={"count": 2, "batches": 3})
    assert epochs[0].confusion.sum() == 30
    data = toy_data()
    torch.manual_seed(5)
    loader = DataLoader(
        TensorDataset(data.train.inputs, data.train.labels), batch_size=10, shuffle=True
    )
    nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    labels = torch.cat([labels for _, labels in itertools.islice(loader, 3)])
    assert torch.equal(epochs[0].confusion.sum(dim=1), labels.bincount(minlength=3))


class Dropping(nn.Sequential):
    """A user's own model, which tells its modes apart."""

    def __init__(
        self, input_shape: tuple[int, ...], num_classes: int, *, p: float = 0.5
    ) -> None:
        super().__init__(nn.Linear(input_shape[0], num_classes), nn.Dropout(p))


@pytest.mark.parametrize(("mode", "zeros"), [("eval", False), ("train", True)])
def test_evaluation_sets_the_mode_and_gives_it_back(mode: str, zeros: bool) -> None:
    prepared = TrainingRun(
        toy_config(
            model={"path": "tests.trainer.test_loop:Dropping", "p": 0.9},
            epochs={"count": 1, "mode": mode},
        ),
        toy_data(),
    )
    seen: list[bool] = []
    prepared.model.register_forward_hook(
        lambda module, inputs, logits: seen.append(bool((logits == 0).any()))
    )
    prepared.measure(prepared.split)
    assert seen == [zeros]
    assert prepared.model.training


def test_a_finished_run_predicts_in_the_mode_in_which_its_result_was_measured(
    tmp_path: Path,
) -> None:
    model = {"path": "tests.trainer.test_loop:Dropping", "p": 0.9}
    config = toy_config(model=model, epochs={"count": 2}, selector={"by": "mpcs"})
    run_in_folder(config, toy_data(), tmp_path)
    trained = open_trained(tmp_path, toy_data())
    logits = trained.logits(trained.test, trained.result.epoch)
    assert logits is not None
    accuracy = sklearn_metrics.accuracy_score(trained.test.labels, logits.argmax(dim=1))
    assert accuracy == pytest.approx(trained.result.values["test"]["accuracy"])
    assert (logits != 0).all(), "nothing is dropped"


def test_k_is_five_or_the_number_of_classes() -> None:
    assert TrainingRun(toy_config(score={}), toy_data()).config.score.k == 3


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without a GPU")
def test_an_accelerator_that_is_not_there_is_refused() -> None:
    with Refused("no_cuda", "toy: device.accelerator cuda:", raises=ConfigError):
        epochs_of(device={"accelerator": "cuda"})


def test_onednn_is_off_for_a_run_that_says_so_and_for_no_other() -> None:
    seen: list[bool] = []

    for onednn in (False, True):
        run = TrainingRun(
            toy_config(device={"onednn": onednn}, epochs={"count": 1}), toy_data()
        )
        run.model.register_forward_hook(
            lambda *_: seen.append(torch.backends.mkldnn.enabled)
        )
        run.train()
    assert seen == [False, False, True, True], "in the step and where the epoch is measured"
    assert torch.backends.mkldnn.enabled
