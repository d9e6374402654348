"""The metrics of a run: registered metrics by their names, and custom `Metric` classes by their import paths."""

from dataclasses import replace
from typing import Annotated, Any

from pydantic import ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from torchmetrics import Metric

from mpcs_torch.errors import quoted, shown
from mpcs_torch.functional.comparison.significance import Direction
from mpcs_torch.metrics.register import BY_NAME, MetricEntry, Takes, entry_of_path, settings_of
from mpcs_torch.trainer.config.parts import Section

PUBLISHED = ("accuracy", "f1_macro", "mcc", "mean_squared_error", "cross_entropy", "mpcs", "mpcs_count", "dangerous")
"""The columns of the published records, in addition to the test accuracy."""
TEST = "test_"
"""The prefix of columns that are measured on the test split."""
FILLED_IN = ("num_classes", "concern", "from_logits", "validate_args")
"""Settings of metrics that a config cannot set: they come from the data, the score section and the trainer."""


class MetricConfig(Section):
    """A metric and its column. Other keys are settings of the metric. Text alone names a registered metric."""

    model_config = ConfigDict(extra="allow")

    name: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=100)]
    """The name of the metric's column in the records."""
    metric: str | None = None
    """The name of a registered metric. Default: the name of the column."""
    path: str | None = None
    """The import path of a custom torchmetrics `Metric`: ``package.module:Class``."""
    takes: Takes = "probabilities"
    """The input of a custom metric."""
    direction: Direction | None = None
    """The direction of a custom metric. Default: the direction by ``higher_is_better`` of the class."""

    @model_validator(mode="before")
    @classmethod
    def _check(cls, value: object) -> object:
        if isinstance(value, str):
            value = {"name": value}
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            return value
        if value["name"] == "epoch" or value["name"].startswith(TEST):
            raise ValueError(f"name must not be 'epoch' nor begin with {TEST!r}, but is {quoted(value['name'])}")
        if value.get("path") is not None:
            if value.get("metric") is not None:
                raise ValueError("must have one of the keys metric and path")
            entry = entry_of_path(value["path"])
            _check_settings(entry.metric, value)
            return {**value, "direction": value.get("direction") or entry.direction}
        registered = value.get("metric") or value["name"]
        usable = [name for name, entry in BY_NAME.items() if entry.takes_classes]
        if not isinstance(registered, str) or registered not in BY_NAME:
            raise ValueError(f"must be one of {', '.join(usable)}, or have a path, but is {quoted(registered)}")
        if registered not in usable:
            taken = BY_NAME[registered].takes.replace("_", " ")
            raise ValueError(f"{registered} takes {taken}, but the data of a run have one class for each sample")
        if value.keys() & {"takes", "direction"}:
            raise ValueError(f"takes and direction must come with a path; {registered} has its own")
        _check_settings(BY_NAME[registered].metric, value)
        return value

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> Any:
        """Dump a registered metric without settings as its name."""
        unused = ["metric"] if self.metric is None else []
        unused += ["path", "takes", "direction"] if self.path is None else []
        plain = {key: value for key, value in handler(self).items() if key not in unused}
        return self.name if set(plain) == {"name"} else plain

    def entry(self) -> MetricEntry:
        """Return the register's entry for this metric, with its column in records.csv and the config's settings."""
        entry = BY_NAME[self.metric or self.name] if self.path is None else entry_of_path(self.path)
        if self.path is not None:
            entry = replace(entry, takes=self.takes, given_direction=self.direction)
        return replace(entry, name=self.name, settings={**entry.settings, **(self.model_extra or {})})


def _check_settings(metric: type[Metric], value: dict[str, Any]) -> None:
    allowed = settings_of(metric) - set(FILLED_IN)
    unknown = [key for key in value if key not in allowed and key not in MetricConfig.model_fields]
    if unknown:
        names = shown(", ".join(map(str, unknown)))
        raise ValueError(f"{names}: unknown; the settings of {metric.__name__} are {', '.join(sorted(allowed))}")
