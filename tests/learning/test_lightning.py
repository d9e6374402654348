"""Scheduler and selector in Lightning's Trainer, which must recognize the scheduler as a plateau scheduler."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch import MetaPatternConcernScore
from mpcs_torch.learning import MPCSLR, CheckpointSelector, ConcernLoss, SelectionRule
from tests.trainer.toy import toy_data

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own deprecations
    import pytorch_lightning as pl


class Classifier(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.model = torch.nn.Linear(4, 3)
        self.loss = ConcernLoss()
        self.mpcs = MetaPatternConcernScore(3)
        self.rates: list[float] = []
        self.scores: list[float] = []

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        loss: Tensor = self.loss(self.model(batch[0]), batch[1])
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        self.mpcs.update(self.model(batch[0]), batch[1])
        self.log("val_mpcs", self.mpcs, on_epoch=True)

    def on_train_epoch_start(self) -> None:
        self.rates.append(self.trainer.optimizers[0].param_groups[0]["lr"])

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": MPCSLR(optimizer), "monitor": "val_mpcs"}}


class Select(pl.Callback):
    def __init__(self, selector: CheckpointSelector) -> None:
        self.selector = selector

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        score = trainer.callback_metrics["val_mpcs"].item()
        pl_module.scores.append(score)
        self.selector.update(pl_module.state_dict, epoch=trainer.current_epoch, val_mpcs=score)


@pytest.mark.filterwarnings("ignore")  # Lightning's advice about workers and loggers
def test_the_scheduler_gets_the_monitored_score_and_the_selector_keeps_its_best(tmp_path: Path) -> None:
    data = toy_data()
    torch.manual_seed(0)
    train = DataLoader(TensorDataset(data.train.inputs, data.train.labels), batch_size=15)
    validation = DataLoader(TensorDataset(data.test.inputs, data.test.labels), batch_size=15)
    selector = CheckpointSelector(tmp_path, SelectionRule("val_mpcs", {"val_mpcs": MetaPatternConcernScore}))
    model = Classifier()
    trainer = pl.Trainer(
        max_epochs=4,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        callbacks=[Select(selector)],
    )
    trainer.fit(model, train, validation)
    assert len(model.scores) == 4
    assert model.rates == pytest.approx([0.5, *(0.5 * min(score / model.scores[0], 1) for score in model.scores[:3])])
    assert selector.best is not None
    assert selector.best.values["val_mpcs"] == min(model.scores)
    restored = Classifier()
    restored.load_state_dict(selector.load_best())
