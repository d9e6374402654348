"""The same training in four frameworks, for `test_situations`: scripted scores, so that each situation is exact.

The model counts its training batches, so a checkpoint shows of which epoch it is. The score of an epoch is read from a
list, and an epoch can crash. Each function of `LOOPS` trains, and returns what a user sees afterwards.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import skorch
import skorch.callbacks
import torch
from ignite.engine import Engine, Events
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from transformers import PretrainedConfig, PreTrainedModel, Trainer, TrainingArguments
from transformers.modeling_outputs import SequenceClassifierOutput

from mpcs_torch.integrations import huggingface, ignite, lightning
from mpcs_torch.integrations import skorch as with_skorch
from mpcs_torch.learning import MPCSLR, CheckpointSelector, SelectionRule
from tests.integrations.quiet import ARGUMENTS, pl
from tests.integrations.quiet import Trainer as LightningTrainer

BATCHES, RATE = 2, 1.0
"""The batches of an epoch, and the first learning rate."""
NAME = "mine_loss"
"""The name of the score; its end tells the Trainer of Hugging Face that lower is better."""
RULE = SelectionRule(NAME, {NAME: "min"})


class CrashError(RuntimeError):
    """The end of a run that crashes."""


@dataclass
class Script:
    """The scores of the epochs, and what else happens."""

    scores: Sequence[float]
    folder: Path
    """A folder for the files of the framework itself."""
    crash_in: int | None = None
    """The index of the epoch that crashes."""
    resume: bool = False
    """Whether the framework continues a run that crashed."""
    callbacks: int = 1
    validates: bool = True
    logged: str = NAME
    rule: SelectionRule = RULE
    second_set: str | None = None
    """The name under which the score of a second validation set is logged; this score is 1 minus the first."""
    fits: int = 1
    """The number of times that the same objects are trained."""
    optimizer: torch.optim.Optimizer = field(init=False)
    rates: list[float] = field(default_factory=list)
    """The learning rate with which each epoch was trained."""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def epochs(self) -> int:
        return len(self.scores)

    def sgd(self, parameters: Any, lr: float = RATE) -> torch.optim.Optimizer:
        self.optimizer = torch.optim.SGD(parameters, lr=lr)
        return self.optimizer

    def values(self, model: "Counter") -> dict[str, float]:
        """Return the scores by name, as a framework without rules for names has them."""
        values = {self.logged: model.score()}
        if self.second_set is not None:
            values[self.second_set] = 1 - model.score()
        return values


class Counter(nn.Module):
    """A model that counts its training batches."""

    batches: Tensor

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.layer, self.script = nn.Linear(1, 2), script
        self.register_buffer("batches", torch.zeros((), dtype=torch.int64))

    def forward(self, inputs: Tensor) -> Tensor:
        if self.training:
            epoch, batch = divmod(int(self.batches), BATCHES)
            if epoch == self.script.crash_in:
                raise CrashError
            if batch == 0:
                self.script.rates.append(self.script.optimizer.param_groups[0]["lr"])
            self.batches += 1
        logits: Tensor = self.layer(inputs)
        return logits

    def score(self) -> float:
        return self.script.scores[int(self.batches) // BATCHES - 1]


def trained_weights(selector: CheckpointSelector) -> int:
    """Return the index of the epoch whose weights the best checkpoint has."""
    state = selector.load_best()
    for name in ("state_dict", "model", "module"):
        state = state.get(name, state)
    (batches,) = [value for name, value in state.items() if name.endswith("batches")]
    return int(batches) // BATCHES - 1


def data() -> DataLoader[Any]:
    return DataLoader(
        TensorDataset(
            torch.ones(2 * BATCHES, 1), torch.zeros(2 * BATCHES, dtype=torch.int64)
        ),
        2,
    )


def folders(script: Script) -> list[Path]:
    return [script.folder / f"best-{place}" for place in range(script.callbacks)]


class Module(pl.LightningModule):  # type: ignore[misc, name-defined]
    def __init__(self, script: Script) -> None:
        super().__init__()
        self.net, self.script = Counter(script), script

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(
        self, batch: list[Tensor], index: int, dataloader_idx: int = 0
    ) -> None:
        if dataloader_idx == 0:
            self.log(self.script.logged, self.net.score(), add_dataloader_idx=False)
        else:
            self.log("set", 1 - self.net.score())

    def configure_optimizers(self) -> Any:
        optimizer = self.script.sgd(self.parameters())
        scheduler = {
            "scheduler": MPCSLR(optimizer),
            "monitor": self.script.logged,
            "strict": False,
        }
        return {"optimizer": optimizer, "lr_scheduler": scheduler}


def with_lightning(script: Script) -> list[CheckpointSelector]:
    callbacks = [
        lightning.SelectCheckpoint(folder, script.rule, **script.options)
        for folder in folders(script)
    ]
    module = Module(script)
    for _ in range(script.fits):
        trainer = LightningTrainer(max_epochs=script.epochs, callbacks=callbacks)
        resumed = callbacks[0].last_model_path if script.resume else None
        validation = [data(), data()] if script.second_set else data()
        trainer.fit(
            module,
            data(),
            validation if script.validates else None,
            ckpt_path=resumed or None,
        )
        if script.validates:
            trainer.validate(module, data(), verbose=False)  # not another epoch
    return [callback.selector for callback in callbacks]


class Rows(Dataset[dict[str, Tensor]]):
    def __init__(self, size: int = 2 * BATCHES) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> dict[str, Tensor]:
        return {"inputs": torch.ones(1), "labels": torch.tensor(0)}


class Pretrained(PreTrainedModel):
    config_class = PretrainedConfig

    def __init__(self, script: Script) -> None:
        super().__init__(PretrainedConfig())
        self.net, self.script = Counter(script), script

    def forward(self, inputs: Tensor, labels: Tensor) -> SequenceClassifierOutput:
        logits = self.net(inputs)
        return SequenceClassifierOutput(
            loss=nn.functional.cross_entropy(logits, labels), logits=logits
        )


def with_huggingface(script: Script) -> list[CheckpointSelector]:
    callbacks = [
        huggingface.SelectCheckpoint(folder, script.rule, **script.options)
        for folder in folders(script)
    ]
    model = Pretrained(script)
    optimizer = script.sgd(model.parameters())
    arguments = TrainingArguments(
        **ARGUMENTS,
        output_dir=str(script.folder / "trainer"),
        num_train_epochs=script.epochs,
        per_device_train_batch_size=2,
        eval_strategy="epoch" if script.validates else "no",
        save_strategy="epoch",
        metric_for_best_model=f"first_{script.logged}"
        if script.second_set
        else script.logged,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=Rows(),
        eval_dataset={"first": Rows(), "second": Rows(2)} if script.second_set else Rows(),
        compute_metrics=lambda rows: {
            script.logged: model.net.score()
            if len(rows.label_ids) == 2 * BATCHES
            else 1 - model.net.score()
        },
        callbacks=callbacks,
        optimizers=(optimizer, MPCSLR(optimizer)),
    )
    for _ in range(script.fits):
        trainer.train(resume_from_checkpoint=script.resume or None)
        if script.validates:
            trainer.evaluate()  # not another epoch
    return [callback.selector for callback in callbacks]


def with_ignite(script: Script) -> list[CheckpointSelector]:
    model = Counter(script)
    optimizer = script.sgd(model.parameters())
    scheduler = MPCSLR(optimizer)

    def step(engine: Engine, batch: list[Tensor]) -> None:
        model.train()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch[0]), batch[1]).backward()
        optimizer.step()

    trainer, evaluator = Engine(step), Engine(lambda engine, batch: model.eval())
    parts = {
        "model": model,
        "optimizer": optimizer,
        "scheduler": scheduler,
        "trainer": trainer,
    }

    @evaluator.on(Events.COMPLETED)
    def measure() -> None:
        evaluator.state.metrics.update(script.values(model))

    def validate() -> None:
        scheduler.step(model.score())  # first, so that a checkpoint has its rate
        evaluator.run(data())

    def state() -> dict[str, Any]:
        return {name: part.state_dict() for name, part in parts.items()}

    handlers = [
        ignite.SelectCheckpoint(
            folder, script.rule, state=state, trainer=trainer, **script.options
        )
        for folder in folders(script)
    ]
    for handler in handlers:
        evaluator.add_event_handler(Events.COMPLETED, handler)
    if script.validates:
        trainer.add_event_handler(Events.EPOCH_COMPLETED, validate)
    if script.resume and handlers[0].selector.last_epoch is not None:
        saved = handlers[0].selector.load(handlers[0].selector.last_epoch)
        for name, part in parts.items():
            part.load_state_dict(saved[name])
    for _ in range(script.fits):
        evaluator.run(data())  # not an epoch, as little as the one after the training
        trainer.run(data(), max_epochs=script.epochs)
        evaluator.run(data())
    return [handler.selector for handler in handlers]


def scoring(name: str, score: Callable[..., float]) -> tuple[str, Any]:
    scorer = skorch.callbacks.EpochScoring(
        score, use_caching=False, on_train=True, name=name
    )
    return name, scorer


def in_skorch(script: Script) -> list[CheckpointSelector]:
    inputs, target = data().dataset.tensors  # type: ignore[attr-defined]
    selecting = [
        with_skorch.SelectCheckpoint(folder, script.rule, **script.options)
        for folder in folders(script)
    ]
    saved = skorch.callbacks.Checkpoint(monitor=None, dirname=script.folder / "saved")
    callbacks: list[Any] = []
    if script.second_set:
        callbacks.append(
            scoring(script.second_set, lambda net, *_: 1 - net.module_.score())
        )
    if script.validates:
        callbacks.append(scoring(script.logged, lambda net, *_: net.module_.score()))
        scheduler = skorch.callbacks.LRScheduler(MPCSLR, monitor=script.logged)
        callbacks.append(("rate", scheduler))
    callbacks.append(("saved", saved))
    for place, callback in enumerate(selecting):
        callbacks.append((f"best_{place}", callback))
    if script.resume:
        callbacks.append(("resume", skorch.callbacks.LoadInitState(saved)))
    net = skorch.NeuralNetClassifier(
        Counter,
        module__script=script,
        criterion=nn.CrossEntropyLoss,
        optimizer=script.sgd,
        lr=RATE,
        batch_size=2,
        train_split=None,
        verbose=0,
        classes=[0, 1],
        callbacks=callbacks,
        callbacks__print_log=None,
    )
    finished = (
        len(skorch.history.History.from_file(saved.f_history_)) if script.resume else 0
    )
    net.set_params(max_epochs=script.epochs - finished)
    for _ in range(script.fits):
        net.fit(inputs, target)
    return [callback.selector for callback in selecting]


Loop = Callable[[Script], list[CheckpointSelector]]
LOOPS: dict[str, Loop] = {
    "Lightning": with_lightning,
    "Hugging Face": with_huggingface,
    "Ignite": with_ignite,
    "skorch": in_skorch,
}
