"""The sections of a run config, and which of them follow a metric of the epochs."""

import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, field_validator, model_validator
from torch import nn
from torch.optim import Optimizer

from mpcs_torch.concern import ConcernSpec, load_concern
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import MpcsError, quoted, shown
from mpcs_torch.functional.comparison.significance import Direction
from mpcs_torch.learning import Limit, SelectionRule
from mpcs_torch.learning.recommended import MAX_ACCURACY_LOSS
from mpcs_torch.trainer.config.metrics import TEST
from mpcs_torch.trainer.config.parts import Number, PartConfig, Section
from mpcs_torch.trainer.data import DATASETS, DataSplits
from mpcs_torch.trainer.data.splits import check_splits, hold_out_validation
from mpcs_torch.trainer.models import MODELS
from mpcs_torch.trainer.named_parts import LOSSES, OPTIMIZERS, SCHEDULERS


class ConfigError(MpcsError, ValueError):
    """A config, or an override of it, breaks its rules; the message lists every place."""


class DataConfig(PartConfig):
    """The data: a loader and its keyword arguments, and how much of the training samples to hold out."""

    key = "data"
    registry = DATASETS
    takes = ("the data root",)
    gives = DataSplits

    validation_fraction: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """Default: no validation split but the one that the loader gives, if any."""
    validation_seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    """The seed of the validation split."""

    def load(self, root: Path) -> DataSplits:
        """Load the data set, with its files under a data root.

        Raises:
            DataError: If it is missing or broken, or cannot be split as asked.
            PartError: If a loader of the user's own fails, or returns anything else.
        """
        data: DataSplits = self.make(root)
        check_splits(data, f"{self.key}: {self}" if self.path is None else f"{self.key}.path: {self.path}")
        if self.validation_fraction is None:
            return data
        return hold_out_validation(data, self.validation_fraction, self.validation_seed)

    def __str__(self) -> str:
        arguments = self.model_extra or {}
        return f"{super().__str__()} {arguments['set']}" if "set" in arguments else super().__str__()


class ModelConfig(PartConfig):
    """The model: a class or function, and its keyword arguments."""

    key = "model"
    registry = MODELS
    takes = ("the shape of an input", "the number of classes")
    gives = nn.Module

    def build(self, data: DataSplits) -> nn.Module:
        """Make a model that fits the data, with weights drawn from the global random generator.

        Raises:
            ValueError: If a model of ours does not fit the data.
            PartError: If a model of the user's own fails, or is no module.
        """
        model: nn.Module = self.make(data.train.inputs.shape[1:], len(data.class_names))
        return model


class EpochsConfig(Section):
    """The epochs: an epoch ends when the model is measured, at steps of a pass over the data or with the pass."""

    count: Annotated[int, Field(ge=1)] = 150
    """The number of epochs of the run."""
    unit: Literal["step", "pass"] = "step"
    """The unit of ``every``: optimizer steps, as in the published runs, or passes over the data, as is usual."""
    every: Annotated[int, Field(ge=1)] = 1
    """Measure at every n-th step of a pass, starting with its first, or after every n-th pass."""
    when: Literal["before", "after"] = "after"
    """Before or after the optimizer step; with passes, after the last one."""
    samples: Literal["train", "validation"] = "train"
    """The split that the metrics are measured on, and that scheduler, loss scale and selector therefore follow."""
    test: list[str] = Field(default_factory=list)
    """Metrics to measure on the test split as well, at every epoch: for runs that repeat published ones. Nothing may
    follow these columns. Without them, test data are measured once, at the end."""
    mode: Literal["eval", "train"] = "eval"
    """The mode of the model while it is measured; the published runs used training mode, where batch norm learns."""
    batches: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    """Measure on this number of training batches, drawn in a pass before training. Default: all samples."""

    @model_validator(mode="after")
    def _pass_is_over(self) -> Self:
        if self.unit == "pass" and self.when == "before":
            raise ValueError("when must be after if unit is pass")
        return self


class ConcernConfig(Section):
    """The fields of a `ConcernSpec`; the classes default to those of the data."""

    classes: list[str] | int | None = None
    releases: list[list[str | int]] = Field(default_factory=list)
    factor: Number = 0.5
    weights: list[list[float]] | None = None
    dangerous: list[list[str | int]] | Number | None = None
    refer: list[float] | Number | None = None
    concession: Number | None = None

    def spec(self, class_names: Sequence[str]) -> ConcernSpec:
        """Return the spec over the data's classes; refuse a concern that was written for other classes."""
        if self.classes not in (None, len(class_names), list(class_names)):
            names = quoted(list(class_names))
            raise ConfigError(f"concern.classes must be those of the data, {names}, but got {quoted(self.classes)}")
        return ConcernSpec(**{**self.model_dump(), "classes": class_names})


def _read_concern(value: object, info: ValidationInfo) -> object:
    """Replace the path of a concern file (relative to the config) by the content of that file."""
    if not isinstance(value, str):
        return value
    folder = info.context["folder"] if info.context else Path()
    try:
        spec = load_concern(folder / value)
    except OSError as error:
        raise ValueError(f"cannot read {shown(str(error.filename))}: {error.strerror}") from None
    return concern_as_plain(spec)


class ScoreConfig(Section):
    """The settings of MPCS (pattern length, intervals) and the concern of all metrics."""

    k: Annotated[int, Field(ge=1)] | None = None
    """Default: 5, or the number of classes if that is less."""
    t: Annotated[int, Field(ge=2)] | None = None
    """Default: what the concession asks for, or 200 as in the published runs."""
    concession: Number | None = None
    """The shortfall from certainty that is not punished. Default: that of the concern."""
    concern: Annotated[ConcernConfig, BeforeValidator(_read_concern)] = ConcernConfig()


Precision = Literal["32-true", "64-true", "bf16-mixed"]
"""All in float32 or float64, or in float32 with bfloat16 where autocast finds it safe."""


class DeviceConfig(Section):
    """Accelerator, precision, processes and kernels."""

    accelerator: Literal["cpu", "cuda"] = "cpu"
    precision: Precision = "32-true"
    onednn: bool = True
    """Whether PyTorch may use oneDNN's kernels on the CPU; the published runs had none for an LSTM."""


@dataclass(frozen=True)
class Follower:
    """One place of a config that names a column of the records."""

    place: str
    column: str
    needs: Literal["value", "direction", "lower_is_better"]


def follower_problems(
    followers: Collection[Follower], measured: Collection[str], directions: Mapping[str, Direction]
) -> Iterator[str]:
    """Give a message for each follower of a column that is not measured, is measured on test data, or does not fit.

    Args:
        followers: All places that name a column.
        measured: The metrics of the run.
        directions: For each metric that has one, which way is better.
    """
    for follower in followers:
        place, column = follower.place, follower.column
        if column.startswith(TEST):
            better = shown(column.removeprefix(TEST))
            yield (
                f"{place}: {shown(column)} is measured on test data: whatever is chosen by it looks better there than "
                "on new data. Hold out validation samples (data.validation_fraction), measure the epochs on them "
                f"(epochs.samples: validation), and choose by {better}"
            )
        elif column not in measured:
            names = ", ".join(islice(measured, 30))
            yield f"{place}: must be one of the run's metrics, {names}, but is {quoted(column)}"
        elif follower.needs != "value" and column not in directions:
            yield f"{place}: must be a metric with a direction (higher_is_better), but {quoted(column)} has none"
        elif follower.needs == "lower_is_better" and directions[column] == "max":
            yield f"{place}: must be a metric that is better when lower, but {quoted(column)} is better when higher"


class LossConfig(PartConfig):
    """The loss: a function of the `ConcernSpec`, and its keyword arguments."""

    key = "loss"
    registry = LOSSES
    takes = ("the concern",)


class SchedulerConfig(PartConfig):
    """The learning-rate scheduler: a maker (see `schedulers.SCHEDULERS`), and its keyword arguments."""

    key = "scheduler"
    registry = SCHEDULERS
    takes = ("the optimizer", "the number of epochs", "the directions")

    @property
    def follows_count(self) -> bool:
        """Return whether the rates depend on the number of epochs: not if the maker calls it ``_epochs``, as unused."""
        parameters = list(inspect.signature(self.maker).parameters)
        return not (len(parameters) > 1 and parameters[1].startswith("_"))

    def followers(self) -> Iterator[Follower]:
        """Give the column that the scheduler follows, if it follows one."""
        score = (self.model_extra or {}).get("score")
        if isinstance(score, str):
            yield Follower("scheduler.score", score, "lower_is_better" if self.name == "mpcs_lr" else "direction")


class OptimizerConfig(PartConfig):
    """The optimizer: a maker (see `optimizers.OPTIMIZERS`), and its keyword arguments."""

    key = "training.optimizer"
    registry = OPTIMIZERS
    takes = ("the weights", "the learning rate")
    gives = Optimizer


class TrainingConfig(Section):
    """Optimizer steps on the mean loss of a batch."""

    batch_size: Annotated[int, Field(ge=1, lt=2**31)] | Literal["all"] = 64
    """The samples of a batch, of all processes together."""
    learning_rate: Annotated[Number, Field(gt=0)] = 0.01
    optimizer: OptimizerConfig = OptimizerConfig(name="adam")
    clip_norm: Annotated[Number, Field(gt=0)] | None = None
    """The largest norm of all gradients together. Default: they are not clipped."""
    save_seconds: Annotated[Number, Field(ge=0)] = 60.0
    """Save the state of the run, to resume it, about this often, and at its end; 0 for every step."""
    loss_scale: str | None = None
    """Multiply the loss by this metric of the latest epoch (the published learning runs: mpcs_count)."""

    margin_ramp: Annotated[list[Annotated[Number, Field(ge=0, le=1)]], Field(min_length=2, max_length=2)] | None = None
    """The shares of the epochs between which the margin of a `SoftmaxMarginLoss` rises from 0: see `MarginRamp`."""
    averaging: Annotated[Number, Field(gt=0, lt=1)] | None = None
    """The decay of a moving average of the weights, taken at every step, such as 0.998: the average is what is measured
    and kept. Default: no average."""

    def followers(self) -> Iterator[Follower]:
        """Give the column that scales the loss, if there is one."""
        if self.loss_scale is not None:
            yield Follower("training.loss_scale", self.loss_scale, "lower_is_better")


class RecommendedConfig(Section):
    """The recipe of `recommended`: a plain run and runs with margins, of which validation samples choose one."""

    max_accuracy_loss: Annotated[Number, Field(ge=0, le=1)] = MAX_ACCURACY_LOSS
    """The accuracy that the choice may cost on the validation samples, as a share of samples."""
    refer: list[str] = Field(default_factory=list)
    """Limits such as ``dangerous <= 0.005``, if samples may be referred."""

    @field_validator("refer", mode="after")
    @classmethod
    def _are_limits(cls, refer: list[str]) -> list[str]:
        for limit in refer:
            Limit.parse(limit)
        return refer


class SelectorConfig(Section):
    """The rule for the checkpoints that stay in the run's folder: arguments of SelectionRule and CheckpointSelector."""

    by: str = "mpcs"
    within: dict[str, Annotated[Number, Field(ge=0)]] = Field(default_factory=dict)
    at_most: dict[str, Number] = Field(default_factory=dict)
    at_least: dict[str, Number] = Field(default_factory=dict)
    ties: Literal["first", "last"] = "first"
    top_k: Annotated[int, Field(ge=1, lt=2**31)] = 1
    keep_last: bool = False
    keep_every: Annotated[int, Field(ge=0)] = 0
    keep_best_by: list[str] = Field(default_factory=lambda: ["accuracy"])
    """Metrics whose own best epochs are kept too, for the comparison in `mpcs report`; those that are not measured are
    left out."""
    patience: Annotated[int, Field(ge=1, lt=2**31)] | None = None
    """Stop the run when its best epoch by the rule has not changed for so many epochs; without an epoch within the
    limits, it goes on. Default: the run has all of its epochs."""

    def followers(self) -> Iterator[Follower]:
        """Give the columns that the rule reads."""
        yield Follower("selector.by", self.by, "direction")
        yield from (Follower("selector.within", column, "direction") for column in self.within)
        yield from (Follower("selector.at_most", column, "value") for column in self.at_most)
        yield from (Follower("selector.at_least", column, "value") for column in self.at_least)

    def rule(self, directions: Mapping[str, Direction]) -> SelectionRule:
        """Make the rule, with the direction of each metric that is measured."""
        limits = {name: dict[str, float](getattr(self, name)) for name in ("within", "at_most", "at_least")}
        return SelectionRule(self.by, dict(directions), ties=self.ties, **limits)
