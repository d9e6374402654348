"""The sections of a run config: data, model, epochs, score and device."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, ValidationInfo, model_validator
from torch import nn

from mpcs_torch.concern import ConcernSpec, load_concern
from mpcs_torch.concern.files import concern_as_plain
from mpcs_torch.errors import MpcsError, quoted, shown
from mpcs_torch.trainer.config.parts import Number, PartConfig, Section
from mpcs_torch.trainer.data import DATASETS, DataSplits
from mpcs_torch.trainer.data.splits import check_splits, hold_out_validation
from mpcs_torch.trainer.models import MODELS


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
        if self.path is not None:
            check_splits(data, f"{self.key}.path: {self.path}")
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
