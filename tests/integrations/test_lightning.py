"""Lightning's Trainer takes the path of the plain loop, however often it is cut off."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from mpcs_torch import ConcernRange, ConcernSpec, MetaPatternConcernScore
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.integrations.lightning import SelectCheckpoint
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from mpcs_torch.learning.selection import MissingMetricError
from tests.integrations import plain_loop as plain
from tests.integrations.quiet import Trainer, pl
from tests.processes.run_python import run_python
from tests.refused import Refused

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*logging interval"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]


class Classifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.loss = plain.model(), plain.loss()
        self.metrics = plain.metrics()

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        loss: Tensor = self.loss(self.net(batch[0]), batch[1])
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        logits = self.net(batch[0])
        for name, metric in self.metrics.items():
            metric.update(logits, batch[1])
            self.log(name, metric, on_epoch=True)

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=plain.RATE)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": plain.scheduler(optimizer), "monitor": "mpcs"},
        }


def valid_loader() -> DataLoader[Any]:
    return DataLoader(plain.data()[1], plain.BATCH)


def fit(
    *callbacks: pl.Callback,
    model: pl.LightningModule | None = None,
    epochs: int = plain.EPOCHS,
    **given: Any,
) -> tuple[Any, pl.Trainer]:
    has_files = any(isinstance(each, pl.callbacks.Checkpoint) for each in callbacks)
    settings = {"max_epochs": epochs, "enable_checkpointing": has_files, **given}
    model = Classifier() if model is None else model
    trainer = Trainer(callbacks=list(callbacks), **settings)
    trainer.fit(model, DataLoader(plain.data()[0], plain.BATCH), valid_loader())
    return model, trainer


class WithHyperparameters(Classifier):
    def __init__(self, concern: ConcernSpec, costs: ConcernRange) -> None:
        super().__init__()
        self.save_hyperparameters()


def test_concerns_in_hyperparameters_load_without_running_code(tmp_path: Path) -> None:
    concern = ConcernSpec(["red", "green"], weights=[[0, 5], [1, 0]], refer=0.5)
    costs = ConcernRange([concern], [replace(concern, refer=0.7)])
    best = SelectCheckpoint(tmp_path / "best", plain.rule())
    model, trainer = fit(best, model=WithHyperparameters(concern, costs), epochs=1)
    trainer.save_checkpoint(tmp_path / "saved.ckpt")
    for path in (tmp_path / "saved.ckpt", best.selector.best_path):
        restored = WithHyperparameters.load_from_checkpoint(path, weights_only=True)
        assert dict(restored.hparams) == {"concern": concern, "costs": costs}
        assert restored.state_dict().keys() == model.state_dict().keys()


TRAIN_LOSS = SelectionRule("train_loss", {"train_loss": "min"})


class Told(Classifier):
    """Logs the loss of training, whose mean Lightning knows once validation is over."""

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        loss = super().training_step(batch, index)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss


def test_metrics_of_an_epoch_are_not_mixed_with_those_of_training_in_the_epoch_before(
    tmp_path: Path,
) -> None:
    best = SelectCheckpoint(tmp_path / "a", plain.rule())
    fit(best, model=Told(), epochs=3)
    assert [set(epoch.values) for epoch in best.selector.epochs] == [
        {"mpcs", "accuracy"}
    ] * 3
    with Refused("metric_of_rule", raises=MissingMetricError, metrics="train_loss"):
        fit(SelectCheckpoint(tmp_path / "b", TRAIN_LOSS), model=Told(), epochs=3)


def test_values_of_training_are_those_that_model_checkpoint_finds(tmp_path: Path) -> None:
    at_end = {"save_on_train_epoch_end": True}
    best = SelectCheckpoint(tmp_path / "best", TRAIN_LOSS, **at_end)
    usual = pl.callbacks.ModelCheckpoint(tmp_path / "usual", monitor="train_loss", **at_end)
    fit(best, usual, model=Told(), epochs=3)
    assert [epoch.number for epoch in best.selector.epochs] == [0, 1, 2]
    assert set(best.selector.epochs[0].values) >= {"train_loss", "mpcs", "accuracy"}
    assert best.best_model_score == pytest.approx(float(usual.best_model_score))
    paths = best.best_model_path, usual.best_model_path
    weights = [torch.load(path, weights_only=True)["state_dict"] for path in paths]
    torch.testing.assert_close(*weights, rtol=0.0, atol=0.0)


class WithConstantRate(Told):
    """Its rate needs no score."""

    def configure_optimizers(self) -> Any:
        return torch.optim.SGD(self.parameters(), lr=plain.RATE)


class WithoutValidation(WithConstantRate):
    validation_step = None


@pytest.mark.filterwarnings("ignore:You passed in a `val_dataloader`")
def test_without_validation_values_of_training_are_recorded(tmp_path: Path) -> None:
    best = SelectCheckpoint(tmp_path, TRAIN_LOSS, patience=1)
    _, trainer = fit(best, model=WithoutValidation(), epochs=3)
    assert trainer.checkpoint_callbacks == [best], "Lightning adds none of its own"
    assert len(best.selector.epochs) >= 2


def test_a_trainer_that_never_validates_is_refused_before_it_trains(tmp_path: Path) -> None:
    best = SelectCheckpoint(tmp_path, plain.rule())
    settings = {"model": WithConstantRate(), "check_val_every_n_epoch": 4}
    with pytest.raises(InvalidValueError):
        fit(best, epochs=3, **settings)
    with pytest.warns(UserWarning, match="SelectCheckpoint has recorded no epoch"):
        fit(best, epochs=4, max_steps=7, **settings)
    fit(best, epochs=4, fast_dev_run=True, **settings)
    fit(best, epochs=4, **settings)
    assert [epoch.number for epoch in best.selector.epochs] == [3]


@pytest.mark.filterwarnings(
    "ignore:.*(was called without a model|with multiple `ModelCheckpoint`)"
)
@pytest.mark.parametrize("call", ["test", "validate"])
def test_the_best_checkpoint_is_that_of_the_trainer(tmp_path: Path, call: str) -> None:
    """The first checkpoint callback is asked, whatever stands after it."""
    best = SelectCheckpoint(tmp_path / "best", plain.rule())
    other = SelectCheckpoint(tmp_path / "other", plain.rule())
    usual = pl.callbacks.ModelCheckpoint(tmp_path / "usual", monitor="mpcs")
    model, trainer = fit(best, usual, other)
    model.test_step = model.validation_step
    picked = best.selector.best
    assert picked is not None
    assert picked.number < plain.EPOCHS - 1, "else the last weights would do"
    # Without a model, the Trainer takes the best checkpoint.
    for given, path in ((model, "best"), (model, best.best_model_path), (None, None)):
        (values,) = getattr(trainer, call)(given, valid_loader(), path, verbose=False)
        assert values["mpcs"] == pytest.approx(picked.values["mpcs"])
    assert best.best_model_score == picked.values["mpcs"]
    restored = Classifier.load_from_checkpoint(best.best_model_path, weights_only=True)
    assert restored.state_dict().keys() == model.state_dict().keys()


@pytest.mark.filterwarnings(
    "ignore:.*(You're using the WeightAveraging|was not created with)"
)
def test_averaged_weights_are_kept_as_they_were_validated(tmp_path: Path) -> None:
    best = SelectCheckpoint(tmp_path, SelectionRule("mpcs", {"mpcs": "min"}))
    fit(pl.callbacks.EMAWeightAveraging(decay=0.5), best, epochs=4)
    assert best.selector.best is not None
    model = Classifier()
    model.load_state_dict(best.selector.load_best()["state_dict"])
    inputs, target = plain.data()[1].tensors
    score = plain.metrics()["mpcs"](model.net(inputs), target)
    assert float(score) == pytest.approx(best.selector.best.values["mpcs"])


def test_the_lines_of_the_page_go_on_with_a_run_that_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/frameworks/lightning.md").read_text()
    (lines,) = re.findall(r"## Resuming.*?```py\n(.*?)```", page, flags=re.DOTALL)
    assert len(lines.splitlines()) == 4
    monkeypatch.chdir(tmp_path)
    expected = plain.plain_loop(tmp_path / "plain")
    for epochs in (2, 4, plain.EPOCHS):  # twice cut off
        names = {
            "SelectCheckpoint": SelectCheckpoint,
            "Trainer": lambda callbacks, max_epochs, end=epochs: Trainer(
                callbacks=callbacks, max_epochs=min(max_epochs, end)
            ),
            "model": Classifier(),
            "rule": plain.rule(),
            "train": DataLoader(plain.data()[0], plain.BATCH),
            "validation": valid_loader(),
        }
        exec(lines, names)
    selector = CheckpointSelector.open(tmp_path / "checkpoints")
    scores = [epoch.values["mpcs"] for epoch in selector.epochs]
    assert scores == pytest.approx(expected.scores)
    assert selector.best is not None
    assert selector.best.number == expected.picked


def test_the_package_lightning_serves_where_pytorch_lightning_is_missing() -> None:
    # In a process of its own: a module that is loaded twice has two classes of each name.
    program = """
import sys
import pytorch_lightning as pl
sys.modules.update({"pytorch_lightning": None, "lightning": pl, "lightning.pytorch": pl})
from mpcs_torch.integrations.lightning import SelectCheckpoint
assert issubclass(SelectCheckpoint, pl.Callback)
"""
    run_python("-c", program)


def fit_in_two_processes(folder: Path, strategy: str) -> None:
    """Train with the ranks' own values, which differ, and look at the parent's callbacks afterwards."""
    rule = SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore})
    callbacks = [
        SelectCheckpoint(folder / name, rule, patience=2) for name in ("first", "second")
    ]
    _, trainer = fit(*callbacks, epochs=3, strategy=strategy, devices=2)
    assert trainer.world_size == 2
    for callback in callbacks:
        assert [epoch.number for epoch in callback.selector.epochs] == [0, 1, 2]
        assert callback.selector.best is not None
        assert Path(callback.best_model_path).name == callback.selector.best.file
    trainer.validate(Classifier(), valid_loader(), ckpt_path="best", verbose=False)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["ddp_fork", "ddp_spawn"])
def test_of_two_processes_the_first_writes_and_the_parent_sees_it(
    tmp_path: Path, strategy: str
) -> None:
    # In a process of its own, because one that has used autograd cannot be forked.
    run_python("-m", __name__, tmp_path, strategy)
    epochs = CheckpointSelector.open(tmp_path / "first").epochs
    files = [epoch.file for epoch in epochs if epoch.file]
    assert sorted(path.name for path in (tmp_path / "first").glob("*.pt")) == files


if __name__ == "__main__":
    fit_in_two_processes(Path(sys.argv[1]), sys.argv[2])
