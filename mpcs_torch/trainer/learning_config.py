"""The sections of a run config that say how it learns."""

from collections.abc import Container
from typing import Annotated, Literal

from pydantic import Field
from torch import Tensor
from torch.optim import Optimizer

from mpcs_torch.learning import SelectionRule
from mpcs_torch.trainer.columns import DIRECTIONS, RecordColumn
from mpcs_torch.trainer.losses import LOSSES, Loss
from mpcs_torch.trainer.parts import Number, PartConfig, Section
from mpcs_torch.trainer.schedulers import SCHEDULERS, Step


class LossConfig(PartConfig):
    """Which loss: a function of the concern matrix and its keyword arguments."""

    registry = LOSSES

    def build(self, concern: Tensor) -> Loss:
        """The loss for a concern matrix."""
        loss: Loss = self.make(concern)
        return loss


class SchedulerConfig(PartConfig):
    """Which learning-rate scheduler: a function of the optimizer and the number of turns, and its keyword arguments."""

    registry = SCHEDULERS

    def build(self, optimizer: Optimizer, turns: int) -> Step:
        """The scheduler of an optimizer."""
        step: Step = self.make(optimizer, turns)
        return step


class TrainingConfig(Section):
    """One step of Adam on the mean loss of a batch."""

    batch_size: Annotated[int, Field(ge=1)] | Literal["all"] = 64
    learning_rate: Annotated[Number, Field(gt=0)] = 0.01
    loss_scale: Literal["cross_entropy", "mpcs", "mpcs_count"] | None = None
    """Multiply the loss by this value of the latest turn (the published learning runs: mpcs_count)."""


class SelectorConfig(Section):
    """Which turns' checkpoints stay in the run's folder: the arguments of SelectionRule and CheckpointSelector."""

    by: RecordColumn = "mpcs"
    within: dict[RecordColumn, Annotated[Number, Field(ge=0)]] = Field(default_factory=dict)
    at_most: dict[RecordColumn, Number] = Field(default_factory=dict)
    at_least: dict[RecordColumn, Number] = Field(default_factory=dict)
    ties: Literal["first", "last"] = "first"
    top_k: Annotated[int, Field(ge=1)] = 1
    keep_last: bool = False
    keep_every: Annotated[int, Field(ge=0)] = 0

    @property
    def columns(self) -> tuple[RecordColumn, ...]:
        """The columns of the records that the rule cannot do without."""
        return tuple(dict.fromkeys([self.by, *self.within, *self.at_most, *self.at_least]))

    def rule(self, columns: Container[str] = DIRECTIONS) -> SelectionRule:
        """The rule, with the directions of those columns that the records have."""
        limits = {name: dict[str, float](getattr(self, name)) for name in ("within", "at_most", "at_least")}
        directions = {name: direction for name, direction in DIRECTIONS.items() if name in columns}
        return SelectionRule(self.by, directions, ties=self.ties, **limits)
