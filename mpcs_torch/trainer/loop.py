"""The reference trainer: a run with its parts, the training loop, and the measurement at each epoch.

Read `TrainingRun` from top to bottom: it makes the parts that the config names, trains, takes a step, takes an epoch,
measures a split, and saves and restores its state.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import isfinite
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_avg_fn

from mpcs_torch.errors import InvalidValueError, MpcsError, require
from mpcs_torch.functional.concern.mpcs import pattern_settings
from mpcs_torch.functional.quality.scores import confusion_matrix
from mpcs_torch.learning import MarginRamp, SoftmaxMarginLoss
from mpcs_torch.metrics.metric_entry import MetricEntry
from mpcs_torch.processes import ALONE, World, is_of_backend
from mpcs_torch.trainer.config.load import import_paths
from mpcs_torch.trainer.config.parts import TEST, PartError, error_of_parts
from mpcs_torch.trainer.config.sections import ConfigError, RunConfig
from mpcs_torch.trainer.data import DataSplits, Split, shuffled
from mpcs_torch.trainer.measuring import inputs_from_logits, make_metrics, value_of


@dataclass(frozen=True)
class Measurement:
    """The metrics, confusion matrix and logits of a model on a split."""

    values: dict[str, float]
    """The value of each metric."""
    confusion: Tensor
    """The confusion matrix, int64 (C, C): rows are true classes, columns predicted classes."""
    logits: Tensor
    """The logits (N, C) of the samples that this process measures."""


@dataclass(frozen=True)
class MeasuredEpoch:
    """The metrics and the confusion matrix of one epoch."""

    number: int
    """The number of the epoch, counted from 1."""
    values: dict[str, float]
    """The value of each metric, by its column in the records file."""
    confusion: Tensor
    """The confusion matrix on the measured split, int64 (C, C): rows are true classes, columns predicted classes."""

    @property
    def record(self) -> dict[str, float]:
        """The row of this epoch in the records file, by column."""
        return {"epoch": self.number, **self.values}


Hook = Callable[[MeasuredEpoch, "TrainingRun"], str | None]
"""A function that is called after each epoch. If it returns text, the run stops, and the text is saved as the reason in
`RunResult.stopped`. Hooks are not saved: a resumed run calls them again for epochs after the last saved state."""


PROGRESS = ("epochs", "steps", "order", "taken", "stopped")
"""The attributes of `TrainingRun` that tell how far it is."""


class TrainingRun:
    """A training run: its parts and its progress. Hooks may read them, and may change the model and the optimizer.

    Creating a run seeds PyTorch's random generator.

    Args:
        config: The config of the run.
        data: The data that the config names.
        world: The processes that train together.

    Raises:
        ConfigError: If the config does not match the data, a split is missing, or the accelerator is unavailable.
        PartError: If a part cannot be made.
    """

    epochs = 0
    """The number of finished epochs."""
    steps = 0
    """The number of optimizer steps."""
    order: Tensor | None = None
    """The order of the samples in the current pass, int64 (N,); None between passes."""
    taken = 0
    """The number of batches of the current pass that were taken."""
    loss_scale = 1.0
    """The factor of the loss: the latest value of the metric ``training.loss_scale``, before the first value 1."""
    stopped: str | None = None
    """The reason why the run stopped before its last epoch; None if it did not stop early."""

    def __init__(self, config: RunConfig, data: DataSplits, world: World = ALONE) -> None:
        self.config = config = resolved_config(config, data)
        self.world = world
        training = config.training
        concern = config.score.concern.spec(data.class_names)
        device = _device(config)
        dtype = torch.float64 if config.device.precision == "64-true" else torch.float32
        self.data = data = data.to(device, dtype)
        if training.batch_size == "all":
            self.batch_size = len(data.train.labels)
        else:
            self.batch_size = training.batch_size

        # To reproduce published runs, keep the order of all uses of the random generator below.
        torch.manual_seed(config.seed)
        shape, classes = data.train.inputs.shape[1:], len(data.class_names)
        self.model: nn.Module = config.model.make(shape, classes).to(device, dtype)
        world.copy_from_first([*self.model.parameters(), *self.model.buffers()])
        self.average: AveragedModel | None = None
        if training.averaging is not None:
            average_by = get_ema_avg_fn(training.averaging)  # type: ignore[no-untyped-call]
            self.average = AveragedModel(self.model, avg_fn=average_by, use_buffers=True)
        self.engine = world.engine(self.model)
        self.optimizer = training.optimizer.make(
            self.model.parameters(), training.learning_rate
        )
        self.split, self.at_once = self._measured_split()
        self.metrics = make_metrics(config, data)
        self.loss = config.loss.make(concern)
        if isinstance(self.loss, nn.Module):
            self.loss = self.loss.to(device)
        self.ramp = _margin_ramp(config, self.loss)
        self.noise = 0.0
        if training.noise:
            self.noise = training.noise * data.train.inputs.std().item()
        self.scheduler = None
        if config.scheduler is not None:
            self.scheduler = config.scheduler.make(
                self.optimizer, config.epochs.count, config.directions
            )
        if world.rank:  # dropout, for example, must differ between the shares of a batch
            torch.manual_seed(config.seed + world.rank)

    def _measured_split(self) -> tuple[Split, int]:
        """Return the samples that are measured at each epoch, and the maximum number of samples in a forward pass."""
        epochs = self.config.epochs
        of_train = self.data.train
        if epochs.batches is not None:
            # This uses the random generator, so do it even if validation samples are measured.
            order = shuffled(self.data.train, self.world)
            of_train = self.data.train.at(order[: epochs.batches * self.batch_size])
        split = of_train if epochs.samples == "train" else self.data.validation
        if split is None:
            raise ConfigError(
                "validation_split",
                f"{self.config.name}: epochs.samples:",
                data=str(self.config.data),
            )
        at_once = len(split.labels) if epochs.batches is None else self.batch_size
        return split, at_once

    @property
    def measured(self) -> nn.Module:
        """The model that is measured and saved: the averaged model if there is one, otherwise ``model``."""
        return self.model if self.average is None else self.average.module

    @property
    def is_over(self) -> bool:
        """Whether the last epoch is finished, or the run stopped before."""
        return self.epochs >= self.config.epochs.count or self.stopped is not None

    def train(
        self,
        hooks: Sequence[Hook] = (),
        after_step: Callable[["TrainingRun"], None] = lambda _: None,
    ) -> "TrainingRun":
        """Train to the last epoch, and return this run.

        At each epoch, measure the model, step the scheduler, update the loss scale, and call ``hooks`` in order. After
        each optimizer step except the last, call ``after_step``, which may save the run.
        """
        when = self.config.epochs.when
        while not self.is_over:
            if self.order is None:
                self.order = shuffled(self.data.train, self.world)
                self.taken = 0
            batches = torch.split(self.order, self.batch_size)
            for samples in batches[self.taken :]:
                ends_epoch = self._ends_epoch(self.taken, len(batches))
                self.taken += 1
                if ends_epoch and when == "before":
                    self._take_epoch(hooks)
                with self.running():
                    self.train_step(self.data.train.at(samples))
                if ends_epoch and when == "after":
                    self._take_epoch(hooks)
                if self.is_over:
                    return self
                after_step(self)
            self.order = None
        return self

    def _ends_epoch(self, step: int, batches: int) -> bool:
        """Return whether an epoch ends at ``step``, the number of one of the ``batches`` of a pass, counted from 0."""
        epochs = self.config.epochs
        if epochs.unit == "step":
            return step % epochs.every == 0
        return step + 1 == batches and (self.steps + 1) % (epochs.every * batches) == 0

    def train_step(self, batch: Split) -> None:
        """Take a step of the optimizer on the samples ``batch``.

        Each process computes the logits of its share of the rows, and the loss of all rows, times its scale.
        """
        self.optimizer.zero_grad()
        target = batch.labels
        inputs = batch.inputs[self.world.rows(len(target))]
        if self.noise:
            inputs = inputs + self.noise * torch.randn_like(inputs)
        of_share = self._forward_pass(self.engine, inputs)
        logits = self.world.gather_rows(of_share, len(target))
        loss = self.loss(logits, target) * self.loss_scale
        # Each process has only the gradients of its share, and the engine averages them: times the number of processes,
        # the mean is their sum.
        (self.world.size * loss).backward()
        if self.config.training.clip_norm is not None:
            nn.utils.clip_grad_norm_(
                self.model.parameters(), self.config.training.clip_norm
            )
        self.optimizer.step()
        self.steps += 1
        if self.average is not None:
            self.average.update_parameters(self.model)

    def _take_epoch(self, hooks: Sequence[Hook]) -> None:
        """Measure the model, step what follows its metrics, and call the hooks, which may stop the run."""
        self.epochs += 1
        with self.running():
            measurement = self.measure(self.split)
            values = measurement.values | self._values_on_test()
            if self.scheduler is not None:
                self.scheduler(values)
        if self.ramp is not None:
            self.ramp.step()
        followed = self.config.training.loss_scale
        if followed is not None and isfinite(values[followed]):  # else, it has diverged
            place = f"training.loss_scale, {followed},"
            require(values[followed] >= 0, "at_least", place, values[followed], minimum=0)
            self.loss_scale = values[followed]
        epoch = MeasuredEpoch(self.epochs, values, measurement.confusion)
        answers = [hook(epoch, self) for hook in hooks]
        for answer in answers:
            is_reason = isinstance(answer, str) and answer != ""
            require(answer is None or is_reason, "reason_to_stop", "a hook", answer)
        reasons = [answer for answer in answers if answer is not None]
        first = reasons[0] if reasons else None
        self.stopped = self.world.from_first(lambda: first)

    def _values_on_test(self) -> dict[str, float]:
        """Return the metrics that the config measures on the test split at each epoch, by column of the records."""
        names = self.config.epochs.test
        if not names:
            return {}
        test = self.data.test
        metrics = [(entry, made) for entry, made in self.metrics if entry.name in names]
        measured = self.measure(test, metrics, batch_size=len(test.labels))
        return {f"{TEST}{name}": value for name, value in measured.values.items()}

    def measure(
        self,
        split: Split,
        metrics: Sequence[tuple[MetricEntry, Any]] | None = None,
        *,
        batch_size: int | None = None,
    ) -> Measurement:
        """Measure the model on ``split``, with ``metrics`` (by default, all of the run).

        Each process computes the logits of its share of the samples, at most ``batch_size`` at once.
        """
        metrics = self.metrics if metrics is None else metrics
        logits = self.logits(split, batch_size=batch_size)
        labels = split.labels
        whole = self.world.gather_rows(logits, len(labels))
        inputs = inputs_from_logits(whole, {entry.takes for entry, _ in metrics})
        values = {
            entry.name: entry.number(value_of(made, inputs[entry.takes], labels))
            for entry, made in metrics
        }
        confusion = confusion_matrix(
            inputs["decisions"], labels, num_classes=whole.shape[1]
        ).long()
        return Measurement(values, confusion.cpu(), logits)

    @torch.no_grad()
    def logits(self, split: Split, *, batch_size: int | None = None) -> Tensor:
        """Compute the logits (N, C) of this process's share of ``split``, in the mode of the config (train or eval)."""
        model = self.measured
        mode_before = model.training
        model.train(self.config.epochs.mode == "train")
        share = split.inputs[self.world.rows(len(split.labels))]
        parts = torch.split(share, batch_size or min(len(split.labels), self.at_once))
        logits = torch.cat([self._forward_pass(model, inputs) for inputs in parts])
        model.train(mode_before)
        return logits

    def _forward_pass(self, model: nn.Module, inputs: Tensor) -> Tensor:
        """Return the logits (N, C) of ``model``, as float32 in mixed precision; check what the user's model returns."""
        is_mixed = self.config.device.precision == "bf16-mixed"
        with torch.autocast(inputs.device.type, torch.bfloat16, enabled=is_mixed):
            logits: Tensor = model(inputs)
        shape = (len(inputs), len(self.data.class_names))
        is_valid = isinstance(logits, Tensor) and logits.is_floating_point()
        if not is_valid or logits.shape != shape:
            returned = logits if isinstance(logits, Tensor) else type(logits).__name__
            place = "model.path: forward"
            raise PartError("returns_logits", place, shape=shape, returned=returned)
        return logits.float() if is_mixed else logits

    @contextmanager
    def running(self) -> Iterator[None]:
        """Set oneDNN as in the config for the with block; turn an error in the user's code into a `PartError`."""
        # PyTorch's context manager sets more than this flag, and warns.
        backend: Any = torch.backends.mkldnn
        before = backend.enabled
        backend.enabled = self.config.device.onednn
        try:
            yield
        except Exception as error:
            of_parts = error_of_parts(error, import_paths(self.config.model_dump()))
            if of_parts is None or is_of_backend(error):
                raise
            raise of_parts from error
        finally:
            backend.enabled = before

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed run needs. All processes must call this together."""
        random = [torch.get_rng_state()]
        if torch.cuda.is_available():
            random.append(torch.cuda.get_rng_state())
        with self.running():
            parts = {name: part.state_dict() for name, part in self._saved_parts().items()}
        # As a part with a state, which it was in older versions.
        parts["loss_scale"] = {"score": self.loss_scale}
        progress = {name: getattr(self, name) for name in PROGRESS}
        return {"parts": parts, **progress, "random": self.world.gather(lambda: random)}

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        """Restore what `state_dict` returned, with as many processes as before, or with more or fewer."""
        for name, part in self._saved_parts().items():
            part.load_state_dict(saved["parts"][name])
        self.loss_scale = saved["parts"]["loss_scale"]["score"]
        with_reason = {"stopped": None, **saved}  # older versions did not save it
        for name in PROGRESS:
            setattr(self, name, with_reason[name])
        if self.order is not None:
            self.order = self.order.to(self.data.train.labels.device)
        if self.world.rank < len(saved["random"]):
            cpu, *cuda = saved["random"][self.world.rank]
            torch.set_rng_state(cpu)
            if cuda and torch.cuda.is_available():
                torch.cuda.set_rng_state(cuda[0])

    def _saved_parts(self) -> dict[str, Any]:
        names = ("model", "average", "optimizer", "scheduler", "loss", "ramp")
        parts = {name: getattr(self, name) for name in names}
        # Some may be None, or a user's function, and have no state.
        return {name: part for name, part in parts.items() if hasattr(part, "state_dict")}


def _margin_ramp(config: RunConfig, loss: object) -> MarginRamp | None:
    ramp = config.training.margin_ramp
    if ramp is None:
        return None
    place = f"{config.name}: training.margin_ramp"
    if not isinstance(loss, SoftmaxMarginLoss):
        raise ConfigError("needs", place, other="the loss softmax_margin")
    try:
        return MarginRamp(loss, config.epochs.count, begin=ramp[0], end=ramp[1])
    except InvalidValueError as error:
        raise ConfigError("caused_by", f"{place}:", cause=error) from None


def resolved_config(config: RunConfig, data: DataSplits) -> RunConfig:
    """Return ``config`` with k and t of MPCS filled in for ``data``; raise a `ConfigError` if the data do not fit."""
    score = config.score
    classes = len(data.class_names)
    try:
        concern = score.concern.spec(data.class_names)
        k, t = pattern_settings(
            classes, concern, k=score.k, t=score.t, concession=score.concession
        )
    except MpcsError as error:
        place = f"{config.name}: score"
        data_set = str(config.data)
        raise ConfigError("does_not_fit", place, data=data_set, cause=error) from None
    resolved = score.model_copy(update={"k": k, "t": t, "concession": None})
    return config.model_copy(update={"score": resolved})


def _device(config: RunConfig) -> torch.device:
    if config.device.accelerator == "cpu":
        return torch.device("cpu")
    if not torch.cuda.is_available():
        raise ConfigError("no_cuda", f"{config.name}: device.accelerator cuda:")
    number = os.environ.get("LOCAL_RANK", torch.cuda.current_device())
    return torch.device("cuda", int(number))
