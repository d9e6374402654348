"""The sections of a run config with their keys, and checks of the metrics that some keys name."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BeforeValidator,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)
from torch import nn
from torch.optim import Optimizer

from mpcs_torch.concern import ConcernSpec, load_concern
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import (
    CodedError,
    InvalidValueError,
    did_you_mean,
    quoted,
    require,
    shown,
)
from mpcs_torch.functional.measure import Direction
from mpcs_torch.io.local_paths import local_path
from mpcs_torch.learning import SelectionRule
from mpcs_torch.metrics.metric_entry import MetricEntry
from mpcs_torch.trainer.config.parts import PUBLISHED, TEST, MetricConfig, PartConfig
from mpcs_torch.trainer.config.section import (
    Count,
    Fraction,
    NotNegative,
    Number,
    Positive,
    Section,
    Seed,
    Share,
)
from mpcs_torch.trainer.data import DATASETS, DataSplits, check_splits, hold_out_validation
from mpcs_torch.trainer.named_parts import LOSSES, OPTIMIZERS, SCHEDULERS
from mpcs_torch.trainer.networks import MODELS


class ConfigError(CodedError, ValueError):
    """A config, or an override of a key in it, is invalid. The message lists all problems with their positions."""


class DataConfig(PartConfig):
    """The data: a loader with its keyword arguments, and the share of training samples to hold out."""

    key = "data"
    registry = DATASETS
    takes = ("the data root",)
    returns = DataSplits

    validation_fraction: Fraction | None = None
    """The share of training samples to hold out for validation. Default: the validation split of the loader, if any."""
    validation_seed: Seed = 0
    """The seed of the validation split."""

    def load(self, root: str | Path) -> DataSplits:
        """Load the data set from the folder ``root``; hold out validation samples if ``validation_fraction`` is set."""
        data: DataSplits = self.make(local_path(root, "root"))
        check_splits(data, self.place)
        if self.validation_fraction is None:
            return data
        return hold_out_validation(data, self.validation_fraction, self.validation_seed)

    def __str__(self) -> str:
        name = super().__str__()
        ucr_set = (self.model_extra or {}).get("set")  # an argument of `load_ucr`
        return f"{name} {ucr_set}" if ucr_set else name


class ModelConfig(PartConfig):
    """The model: a class or function with its keyword arguments."""

    key = "model"
    registry = MODELS
    takes = ("the shape of an input", "the number of classes")
    returns = nn.Module


class EpochsConfig(Section):
    """The epochs of a run. An epoch ends when the model is measured; it may be shorter than a pass over the data."""

    count: PositiveInt = 150
    """The number of epochs of the run."""
    unit: Literal["step", "pass"] = "step"
    """The unit of ``every``: optimizer steps, as in the published runs, or passes over the data."""
    every: PositiveInt = 1
    """A number n: the model is measured at every n-th step of a pass, from the first, or after every n-th pass."""
    when: Literal["before", "after"] = "after"
    """Whether to measure before or after the optimizer step. If ``unit`` is pass: after the last step of a pass."""
    samples: Literal["train", "validation"] = "train"
    """The split on which metrics are measured. The scheduler, the loss scale and the selector follow these values."""
    test: list[str] = Field(default_factory=list)
    """Metrics that are also measured on the test split at every epoch, to replay published runs. Schedulers, selectors
    and the loss scale may not follow them. Default: test data are measured once, at the end."""
    mode: Literal["eval", "train"] = "eval"
    """The mode of the model during a measurement; the published runs used training mode, which updates batch norm."""
    batches: Count | None = None
    """The number of training batches on which to measure; they are drawn before training. Default: all samples."""

    @model_validator(mode="after")
    def _pass_is_over(self) -> Self:
        if self.unit == "pass" and self.when == "before":
            raise InvalidValueError("after_pass", "when")
        return self


class ConcernConfig(Section):
    """The arguments of `ConcernSpec`; ``classes`` defaults to the class names of the data.

    The keys ``refer``, ``answers`` and ``class_groups`` do not change the training, because a model in training always
    decides for one class.
    """

    classes: list[str] | int | None = None
    releases: list[list[str | int]] = Field(default_factory=list)
    factor: Number = 0.5
    weights: list[list[float]] | None = None
    dangerous: list[list[str | int]] | Number | None = None
    refer: list[float] | Number | None = None
    concession: Number | None = None
    answers: dict[str, Number] = Field(default_factory=dict)
    class_groups: dict[str, list[str | int]] = Field(default_factory=dict)

    def spec(self, class_names: Sequence[str]) -> ConcernSpec:
        """Return the spec for the classes of the data; raise a `ConfigError` if the config names other classes."""
        if self.classes not in (None, len(class_names), list(class_names)):
            place = "concern.classes"
            raise ConfigError("classes_of_data", place, self.classes, names=[*class_names])
        return ConcernSpec(**{**self.model_dump(), "classes": class_names})


def _read_concern(value: object, info: ValidationInfo) -> object:
    """Replace a path in ``value`` by the content of that concern file. Relative paths begin at the config's folder."""
    if not isinstance(value, str):
        return value
    folder = info.context["folder"] if info.context else Path()
    try:
        spec = load_concern(folder / local_path(value, "concern"))
    except OSError as error:
        file = shown(str(error.filename))
        raise InvalidValueError("cannot_read", file=file, reason=error.strerror) from None
    return concern_as_plain(spec)


class ScoreConfig(Section):
    """The concern of all metrics, and the settings of MPCS: the pattern length k and the number of intervals t."""

    k: PositiveInt | None = None
    """The pattern length. Default: 5, or the number of classes if that is less."""
    t: Annotated[int, Field(ge=2)] | None = None
    """The number of intervals. Default: computed from the concession, or 200 without one, as in the published runs."""
    concession: Number | None = None
    """The maximum distance of a confidence from 0 or 1 that is not penalized. Default: that of the concern."""
    concern: Annotated[ConcernConfig, BeforeValidator(_read_concern)] = ConcernConfig()
    """The cost of each error: the keys of a concern file, or the path of one, which begins at the config's folder."""


FOLLOWING = ("plateau", "mpcs_lr")
"""The schedulers that follow a metric, so that a run may become longer; others depend on the number of epochs."""
Precision = Literal["32-true", "64-true", "bf16-mixed"]
"""The precision of the model: float32, float64, or float32 with bfloat16 autocast."""


class DeviceConfig(Section):
    """The accelerator, the precision and the kernels."""

    accelerator: Literal["cpu", "cuda"] = "cpu"
    precision: Precision = "32-true"
    onednn: bool = True
    """Whether PyTorch may use oneDNN kernels on the CPU; the published runs of the LSTM did not."""


def check_followed(key: str, columns: Iterable[str], suitable: Collection[str]) -> None:
    """Raise a ValueError if ``key`` of a config names one of ``columns`` that is not among the ``suitable`` metrics."""
    for column in columns:
        if column.startswith(TEST):
            measured = shown(column.removeprefix(TEST))
            raise InvalidValueError(
                "not_of_test", f"{key}:", metric=shown(column), measured=measured
            )
        if column not in suitable:
            names = ", ".join([*suitable][:30]) or "of which there are none"
            raise InvalidValueError(
                "suitable_metric",
                f"{key}:",
                names=names,
                name=quoted(column),
                suggestion=did_you_mean(column, suitable),
            )


class LossConfig(PartConfig):
    """The loss: a function that makes the loss from a `ConcernSpec`, and the function's other keyword arguments."""

    key = "loss"
    registry = LOSSES
    takes = ("the concern",)


class SchedulerConfig(PartConfig):
    """The scheduler of the learning rate: a function that makes it (see `SCHEDULERS`), and its keyword arguments."""

    key = "scheduler"
    registry = SCHEDULERS
    takes = ("the optimizer", "the number of epochs", "the directions")


class OptimizerConfig(PartConfig):
    """The optimizer: a function that makes it (see `OPTIMIZERS`), and its keyword arguments."""

    key = "training.optimizer"
    registry = OPTIMIZERS
    takes = ("the weights", "the learning rate")
    returns = Optimizer


class TrainingConfig(Section):
    """The settings of the optimizer steps. Each step reduces the mean loss of a batch."""

    batch_size: Count | Literal["all"] = 64
    """The number of samples of a batch, over all processes; ``all`` for the whole training split."""
    learning_rate: Positive = 0.01
    optimizer: OptimizerConfig = OptimizerConfig(name="adam")
    clip_norm: Positive | None = None
    """The maximum norm of all gradients together. Default: no clipping."""
    noise: NotNegative = 0.0
    """The standard deviation of the random noise that is added to the inputs of each batch, as a share of the standard
    deviation of all training inputs."""
    save_seconds: NotNegative = 60.0
    """The interval, in seconds, at which the state of the run is saved to resume it; 0 for every step."""
    loss_scale: str | None = None
    """The metric whose latest value multiplies the loss; mpcs_count in the published learning runs."""
    margin_ramp: Annotated[list[Share], Field(min_length=2, max_length=2)] | None = None
    """The two shares of the epochs between which the margin of a `SoftmaxMarginLoss` rises (see `MarginRamp`)."""
    averaging: Fraction | None = None
    """The decay per step of an exponential moving average of the weights, 0.998 for example. The average is then
    measured and saved. Default: no average."""


class SelectorConfig(Section):
    """The settings that decide which checkpoints are kept: arguments of `SelectionRule` and `CheckpointSelector`."""

    by: str = "mpcs"
    within: dict[str, NotNegative] = Field(default_factory=dict)
    at_most: dict[str, Number] = Field(default_factory=dict)
    at_least: dict[str, Number] = Field(default_factory=dict)
    ties: str = "first"
    top_k: Count = 1
    keep_last: bool = False
    keep_every: NonNegativeInt = 0
    keep_best_by: list[str] = Field(default_factory=lambda: ["accuracy"])
    """Metrics whose best epochs are also kept, for comparison in `mpcs report`, if they are measured."""
    patience: Count | None = None
    """The number of epochs without progress, a better best epoch, after which the run stops. The run does not stop
    before any epoch is within the limits. Default: no early stop."""
    min_delta: NotNegative = 0.0
    """The minimum improvement of ``by`` that counts as progress; it needs ``patience``."""

    @model_validator(mode="after")
    def _min_delta_has_patience(self) -> Self:
        is_used = self.min_delta == 0 or self.patience is not None
        require(is_used, "needs_patience", "min_delta", self.min_delta)
        return self

    def rule(
        self, measured: Collection[str], directions: Mapping[str, Direction]
    ) -> SelectionRule:
        """Make the selection rule.

        Args:
            measured: The metrics that are recorded at each epoch.
            directions: For each metric, whether it is better when lower ("min") or higher ("max"), if that is known.

        Raises:
            ValueError: If the rule names a metric that is not measured, or whose direction it needs and is not known.
        """
        ties = [] if self.ties in ("first", "last") else [self.ties]
        check_followed("selector.by", [self.by], directions)
        check_followed("selector.ties", ties, directions)
        check_followed("selector.within", self.within, directions)
        # Bounds need no direction.
        check_followed("selector.at_most", self.at_most, measured)
        check_followed("selector.at_least", self.at_least, measured)
        return SelectionRule(
            self.by,
            dict(directions),
            dict(self.within),
            dict(self.at_most),
            dict(self.at_least),
            self.ties,
        )


class RunConfig(Section):
    """The config of one training run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
    """The name of the run's folder."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    data: DataConfig
    model: ModelConfig
    training: TrainingConfig = TrainingConfig()
    loss: LossConfig = LossConfig(name="cross_entropy")
    scheduler: SchedulerConfig | None = None
    """The learning-rate scheduler, stepped at every epoch. Default: the learning rate is constant."""
    selector: SelectorConfig | None = None
    """The checkpoints to keep. Default: none."""
    metrics: list[MetricConfig] = Field(
        default_factory=lambda: [MetricConfig(name=name) for name in PUBLISHED]
    )
    """The metrics of every epoch, each a column of the records. Default: the published columns."""
    epochs: EpochsConfig = EpochsConfig()
    score: ScoreConfig = ScoreConfig()
    device: DeviceConfig = DeviceConfig()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in the records file, without the first column, ``epoch``."""
        names = [metric.name for metric in self.metrics]
        on_test = [f"{TEST}{name}" for name in self.epochs.test]
        return (*names, *on_test)

    @property
    def entries(self) -> list[MetricEntry]:
        """The entry of each metric in the register."""
        return [metric.entry() for metric in self.metrics]

    @property
    def directions(self) -> dict[str, Direction]:
        """Whether each metric is better when lower ("min") or higher ("max"), by name, if that is known."""
        ways = {entry.name: entry.direction for entry in self.entries}
        return {name: way for name, way in ways.items() if way is not None}

    @property
    def follows_count(self) -> str | None:
        """The key of a setting that depends on the number of epochs, such as ``scheduler``; None if there is none."""
        if self.training.margin_ramp is not None:
            return "training.margin_ramp"
        if self.scheduler is None or self.scheduler.name in FOLLOWING:
            return None
        return "scheduler"

    @model_validator(mode="before")
    @classmethod
    def _of_older_versions(cls, value: object) -> object:
        """Leave out the key ``recommended: null``, which older versions wrote to the config of each run."""
        if isinstance(value, dict) and value.get("recommended", "") is None:
            return {key: entry for key, entry in value.items() if key != "recommended"}
        return value

    @field_validator("metrics", mode="after")
    @classmethod
    def _names_differ(cls, metrics: list[MetricConfig]) -> list[MetricConfig]:
        names = [metric.name for metric in metrics]
        if not names or len(set(names)) < len(names):
            raise InvalidValueError("some_metrics", "", names)
        return metrics

    @model_validator(mode="after")
    def _columns_exist(self) -> Self:
        measured = [metric.name for metric in self.metrics]
        directions = self.directions
        lower_is_better = [name for name, way in directions.items() if way == "min"]
        check_followed("epochs.test", self.epochs.test, measured)
        if self.selector is not None:
            self.selector.rule(measured, directions)
        if self.training.loss_scale is not None:
            check_followed(
                "training.loss_scale", [self.training.loss_scale], lower_is_better
            )
        if self.scheduler is not None:
            score = (self.scheduler.model_extra or {}).get("score")
            suitable = lower_is_better if self.scheduler.name == "mpcs_lr" else directions
            if isinstance(score, str):
                check_followed("scheduler.score", [score], suitable)
        return self
