"""The loop: seed, loader, model, optimizer; then steps, and turns that evaluate and tell the hooks."""

import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import isfinite
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.inputs.checks import check_pattern_settings
from mpcs_torch.learning import ConcernLossScale
from mpcs_torch.trainer.config import ConfigError, RunConfig
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.evaluation import Evaluation, Evaluator
from mpcs_torch.trainer.losses import Loss

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Turn:
    """What happened in one turn."""

    number: int
    """Counted from 1."""
    evaluation: Evaluation


@dataclass
class LoopState:
    """What the loop holds: hooks may read all of it and change model and optimizer."""

    fabric: "Fabric"
    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss: Loss
    loss_scale: ConcernLossScale
    turns: int = 0
    """Turns done."""
    steps: int = 0
    """Optimizer steps done."""


Hook = Callable[[Turn, LoopState], None]
"""Called after each evaluation: loggers, schedulers and selectors are hooks."""


@dataclass(frozen=True)
class PreparedRun:
    """A run that has all it needs; nothing that its config can get wrong is left to fail."""

    config: RunConfig
    """With the defaults that depend on the data filled in."""
    state: LoopState
    loader: Any
    evaluator: Evaluator
    learning: Sequence[Hook]
    """What the config's scheduler and loss scale do at each turn, before other hooks."""

    def start(self, hooks: Sequence[Hook] = ()) -> LoopState:
        """Train and evaluate, calling the hooks in this order at each turn; return the state after the last turn."""
        turns = self.config.turns
        hooks = [*self.learning, *hooks]
        with self.kernels():
            for step, batch in _endless_steps(self.loader):
                is_turn = step % turns.every == 0
                if is_turn and turns.when == "before":
                    _take_turn(self.state, self.evaluator, hooks)
                train_step(self.state, *batch)
                if is_turn and turns.when == "after":
                    _take_turn(self.state, self.evaluator, hooks)
                if self.state.turns == turns.count:
                    break
        return self.state

    @contextmanager
    def kernels(self) -> Iterator[None]:
        """Inside, PyTorch uses the kernels that the config allows."""
        backend: Any = torch.backends.mkldnn  # its own context manager sets more than this, with a warning
        before, backend.enabled = backend.enabled, self.config.device.onednn
        try:
            yield
        finally:
            backend.enabled = before


def prepare_run(config: RunConfig, data: DataSplits) -> PreparedRun:
    """Seed the generators and build loader, model and optimizer.

    Raises:
        ConfigError: If k or the concern does not fit the classes of the data, the accelerator is not there, or several
            processes were launched.
    """
    k = config.score.k or min(5, len(data.class_names))
    config = config.model_copy(update={"score": config.score.model_copy(update={"k": k})})
    fabric = _single_process_fabric(config)
    concern = _check_score(config, k, data)
    batch_size = len(data.train_labels) if config.training.batch_size == "all" else config.training.batch_size

    # This order, and no other draw in between, is what makes a seed replay a published run.
    torch.manual_seed(config.seed)
    loader = DataLoader(TensorDataset(data.train_inputs, data.train_labels), batch_size=batch_size, shuffle=True)
    try:
        model = config.model.build(data)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{config.name}: model does not fit {config.data}: {error}") from None
    optimizer = torch.optim.Adam(model.parameters(), lr=config.training.learning_rate)
    measured = data if config.turns.batches is None else _first_batches(loader, config.turns.batches, data)
    if config.turns.samples == "test":
        measured = replace(data, train_inputs=data.test_inputs, train_labels=data.test_labels)

    evaluator = Evaluator(
        measured.to(fabric.device),
        concern,
        k=k,
        t=config.score.t,
        mode=config.turns.mode,
        batch_size=len(data.train_labels) if config.turns.batches is None else batch_size,
    )
    loss = config.loss.build(concern.matrix().to(fabric.device))
    fabric_model, fabric_optimizer = fabric.setup(model, optimizer)
    state = LoopState(fabric, fabric_model, fabric_optimizer, loss, ConcernLossScale())
    return PreparedRun(config, state, fabric.setup_dataloaders(loader), evaluator, _learning_hooks(config, optimizer))


def _learning_hooks(config: RunConfig, optimizer: torch.optim.Optimizer) -> list[Hook]:
    hooks: list[Hook] = []
    if config.scheduler is not None:
        step = config.scheduler.build(optimizer, config.turns.count)
        hooks.append(lambda turn, state: step(turn.evaluation.values))  # noqa: ARG005  # a Hook
    if (column := config.training.loss_scale) is not None:
        hooks.append(lambda turn, state: _rescale(state, turn.evaluation.values[column]))
    return hooks


def _rescale(state: LoopState, score: float) -> None:
    if isfinite(score):  # a run that has diverged keeps its scale
        state.loss_scale.update(score)


def _first_batches(loader: Any, count: int, data: DataSplits) -> DataSplits:
    """The data with the first batches of a pass of the loader as its training samples."""
    inputs, labels = zip(*itertools.islice(loader, count), strict=True)
    return replace(data, train_inputs=torch.cat(inputs), train_labels=torch.cat(labels))


def train_step(state: LoopState, inputs: Tensor, target: Tensor) -> None:
    """One optimizer step on the scaled loss of a batch."""
    state.optimizer.zero_grad()
    state.fabric.backward(state.loss_scale(state.loss(state.model(inputs), target)))
    state.optimizer.step()
    state.steps += 1


def _take_turn(state: LoopState, evaluator: Evaluator, hooks: Sequence[Hook]) -> None:
    state.turns += 1
    turn = Turn(state.turns, evaluator(state.model))
    for hook in hooks:
        hook(turn, state)


def _endless_steps(loader: Any) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """Batches of pass after pass, each with its number in its pass."""
    while True:
        yield from enumerate(loader)


def _check_score(config: RunConfig, k: int, data: DataSplits) -> ConcernSpec:
    try:
        check_pattern_settings(k=k, t=config.score.t, num_classes=len(data.class_names))
        return config.score.concern.spec(data.class_names)
    except ValueError as error:
        raise ConfigError(f"{config.name}: score does not fit {config.data}: {error}") from None


def _single_process_fabric(config: RunConfig) -> "Fabric":
    from lightning_fabric import Fabric  # takes seconds to import
    from lightning_fabric.utilities.exceptions import MisconfigurationException

    world_size = os.environ.get("WORLD_SIZE", "1")
    if world_size != "1":
        raise ConfigError(f"a run must be launched as one process, but WORLD_SIZE is {world_size}")
    try:
        return Fabric(accelerator=config.device.accelerator, devices=1, precision=config.device.precision)
    except (MisconfigurationException, RuntimeError) as error:
        raise ConfigError(f"{config.name}: device.accelerator {config.device.accelerator}: {error}") from None
