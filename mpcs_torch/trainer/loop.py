"""The training loop: batches, optimizer steps, evaluation at each epoch, and hooks (functions called after it)."""

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from mpcs_torch.errors import require
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.probabilities import log_softmax
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.quality.roc_area import RocArea
from mpcs_torch.functional.quality.scores import confusion_matrix
from mpcs_torch.learning import MarginRamp
from mpcs_torch.metrics.register import MetricEntry, Takes
from mpcs_torch.processes import ALONE, World, is_of_backend
from mpcs_torch.trainer.config.parts import TEST, PartError, error_of_parts
from mpcs_torch.trainer.config.sections import Precision, RunConfig
from mpcs_torch.trainer.data import DataSplits, Split
from mpcs_torch.trainer.loss_scale import ConcernLossScale
from mpcs_torch.trainer.named_parts import Loss, Step


@dataclass(frozen=True)
class EvaluatedSplit:
    """The metrics, confusion matrix and logits of a model on a split."""

    values: dict[str, float]
    """The value of each metric."""
    confusion: Tensor
    """The confusion matrix, int64 (C, C): rows are true classes, columns predicted classes."""
    logits: Tensor
    """The logits (N, C) of the samples that this process evaluates."""


@dataclass(frozen=True)
class Evaluator:
    """A callable that evaluates a model on ``split``. Each process computes the logits of its share of the samples."""

    split: Split
    metrics: Sequence[tuple[MetricEntry, Any]]
    """The entries of the register, each with its measure or Metric."""
    mode: Literal["eval", "train"]
    precision: Precision
    classes: int
    batch_size: int
    """The maximum number of samples in one forward pass."""
    world: World = ALONE

    @property
    def share(self) -> Split:
        """The samples of ``split`` whose logits this process computes."""
        rows = self.world.rows(len(self.split.labels))
        return self.split if self.world.size == 1 else Split(self.split.inputs[rows], self.split.labels[rows])

    @torch.no_grad()
    def __call__(self, model: nn.Module) -> EvaluatedSplit:
        """Evaluate ``model`` in the mode ``self.mode`` (train or eval), then restore its earlier mode."""
        mode_before = model.training
        model.train(self.mode == "train")
        logits = self.logits(model)
        model.train(mode_before)
        labels = self.split.labels
        whole = self.world.gather_rows(logits, len(labels))
        inputs = inputs_from_logits(whole, {entry.takes for entry, _ in self.metrics})
        values = {entry.name: entry.number(value_of(made, inputs[entry.takes], labels)) for entry, made in self.metrics}
        confusion = confusion_matrix(inputs["decisions"], labels, num_classes=whole.shape[1]).long()
        return EvaluatedSplit(values, confusion.cpu(), logits)

    @torch.no_grad()
    def logits(self, model: nn.Module) -> Tensor:
        """Compute the logits (N, C) of the samples that this process evaluates."""
        parts = torch.split(self.share.inputs, self.batch_size)
        batches = [forward_pass(model, inputs, self.precision, self.classes) for inputs in parts]
        return batches[0] if len(batches) == 1 else torch.cat(batches)


def value_of(made: Any, preds: Tensor, target: Tensor) -> Any:
    """Return the value of a measure or a Metric, ``made``, for samples that are not validated: a model may diverge."""
    if isinstance(made, Measure):
        made = made.on_device_of(preds)
        return made.value_of_rows(made.rows(preds, target))
    if isinstance(made, RocArea):
        return made.value(made.rows(preds, target))
    made.to(preds.device).reset()
    return made(preds, target)


def inputs_from_logits(logits: Tensor, takes: Collection[Takes]) -> dict[Takes, Tensor]:
    """Compute the inputs of metrics that ``takes`` lists, such as "probabilities", from ``logits`` (N, C)."""
    inputs: dict[Takes, Tensor] = {"decisions": highest_class(logits)[1], "trials": logits}
    if "probabilities" in takes or "log_probabilities" in takes:
        inputs["log_probabilities"] = log_softmax(logits)
    if "probabilities" in takes:
        inputs["probabilities"] = inputs["log_probabilities"].exp()
    return inputs


def forward_pass(model: nn.Module, inputs: Tensor, precision: Precision, classes: int) -> Tensor:
    """Return the logits (N, ``classes``) of ``model``, as float32 in mixed precision.

    Raise a `PartError` if the output of ``model`` has another shape, or is not floating point.
    """
    is_mixed = precision == "bf16-mixed"
    with torch.autocast(inputs.device.type, torch.bfloat16) if is_mixed else nullcontext():
        logits = model(inputs)
    shape = (len(inputs), classes)
    if not isinstance(logits, Tensor) or logits.shape != shape or not logits.is_floating_point():
        seen = f"{logits.dtype} {tuple(logits.shape)}" if isinstance(logits, Tensor) else type(logits).__name__
        raise PartError(f"model.path: forward must return logits, floating point {shape}, but returns {seen}")
    return logits.float() if is_mixed else logits


@dataclass(frozen=True)
class ShuffledBatches:
    """The batches of a split in random order; each iteration is a pass over the split in a new order.

    The order is that of ``DataLoader(..., shuffle=True)``, and uses up the same numbers of the global random generator.
    """

    split: Split
    batch_size: int
    world: World = ALONE

    def __len__(self) -> int:
        return -(-len(self.split.labels) // self.batch_size)

    def __iter__(self) -> Iterator[tuple[Tensor, Tensor]]:
        yield from self.of(self.draw())

    def draw(self) -> Tensor:
        """Return a random order of the samples, int64 (N,), which is the same in all processes."""
        size, device = len(self.split.labels), self.split.labels.device
        order = torch.empty(size, dtype=torch.int64)
        if self.world.is_first:  # draw the same numbers as DataLoader and RandomSampler before the first batch
            _random_seed()  # a DataLoader draws a seed for workers even if it has none
            order = torch.randperm(size, generator=torch.Generator().manual_seed(_random_seed()))
        order = order.to(device)
        self.world.copy_from_first([order])
        return order

    def of(self, order: Tensor, start: int = 0) -> Iterator[tuple[Tensor, Tensor]]:
        """Yield inputs and labels of the batches from number ``start`` on; ``order`` (N,) has the sample indices."""
        inputs, labels = self.split.inputs, self.split.labels
        for index in torch.split(order, self.batch_size)[start:]:
            yield inputs.index_select(0, index), labels.index_select(0, index)


def _random_seed() -> int:
    return int(torch.empty((), dtype=torch.int64).random_())


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


@dataclass
class LoopState:
    """The state of the training loop. Hooks may read all fields, and may change the model and the optimizer."""

    model: nn.Module
    engine: nn.Module
    """The module to train: ``model``, or with several processes, a wrapper of it that exchanges gradients."""
    optimizer: torch.optim.Optimizer
    loss: Loss
    loss_scale: ConcernLossScale
    precision: Precision
    classes: int
    world: World = ALONE
    clip_norm: float | None = None
    """The maximum norm of all gradients together; None for no maximum."""
    noise: float = 0.0
    """The standard deviation of the random noise that is added to inputs in training."""
    ramp: MarginRamp | None = None
    """The ramp that raises the margin of the loss after each epoch; None for no ramp."""
    epochs: int = 0
    """The number of finished epochs."""
    steps: int = 0
    """The number of optimizer steps."""
    order: Tensor | None = None
    """The order of the samples in the current pass, int64 (N,); None between passes."""
    taken: int = 0
    """The number of batches of the current pass that were yielded."""
    stopped: str | None = None
    """The reason why the run stopped before its last epoch; None if it did not stop early."""
    average: AveragedModel | None = None
    """A model with a moving average of the weights; None if the config asks for no average."""

    @property
    def measured(self) -> nn.Module:
        """The model that is evaluated and saved: the averaged model if there is one, otherwise ``model``."""
        return self.model if self.average is None else self.average.module


Hook = Callable[[MeasuredEpoch, LoopState], str | None]
"""A function that is called after each epoch. If it returns text, the run stops, and the text is saved as the reason in
`RunResult.stopped`. Hooks are not saved: a resumed run calls them again for epochs after the last saved state."""


@dataclass(frozen=True)
class PreparedRun:
    """A training run that is ready to start."""

    config: RunConfig
    """The config, with the defaults that depend on the data."""
    state: LoopState
    batches: ShuffledBatches
    data: DataSplits
    """The samples, on the device of the run."""
    evaluator: Evaluator
    """The evaluator that is called at each epoch."""
    test_evaluator: Evaluator | None
    """The evaluator of the test split at each epoch; None unless the config has ``epochs.test``."""
    scheduler: Step | None = None
    """The function that steps the learning-rate scheduler; None without a scheduler."""

    def start(
        self, hooks: Sequence[Hook] = (), after_step: Callable[["PreparedRun"], None] = lambda _: None
    ) -> LoopState:
        """Train to the last epoch, and return the state of the loop.

        At each epoch, evaluate the model, step the scheduler, update the loss scale, and call ``hooks`` in order. After
        each optimizer step except the last, call ``after_step``, which may save the run.
        """
        epochs, state = self.config.epochs, self.state
        for step, batch in self._remaining_batches():
            is_epoch = self._ends_epoch(step)
            if is_epoch and epochs.when == "before":
                self._take_epoch(hooks)
            with self.running():
                train_step(state, *batch)
            if is_epoch and epochs.when == "after":
                self._take_epoch(hooks)
            if state.epochs == epochs.count or state.stopped is not None:
                break
            after_step(self)
        return state

    def _ends_epoch(self, step: int) -> bool:
        """Return whether an epoch ends at ``step``, the number of a batch in its pass, counted from 0."""
        epochs, batches = self.config.epochs, len(self.batches)
        if epochs.unit == "step":
            return step % epochs.every == 0
        return step + 1 == batches and (self.state.steps + 1) % (epochs.every * batches) == 0

    def _remaining_batches(self) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
        """Yield the remaining batches of the run: pairs of a batch's number in its pass, from 0, and the batch."""
        state = self.state
        while state.epochs < self.config.epochs.count and state.stopped is None:
            if state.order is None:
                state.order, state.taken = self.batches.draw(), 0
            for batch in self.batches.of(state.order, state.taken):
                state.taken += 1
                yield state.taken - 1, batch
            state.order = None

    def _take_epoch(self, hooks: Sequence[Hook]) -> None:
        self.state.epochs += 1
        with self.running():
            evaluation = self.evaluator(self.state.measured)
            values = dict(evaluation.values)
            if self.test_evaluator is not None:
                on_test = self.test_evaluator(self.state.measured).values
                values |= {f"{TEST}{name}": value for name, value in on_test.items()}
            if self.scheduler is not None:
                self.scheduler(values)
        epoch = MeasuredEpoch(self.state.epochs, values, evaluation.confusion)
        if self.state.ramp is not None:
            self.state.ramp.step()
        loss_scale = self.config.training.loss_scale
        if loss_scale is not None and isfinite(values[loss_scale]):  # do not update the scale of a diverged run
            self.state.loss_scale.update(values[loss_scale])
        reasons = [hook(epoch, self.state) for hook in hooks]
        for reason in reasons:
            is_reason = reason is None or (isinstance(reason, str) and reason != "")
            require(is_reason, "reason_to_stop", "a hook", reason)
        first_reason = next((reason for reason in reasons if reason is not None), None)
        self.state.stopped = self.state.world.from_first(lambda: first_reason)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Set oneDNN as in the config for the with block; turn an error in the user's code into a `PartError`."""
        backend: Any = torch.backends.mkldnn  # PyTorch's context manager sets more than this flag, and warns
        before, backend.enabled = backend.enabled, self.config.device.onednn
        try:
            yield
        except Exception as error:
            if is_of_backend(error) or (of_parts := error_of_parts(error, self.config.custom_parts)) is None:
                raise
            raise of_parts from error
        finally:
            backend.enabled = before


def train_step(state: LoopState, inputs: Tensor, target: Tensor) -> None:
    """Take a step of the optimizer on ``inputs`` (N, ...) and labels ``target`` (N,), with the loss times its scale."""
    world, share = state.world, state.world.rows(len(target))
    state.optimizer.zero_grad()
    inputs = inputs[share]
    if state.noise:
        inputs = inputs + state.noise * torch.randn_like(inputs)
    logits = forward_pass(state.engine, inputs, state.precision, state.classes)
    logits = world.gather_rows(logits, len(target))
    loss = world.size * state.loss_scale(state.loss(logits, target))  # the engine takes the mean over processes
    loss.backward()  # type: ignore[no-untyped-call]
    if state.clip_norm is not None:
        nn.utils.clip_grad_norm_(state.model.parameters(), state.clip_norm)
    state.optimizer.step()
    state.steps += 1
    if state.average is not None:
        state.average.update_parameters(state.model)
