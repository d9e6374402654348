"""The training loop: optimizer steps, and turns that evaluate and call the hooks."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from mpcs_torch.learning import ConcernLossScale
from mpcs_torch.trainer.batches import ShuffledBatches
from mpcs_torch.trainer.config import RunConfig
from mpcs_torch.trainer.data import DataSplits
from mpcs_torch.trainer.evaluation import Evaluator, forward_pass
from mpcs_torch.trainer.losses import Loss
from mpcs_torch.trainer.metrics_config import TEST
from mpcs_torch.trainer.sections import Precision


@dataclass(frozen=True)
class Turn:
    """The measurements of one turn."""

    number: int
    """Counted from 1."""
    values: dict[str, float]
    """The value of each column of the records."""
    confusion: Tensor
    """int64 (C, C), on the split that turns are measured on: rows true classes, columns predicted ones."""


@dataclass
class LoopState:
    """The state of the loop: hooks may read all of it, and change model and optimizer."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    loss: Loss
    loss_scale: ConcernLossScale
    precision: Precision
    turns: int = 0
    """Turns done."""
    steps: int = 0
    """Optimizer steps done."""
    average: AveragedModel | None = None
    """A moving average of the weights, if the config asks for it."""

    @property
    def measured(self) -> nn.Module:
        """The model that is measured and kept: the average if there is one."""
        return self.model if self.average is None else self.average.module


Hook = Callable[[Turn, LoopState], None]
"""Called after each evaluation: loggers, schedulers and selectors are hooks."""


@dataclass(frozen=True)
class PreparedRun:
    """A run that is ready to start: every error that its config can cause has been raised."""

    config: RunConfig
    """The config, with the defaults that depend on the data filled in."""
    state: LoopState
    batches: ShuffledBatches
    data: DataSplits
    """On the run's device."""
    evaluator: Evaluator
    """MetricSet each turn."""
    test_evaluator: Evaluator | None
    """MetricSet each turn on the test split, if the config asks for that."""
    learning: Sequence[Hook]
    """The hooks of the config's scheduler and loss scale, which run before other hooks."""

    def start(self, hooks: Sequence[Hook] = ()) -> LoopState:
        """Train and evaluate, calling the hooks in this order at each turn; return the state after the last turn."""
        turns = self.config.turns
        hooks = [*self.learning, *hooks]
        with self.kernels():
            for step, batch in _endless_steps(self.batches):
                is_turn = step % turns.every == 0
                if is_turn and turns.when == "before":
                    self._take_turn(hooks)
                train_step(self.state, *batch)
                if is_turn and turns.when == "after":
                    self._take_turn(hooks)
                if self.state.turns == turns.count:
                    break
        return self.state

    def _take_turn(self, hooks: Sequence[Hook]) -> None:
        self.state.turns += 1
        evaluation = self.evaluator(self.state.measured)
        values = dict(evaluation.values)
        if self.test_evaluator is not None:
            on_test = self.test_evaluator(self.state.measured).values
            values |= {f"{TEST}{name}": value for name, value in on_test.items()}
        turn = Turn(self.state.turns, values, evaluation.confusion)
        for hook in hooks:
            hook(turn, self.state)

    @contextmanager
    def kernels(self) -> Iterator[None]:
        """Make PyTorch use the kernels that the config allows."""
        backend: Any = torch.backends.mkldnn  # its own context manager sets more than this, with a warning
        before, backend.enabled = backend.enabled, self.config.device.onednn
        try:
            yield
        finally:
            backend.enabled = before


def train_step(state: LoopState, inputs: Tensor, target: Tensor) -> None:
    """Take one optimizer step on the scaled loss of a batch."""
    state.optimizer.zero_grad()
    logits = forward_pass(state.model, inputs, state.precision)
    state.loss_scale(state.loss(logits, target)).backward()  # type: ignore[no-untyped-call]
    state.optimizer.step()
    state.steps += 1
    if state.average is not None:
        state.average.update_parameters(state.model)


def _endless_steps(batches: ShuffledBatches) -> Iterator[tuple[int, tuple[Tensor, Tensor]]]:
    """Give batches pass after pass, each with its number in its pass."""
    while True:
        yield from enumerate(batches)
