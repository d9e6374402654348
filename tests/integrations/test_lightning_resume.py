"""A run that Lightning resumes from any of its checkpoints has the learning rates of the unbroken one."""

import itertools
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau
from torch.utils.data import DataLoader

from mpcs_torch.integrations.lightning import SelectCheckpoint
from mpcs_torch.learning import MPCSLR, SelectionRule
from tests.integrations.quiet import Trainer, pl

pytestmark = [
    pytest.mark.filterwarnings(
        "ignore:.*(does not have many workers|LeafSpec|resuming from a checkpoint that|callbacks used)"
    ),
    pytest.mark.filterwarnings(
        "ignore:.*(is smaller than the logging interval|set `devices=1`|log on epoch level)"
    ),
    pytest.mark.filterwarnings(
        "ignore:ReduceLROnPlateau conditioned on metric mpcs:RuntimeWarning"
    ),
]
EPOCHS, BATCHES = 3, 4


class Net(pl.LightningModule):
    """Its scores fall with the steps; it notes the rates that each batch is trained with."""

    def __init__(self, schedulers: str, config: dict[str, Any]) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.schedulers, self.config = schedulers, config
        self.automatic_optimization = schedulers != "two optimizers"
        self.rates: dict[tuple[int, int], list[float]] = {}

    def training_step(self, batch: Tensor, index: int) -> Tensor:
        rates = self.rates[self.trainer.current_epoch, index] = []
        for optimizer in self.trainer.optimizers:
            rates += [round(group["lr"], 9) for group in optimizer.param_groups]
        loss = self.layer(batch).square().mean()
        if not self.automatic_optimization:
            self.manual_backward(loss)
            for optimizer in self.optimizers():  # type: ignore[union-attr]
                optimizer.step()
                optimizer.zero_grad()
        return loss

    def validation_step(self, batch: Tensor, index: int) -> None:
        self.log("mpcs", 1.0 / (1 + self.trainer.global_step))

    def on_train_epoch_end(self) -> None:
        if not self.automatic_optimization:
            for scheduler in self.lr_schedulers():  # type: ignore[union-attr]
                scheduler.step(self.trainer.callback_metrics["mpcs"])

    def configure_optimizers(self) -> Any:
        if self.schedulers == "two optimizers":
            optimizers = [torch.optim.SGD([weight], lr=0.1) for weight in self.parameters()]
            return optimizers, [MPCSLR(optimizers[0]), MPCSLR(optimizers[1], power=0.5)]
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1)
        if self.schedulers == "one":
            scheduler = MPCSLR(optimizer)
            return [optimizer], [{"scheduler": scheduler, "monitor": "mpcs", **self.config}]
        score = MPCSLR(optimizer, sets_rates=False)
        cosine = LambdaLR(
            optimizer, lambda n: score.factor * (1 + math.cos(math.pi * n / 20)) / 2
        )
        plateau = ReduceLROnPlateau(optimizer, mode="max", patience=0)
        return [optimizer], [
            {"scheduler": cosine, "interval": "step"},
            {"scheduler": score, "monitor": "mpcs", **self.config},
            {"scheduler": plateau, "monitor": "mpcs", "frequency": 2},
        ]


def fit(
    net: pl.LightningModule,
    *callbacks: pl.Callback,
    resume: Path | None = None,
    **options: Any,
) -> Any:
    torch.manual_seed(0)
    has_files = any(isinstance(each, pl.callbacks.Checkpoint) for each in callbacks)
    trainer = Trainer(
        max_epochs=EPOCHS, enable_checkpointing=has_files, callbacks=[*callbacks], **options
    )
    data = DataLoader(torch.ones(2 * BATCHES, 2), batch_size=2)
    trainer.fit(
        net, data, data, ckpt_path=resume, weights_only=None if resume is None else True
    )
    return trainer


def selecting(folder: Path) -> SelectCheckpoint:
    return SelectCheckpoint(
        folder, SelectionRule("mpcs", {"mpcs": "min"}), keep_every=1, flush=False
    )


OPTIONS = [
    *itertools.product(
        ["one", "several"],
        [{"val_check_interval": 0.5}, {"val_check_interval": 0.25}],
        [
            {},
            {"frequency": 2},
            {"interval": "step", "frequency": 2},
            {"interval": "step", "frequency": 3},
        ],
    ),
    ("one", {}, {}),
    ("several", {}, {"frequency": 2}),
    ("one", {"val_check_interval": 3, "check_val_every_n_epoch": None}, {}),
    (
        "several",
        {"val_check_interval": 3, "check_val_every_n_epoch": None},
        {"interval": "step", "frequency": 3},
    ),
    ("one", {"check_val_every_n_epoch": 2}, {"strict": False}),
    ("one", {"val_check_interval": 0.25}, {"interval": "step"}),
    (
        "one",
        {"accumulate_grad_batches": 2, "val_check_interval": 0.5},
        {"interval": "step"},
    ),
    (
        "several",
        {"accumulate_grad_batches": 2, "val_check_interval": 0.5},
        {"frequency": 2},
    ),
    ("two optimizers", {"val_check_interval": 0.5}, {}),
]


@pytest.mark.slow
@pytest.mark.parametrize(("schedulers", "trainer", "config"), OPTIONS)
def test_resumed_rates_are_those_of_the_unbroken_run(
    tmp_path: Path, schedulers: str, trainer: dict[str, Any], config: dict[str, Any]
) -> None:
    options = {"num_sanity_val_steps": 0, **trainer}
    unbroken, best = Net(schedulers, config), selecting(tmp_path / "unbroken")
    usual = pl.callbacks.ModelCheckpoint(
        tmp_path / "usual", save_top_k=-1, save_on_train_epoch_end=True
    )
    steps = fit(unbroken, best, usual, **options).global_step
    files = [*best.selector.folder.glob("*.pt"), *(tmp_path / "usual").iterdir()]
    assert len(files) == len(best.selector.epochs) + EPOCHS
    for number, file in enumerate(sorted(files)):
        resumed = Net(schedulers, config)
        fit(resumed, selecting(tmp_path / str(number)), resume=file, **options)
        done = torch.load(file, weights_only=True)["global_step"] / steps
        rest = list(unbroken.rates.items())[round(done * EPOCHS * BATCHES) :]
        assert list(resumed.rates.items()) == rest


def test_lightning_alone_forgets_the_last_step_before_a_checkpoint(tmp_path: Path) -> None:
    """The page of Lightning says so; the callback would be needless once this changes."""
    unbroken, best = Net("one", {}), selecting(tmp_path / "unbroken")
    fit(unbroken, best, num_sanity_val_steps=0)
    resumed = Net("one", {})
    fit(resumed, resume=best.selector.folder / "epoch-00000.pt", num_sanity_val_steps=0)
    assert resumed.rates[2, 0] != unbroken.rates[2, 0]
