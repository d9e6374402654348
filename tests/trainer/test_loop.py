"""The reference loop beside a loop in plain PyTorch, scikit-learn and plain Python."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch.trainer.config.parts import PartError
from mpcs_torch.trainer.config.sections import ConfigError
from mpcs_torch.trainer.folder import run_in_folder
from mpcs_torch.trainer.loop import MeasuredEpoch, TrainingRun
from mpcs_torch.trainer.result import open_trained
from tests.oracles import algorithm_1
from tests.refused import Refused, sentence
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
    is_released = (labels == 0) & (predicted == 1)
    right = (test_logits.argmax(dim=1) == data.test.labels).double()
    return {
        "f1_macro": float(f1_score(labels, predicted, average="macro")),
        "cross_entropy": nn.functional.cross_entropy(logits, labels).item(),
        "mpcs": algorithm_1.score(*score),
        "mpcs_count": algorithm_1.score(*score, correct_concern="count"),
        "dangerous": int(((predicted != labels) & ~is_released).sum()),
        "test_accuracy": right.mean().item(),
    }


def plain_loop(
    when: str, every: int, *, unit: str = "step", batch_size: int | str
) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield the number of steps, and the values of an epoch.

    This writes down a second time the order of random draws that published runs have.
    """
    data = toy_data()
    torch.manual_seed(5)
    dataset = TensorDataset(data.train.inputs, data.train.labels)
    size = len(dataset) if batch_size == "all" else int(batch_size)
    loader = DataLoader(dataset, batch_size=size, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    steps = 0
    for number in itertools.count(1):
        for step, (inputs, labels) in enumerate(loader):
            is_epoch = unit == "step" and step % every == 0
            if is_epoch and when == "before":
                yield steps, plain_values(model)
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
            steps += 1
            if is_epoch and when == "after":
                yield steps, plain_values(model)
        if unit == "pass" and number % every == 0:
            yield steps, plain_values(model)


@pytest.mark.parametrize(
    ("epochs", "batch_size"),
    [
        ({"when": "before", "every": 1}, 10),
        ({"when": "before", "every": 3}, 10),
        ({"when": "after", "every": 1}, 10),
        ({"when": "after", "every": 3}, 10),
        ({"when": "after", "every": 1, "unit": "pass"}, 10),
        ({"when": "after", "every": 3, "unit": "pass"}, 10),
        ({"when": "after", "every": 2, "unit": "pass"}, 44),  # the last batch holds one
        ({"when": "after", "every": 1, "unit": "pass"}, "all"),
        ({"when": "after", "every": 20}, 1),
    ],
)
def test_epochs_are_those_of_a_plain_loop(
    epochs: dict[str, Any], batch_size: int | str
) -> None:
    config = toy_config(
        epochs={"count": 8, "test": ["accuracy"], **epochs},
        training={"batch_size": batch_size, "learning_rate": 0.05},
    )
    plain = itertools.islice(plain_loop(**epochs, batch_size=batch_size), 8)
    expected = list(plain)  # all at once, because both draw from torch's generator
    measured: list[tuple[int, MeasuredEpoch]] = []
    run = TrainingRun(config, toy_data())
    run.train([lambda epoch, state: measured.append((state.steps, epoch))])
    assert [epoch.number for _, epoch in measured] == list(range(1, 9))
    for (steps, epoch), (plain_steps, values) in zip(measured, expected, strict=True):
        assert steps == plain_steps
        assert epoch.values == pytest.approx({**epoch.values, **values}, rel=1e-5)


def test_a_pass_is_measured_after_its_last_step() -> None:
    with pytest.raises(ValueError, match=sentence("after_pass", "when")):
        toy_config(epochs={"unit": "pass", "when": "before"})


def test_mixed_precision_learns_as_well() -> None:
    epochs = epochs_of(device={"precision": "bf16-mixed"})
    assert epochs[-1].values["accuracy"] > 0.8


@pytest.mark.parametrize(
    ("score", "code"),
    [
        ({"k": 5}, "rank"),
        ({"k": 3, "concern": {"classes": 4}}, "classes_of_data"),
        ({"k": 3, "concern": {"classes": ["yellow", "red", "green"]}}, "classes_of_data"),
        ({"t": 50, "concession": 0.02}, "not_with"),
    ],
)
def test_a_score_that_does_not_fit_the_data_is_refused(
    score: dict[str, Any], code: str
) -> None:
    with Refused("does_not_fit", "toy: score", raises=ConfigError) as refused:
        epochs_of(score=score)
    assert refused.value.fields["cause"].code == code


def test_a_released_pair_that_the_data_lack_is_named() -> None:
    with Refused("does_not_fit", "toy: score", raises=ConfigError) as refused:
        epochs_of(score={"k": 3, "concern": {"releases": [[2, 3]]}})
    assert refused.value.fields["cause"].problems[0].path == ("releases", 0, 1)


@pytest.mark.parametrize("name", ["cnn_m", "rnn"])
def test_a_model_that_does_not_fit_the_data_is_refused(name: str) -> None:
    with Refused("caused_by", f"model: {name}:", raises=PartError):
        epochs_of(model={"name": name})


def test_epochs_can_be_evaluated_on_the_first_batches_of_a_pass_of_their_own() -> None:
    [epoch] = epochs_of(epochs={"count": 1, "batches": 3})
    data = toy_data().train
    torch.manual_seed(5)
    loader = DataLoader(
        TensorDataset(data.inputs, data.labels), batch_size=10, shuffle=True
    )
    nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 3))
    labels = torch.cat([labels for _, labels in itertools.islice(loader, 3)])
    assert torch.equal(epoch.confusion.sum(dim=1), labels.bincount(minlength=3))


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
    accuracy = accuracy_score(trained.test.labels, logits.argmax(dim=1))
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
