"""Run configs: typed, closed to unknown keys, with all errors reported together."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BeforeValidator, Field, ValidationError, ValidationInfo
from torch import nn

from mpcs_torch.concern import ConcernSpec, load_concern
from mpcs_torch.errors import MpcsError
from mpcs_torch.trainer.data import DATASETS, DataSplits
from mpcs_torch.trainer.learning_config import LossConfig, SchedulerConfig, SelectorConfig, TrainingConfig
from mpcs_torch.trainer.models import MODELS
from mpcs_torch.trainer.parts import Number, PartConfig, Section
from mpcs_torch.yaml_files import parse_yaml


class ConfigError(MpcsError, ValueError):
    """A config, or an override of it, breaks its rules; the message lists every place."""


class DataConfig(PartConfig):
    """Which data: a loader and its keyword arguments."""

    registry = DATASETS

    def load(self, root: Path) -> DataSplits:
        """The data set, its files under a data root."""
        data: DataSplits = self.make(root)
        return data

    def __str__(self) -> str:
        arguments = self.model_extra or {}
        return f"{super().__str__()} {arguments['set']}" if "set" in arguments else super().__str__()


class ModelConfig(PartConfig):
    """Which model: a class or function and its keyword arguments."""

    registry = MODELS

    def build(self, data: DataSplits) -> nn.Module:
        """A model that fits the data, drawn from the global random generator."""
        model: nn.Module = self.make(data.train_inputs.shape[1:], len(data.class_names))
        return model


class TurnsConfig(Section):
    """When the model is evaluated."""

    count: Annotated[int, Field(ge=1)] = 150
    """The run ends after so many."""
    every: Annotated[int, Field(ge=1)] = 1
    """A turn is every n-th step of a pass over the data, from the pass's first."""
    when: Literal["before", "after"] = "after"
    """Before or after the optimizer step."""
    samples: Literal["train", "test"] = "train"
    """Those that every metric but test_accuracy is measured on."""
    mode: Literal["eval", "train"] = "eval"
    """The mode of the model meanwhile; the published runs left it in training, where batch norm goes on learning."""
    batches: Annotated[int, Field(ge=1)] | None = None
    """Evaluate on so many training batches, drawn in a pass of their own before training. Default: all samples."""


class ConcernConfig(Section):
    """The fields of a `ConcernSpec`; its classes are those of the data unless named."""

    classes: list[str] | int | None = None
    releases: list[list[str | int]] = Field(default_factory=list)
    factor: Number = 0.5
    weights: list[list[float]] | None = None

    def spec(self, class_names: Sequence[str]) -> ConcernSpec:
        """The spec over the data's classes; refuses a concern that was written for others."""
        fits = self.classes in (None, len(class_names), list(class_names))
        if not fits:
            raise ConfigError(f"concern.classes must be those of the data, {list(class_names)}, but got {self.classes}")
        return ConcernSpec(class_names, releases=self.releases, factor=self.factor, weights=self.weights)


def _read_concern(value: object, info: ValidationInfo) -> object:
    """Take a concern given as a file (relative to the config) for the content of that file."""
    if not isinstance(value, str):
        return value
    folder = info.context["folder"] if info.context else Path()
    try:
        spec = load_concern(folder / value)
    except OSError as error:
        raise ValueError(f"cannot read {error.filename}: {error.strerror}") from None
    return {
        "classes": list(spec.class_names),
        "releases": [list(release) for release in spec.releases],
        "factor": spec.factor,
        "weights": spec.weights and [list(row) for row in spec.weights],
    }


class ScoreConfig(Section):
    """The settings of MPCS: pattern length, intervals, human values."""

    k: Annotated[int, Field(ge=1)] | None = None
    """Default: 5, or the number of classes if that is less."""
    t: Annotated[int, Field(ge=2)] = 200
    concern: Annotated[ConcernConfig, BeforeValidator(_read_concern)] = ConcernConfig()


class DeviceConfig(Section):
    """Where, in what precision (both in the words of lightning-fabric) and with which kernels."""

    accelerator: Literal["cpu", "cuda"] = "cpu"
    precision: Literal["32-true", "bf16-mixed"] = "32-true"
    onednn: bool = True
    """Whether PyTorch may use oneDNN's kernels on the CPU; the published runs had none for an LSTM."""


class RunConfig(Section):
    """One training run."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]
    """The run's folder."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 1
    data: DataConfig
    model: ModelConfig
    training: TrainingConfig = TrainingConfig()
    loss: LossConfig = LossConfig(name="cross_entropy")
    scheduler: SchedulerConfig | None = None
    """Steps at every turn. Default: the learning rate stays."""
    selector: SelectorConfig | None = None
    """Default: no checkpoints."""
    turns: TurnsConfig = TurnsConfig()
    score: ScoreConfig = ScoreConfig()
    device: DeviceConfig = DeviceConfig()


def load_config(path: Path, overrides: Sequence[str] = ()) -> RunConfig:
    """Read a run config from YAML and apply overrides like ``training.batch_size=32`` (values are YAML too).

    Raises:
        ConfigError: With every place that breaks a rule.
    """
    try:
        tree = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{path}: {error}") from None
    if not isinstance(tree, dict):
        raise ConfigError(f"{path}: must hold a mapping with the keys {', '.join(RunConfig.model_fields)}")
    problems = [problem for override in overrides if (problem := _apply_override(tree, override))]
    try:
        config = RunConfig.model_validate(tree, context={"folder": path.parent})
    except ValidationError as error:
        problems += [_line(path, detail["loc"], detail["msg"]) for detail in error.errors()]
    if problems:
        raise ConfigError("\n".join(problems))
    return config


def load_packaged_config(path: str, overrides: Sequence[str] = ()) -> RunConfig:
    """A config under ``configs/``, of the installed package or of the repository."""
    package = Path(__file__).parents[1]
    root = package / "configs" if (package / "configs").is_dir() else package.parent / "configs"
    return load_config(root / f"{path}.yaml", overrides)


def dump_config(config: RunConfig) -> str:
    """The config with every default written out, as YAML that `load_config` reads back."""
    return yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False)


def _line(path: Path, place: tuple[str | int, ...], message: str) -> str:
    message = message.removeprefix("Value error, ").replace("Extra inputs are not permitted", "unknown key")
    return f"{path}: {'.'.join(map(str, place))}: {message}"


def _apply_override(tree: dict[str, Any], override: str) -> str | None:
    """Set the key in the tree, or say why not."""
    dotted, separator, text = override.partition("=")
    *parents, key = dotted.split(".")
    if not separator or not all([*parents, key]):
        return f"override {override!r} must read dotted.key=value"
    for parent in parents:
        tree = tree.setdefault(parent, {})
        if not isinstance(tree, dict):
            return f"override {override!r}: {parent} holds a value, not keys"
    try:
        tree[key] = parse_yaml(text)
    except ValueError as error:
        return f"override {override!r}: {error}"
    return None
