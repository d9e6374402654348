"""Lightning: the module of its tutorials "Train a model" and "Validate and test a model".

The learning rate follows MPCS, a rule picks the epoch that is tested, and TensorBoard shows
a figure.
"""

import logging
import warnings
from typing import Any

import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.learning import MPCSLR, SelectionRule, SoftmaxMarginLoss
from mpcs_torch.metrics import Accuracy

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own deprecations
    import pytorch_lightning as pl

    from mpcs_torch.integrations.lightning import SelectCheckpoint

# Confusing 1 with 7, or 3, 5 and 8 with each other, is an everyday mistake.
# Any other error is dangerous.
RELEASES = [[1, 7], [7, 1], [3, 5, 8], [5, 3, 8], [8, 3, 5]]
CONCERN = ConcernSpec(classes=10, releases=RELEASES, factor=0.1)


class Digits(pl.LightningModule):
    """A small network over 64 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        self.loss = SoftmaxMarginLoss(CONCERN)
        self.mpcs = MetaPatternConcernScore(10, concern=CONCERN)
        self.accuracy = Accuracy(10)
        self.test_mpcs = MetaPatternConcernScore(10, concern=CONCERN)

    def training_step(self, batch: list[Tensor], _: int) -> Tensor:
        """Return the loss of a batch."""
        loss: Tensor = self.loss(self.net(batch[0]), batch[1])
        return loss

    def validation_step(self, batch: list[Tensor], _: int) -> None:
        """Log metrics as objects: Lightning computes them over batches and processes."""
        logits = self.net(batch[0])
        self.mpcs.update(logits, batch[1])
        self.accuracy.update(logits, batch[1])
        self.log_dict({"mpcs": self.mpcs, "accuracy": self.accuracy}, on_epoch=True)

    def test_step(self, batch: list[Tensor], index: int) -> None:  # noqa: ARG002
        """Log the score on test data."""
        self.test_mpcs.update(self.net(batch[0]), batch[1])
        self.log("test_mpcs", self.test_mpcs)

    def on_validation_epoch_end(self) -> None:
        """Send a figure of MPCS to TensorBoard."""
        figure, _ = self.mpcs.plot()
        board = self.logger.experiment  # type: ignore[union-attr]
        board.add_figure("mpcs", figure, self.global_step)

    def configure_optimizers(self) -> Any:
        """Let the learning rate follow MPCS."""
        optimizer = torch.optim.SGD(self.parameters(), lr=0.5)
        scheduler = {"scheduler": MPCSLR(optimizer), "monitor": "mpcs"}
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def main() -> None:
    """Train for up to eight epochs, print the epoch that the rule picks, and test it."""
    warnings.filterwarnings("ignore", module="pytorch_lightning")
    logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
    torch.manual_seed(0)
    digits = load_digits()
    inputs = torch.tensor(digits.data, dtype=torch.float32) / 16
    labels = torch.tensor(digits.target)
    seen = TensorDataset(inputs[:1347], labels[:1347])
    train = DataLoader(seen, batch_size=64, shuffle=True)
    held_out = TensorDataset(inputs[1347:1572], labels[1347:1572])
    validation = DataLoader(held_out, batch_size=225)
    test = DataLoader(TensorDataset(inputs[1572:], labels[1572:]), batch_size=225)

    directions = {"mpcs": MetaPatternConcernScore, "accuracy": "max"}
    rule = SelectionRule("mpcs", directions, within={"accuracy": 0.01})
    best = SelectCheckpoint("lightning_checkpoints", rule, patience=3)
    trainer = pl.Trainer(
        max_epochs=8,
        accelerator="cpu",
        logger=pl.loggers.TensorBoardLogger("lightning_logs"),
        callbacks=[best],
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    trainer.fit(Digits(), train, validation)
    print(best.selector.explain().markdown())
    trainer.test(dataloaders=test, ckpt_path="best")


if __name__ == "__main__":
    main()
