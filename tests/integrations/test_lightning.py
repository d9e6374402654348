"""Lightning's Trainer takes the path of the plain loop, and resumes it."""

import functools
import importlib
import logging
import re
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from mpcs_torch import MetaPatternConcernScore, WithInterval, evaluate
from mpcs_torch.learning import CheckpointSelector, SelectionRule
from tests.integrations import plain_loop as plain

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own deprecations
    import pytorch_lightning as pl

    from mpcs_torch.integrations import lightning
    from mpcs_torch.integrations.lightning import SelectCheckpoint

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*does not have many workers"),
    pytest.mark.filterwarnings("ignore:.*logging interval"),
    pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning"),
]
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)


class Classifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net, self.loss = plain.model(), plain.loss()
        self.metrics = nn.ModuleDict(plain.metrics())
        self.rates: list[float] = []

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
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": plain.scheduler(optimizer), "monitor": "mpcs"}}


class Rates(pl.Callback):
    """Notes the learning rate after each epoch."""

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.current_epoch:
            self._note(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._note(trainer, pl_module)

    def _note(self, trainer: Any, pl_module: Any) -> None:
        pl_module.rates.append(trainer.optimizers[0].param_groups[0]["lr"])


def fit(
    *callbacks: pl.Callback,
    model: pl.LightningModule | None = None,
    epochs: int = plain.EPOCHS,
    ckpt_path: Path | None = None,
    **given: Any,
) -> tuple[Any, pl.Trainer]:
    settings = {
        "accelerator": "cpu",
        "logger": False,
        "enable_checkpointing": any(isinstance(each, pl.callbacks.Checkpoint) for each in callbacks),
        "enable_progress_bar": False,
        "enable_model_summary": False,
        **given,
    }
    model = Classifier() if model is None else model
    trainer = pl.Trainer(max_epochs=epochs, callbacks=[Rates(), *callbacks], **settings)
    train, valid = (DataLoader(split, plain.BATCH) for split in plain.data())
    trainer.fit(model, train, valid, ckpt_path=ckpt_path, weights_only=True if ckpt_path else None)
    return model, trainer


def test_pick_weights_and_learning_rates_are_those_of_the_plain_loop(tmp_path: Path) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    best = SelectCheckpoint(tmp_path / "lightning", plain.rule())
    selector = best.selector
    model, trainer = fit(best)  # with Lightning's sanity check, which must not count
    trainer.validate(model, DataLoader(plain.data()[0], plain.BATCH), verbose=False)  # nor must this
    weights = {name.removeprefix("net."): value for name, value in selector.load_best()["state_dict"].items()}
    scores = [epoch.values["mpcs"] for epoch in selector.epochs]
    plain.assert_same(expected, selector, weights, model.rates, scores)


def test_a_kept_checkpoint_resumes_the_run_and_loads_as_a_module(tmp_path: Path) -> None:
    expected = plain.plain_loop(tmp_path / "plain")
    best = SelectCheckpoint(tmp_path / "first", plain.rule(), keep_last=True)
    fit(best, epochs=3)
    selector = best.selector
    assert selector.epochs[-1].file is not None
    last = selector.folder / selector.epochs[-1].file
    second = SelectCheckpoint(tmp_path / "second", plain.rule())
    model, _ = fit(second, ckpt_path=last)
    resumed = second.selector
    assert model.rates == pytest.approx(expected.rates[2:])
    assert [epoch.values["mpcs"] for epoch in resumed.epochs][-3:] == pytest.approx(expected.scores[3:])
    restored = Classifier.load_from_checkpoint(last, weights_only=True)
    assert restored.state_dict().keys() == model.state_dict().keys()


def test_a_metric_that_is_not_logged_is_named(tmp_path: Path) -> None:
    rule = SelectionRule("val_mpcs", {"val_mpcs": MetaPatternConcernScore})
    with pytest.raises(ValueError, match=r"needs the metric val_mpcs, but got mpcs, accuracy.*: log it in valid"):
        fit(SelectCheckpoint(tmp_path, rule), epochs=1)


def test_all_that_is_logged_is_recorded_beside_checkpoints_of_lightning(tmp_path: Path) -> None:
    """The rule asks for MPCS alone; the epochs have the accuracy too."""
    best = SelectCheckpoint(tmp_path / "best", SelectionRule("mpcs", {"mpcs": "min", "accuracy": "max"}))
    fit(best, pl.callbacks.ModelCheckpoint(tmp_path / "usual", save_top_k=-1), epochs=2)
    assert set(best.selector.epochs[0].values) == {"mpcs", "accuracy"}
    assert [row[0] for row in best.selector.explain().rows] == ["the rule", "mpcs", "accuracy"]
    assert len(list((tmp_path / "usual").iterdir())) == 2
    _, trainer = fit(SelectCheckpoint(tmp_path / "alone", plain.rule()), epochs=1)
    assert [type(each) for each in trainer.checkpoint_callbacks] == [SelectCheckpoint]


class Told(Classifier):
    """Logs the loss of training, whose mean Lightning knows once validation is over."""

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        loss = super().training_step(batch, index)
        self.log("train_loss", loss, on_step=True, on_epoch=True)
        return loss


def test_metrics_of_an_epoch_are_not_mixed_with_those_of_training_in_the_epoch_before(tmp_path: Path) -> None:
    best = SelectCheckpoint(tmp_path / "a", plain.rule())
    fit(best, model=Told(), epochs=3)
    assert [set(epoch.values) for epoch in best.selector.epochs] == [{"mpcs", "accuracy"}] * 3
    late = SelectCheckpoint(tmp_path / "b", SelectionRule("train_loss", {"train_loss": "min"}))
    with pytest.raises(ValueError, match=r"needs the metric train_loss, but got mpcs, accuracy.*: log it in valid"):
        fit(late, model=Told(), epochs=3)


def test_the_three_lines_of_the_page_go_on_with_a_run_that_was_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/frameworks/lightning.md").read_text()
    (lines,) = re.findall(r"## Resuming.*?```py\n(.*?)```", page, flags=re.DOTALL)
    assert len(lines.splitlines()) == 3
    monkeypatch.chdir(tmp_path)
    expected = plain.plain_loop(tmp_path / "plain")
    train, validation = (DataLoader(split, plain.BATCH) for split in plain.data())
    quiet = {"accelerator": "cpu", "logger": False, "enable_progress_bar": False, "enable_model_summary": False}

    def trainer(epochs: int, callbacks: list[pl.Callback], max_epochs: int) -> pl.Trainer:
        return pl.Trainer(**quiet, max_epochs=min(epochs, max_epochs), callbacks=callbacks)

    for epochs in (2, 4, plain.EPOCHS):  # twice cut off
        names = {
            "SelectCheckpoint": SelectCheckpoint,
            "Trainer": functools.partial(trainer, epochs),
            "model": Classifier(),
        }
        names |= {"rule": plain.rule(), "train": train, "validation": validation}
        exec(lines, names)
    selector = CheckpointSelector.open(tmp_path / "checkpoints")
    assert [epoch.values["mpcs"] for epoch in selector.epochs] == pytest.approx(expected.scores)
    assert selector.best is not None


class Sure(Classifier):
    def __init__(self) -> None:
        super().__init__()
        self.sure = WithInterval(plain.metrics()["mpcs"], prefix="sure_mpcs")

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        super().validation_step(batch, index)
        self.sure.update(self.net(batch[0]), batch[1])

    def on_validation_epoch_end(self) -> None:
        self.log_dict(self.sure.compute())
        self.sure.reset()


def test_intervals_are_logged() -> None:
    model, trainer = fit(model=Sure(), epochs=1)
    logged = {name: value.item() for name, value in trainer.callback_metrics.items()}
    inputs, target = plain.data()[1].tensors
    probs = model.net(inputs).detach().softmax(1)
    expected = evaluate(probs, target, concern=plain.LIGHTS, metrics=["mpcs"])
    assert logged["sure_mpcs"] == pytest.approx(logged["mpcs"], rel=1e-6)
    assert (logged["sure_mpcs_low"], logged["sure_mpcs_high"]) == pytest.approx(expected.interval("mpcs"), rel=1e-4)


def test_the_package_lightning_serves_where_pytorch_lightning_is_missing(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "pytorch_lightning", None)
    monkeypatch.setitem(sys.modules, "lightning", pl)
    monkeypatch.setitem(sys.modules, "lightning.pytorch", pl)
    try:
        assert issubclass(importlib.reload(lightning).SelectCheckpoint, pl.Callback)
    finally:
        monkeypatch.undo()
        importlib.reload(lightning)


def fit_in_two_processes(folder: Path) -> None:
    best = SelectCheckpoint(folder, SelectionRule("mpcs", {"mpcs": MetaPatternConcernScore}))
    _, trainer = fit(best, epochs=3, strategy="ddp_fork", devices=2)
    assert trainer.world_size == 2


@pytest.mark.slow
def test_of_two_processes_the_first_writes_and_the_others_wait(tmp_path: Path) -> None:
    code = f"import pathlib; from {__name__} import fit_in_two_processes as fit; fit(pathlib.Path({str(tmp_path)!r}))"
    # In a process of its own, because one that has used autograd cannot be forked.
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True, capture_output=True)
    epochs = CheckpointSelector.open(tmp_path).epochs
    assert [epoch.number for epoch in epochs] == [0, 1, 2]
    assert sorted(path.name for path in tmp_path.glob("*.pt")) == [epoch.file for epoch in epochs if epoch.file]
