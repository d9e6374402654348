"""Parts of a config, such as data, model and metrics: built-in parts are given by name, custom parts by import path."""

import inspect
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    create_model,
    model_serializer,
    model_validator,
)

from mpcs_torch.errors import (
    CodedError,
    DataError,
    InvalidValueError,
    MpcsError,
    quoted,
    shown,
)
from mpcs_torch.functional.measure import Direction
from mpcs_torch.io.packaged import import_attribute
from mpcs_torch.metrics.find_entry import entry_of_path
from mpcs_torch.metrics.metric_entry import MetricEntry, Takes
from mpcs_torch.metrics.named_metrics import COLUMNS
from mpcs_torch.trainer.config.section import Section


class PartError(CodedError, RuntimeError):
    """A part of a run cannot be made, breaks a rule, or, as the user's own code, raised the error in ``__cause__``."""


def error_of_parts(error: Exception, import_paths: Mapping[str, str]) -> PartError | None:
    """Return the `PartError` to raise instead of ``error``, or None if ``error`` itself should be raised.

    ``import_paths`` has the import path of each custom part by its config key. If ``error`` was raised in the package
    of a custom part, the message names the part and the line. Otherwise, it names all custom parts. The result is None
    if there is no custom part, or if ``error`` is an `MpcsError`.
    """
    if isinstance(error, MpcsError) or not import_paths:
        return None
    lines = {key: _line_in_package(path, error) for key, path in import_paths.items()}
    suspects = [key for key, line in lines.items() if line]
    if not suspects:  # any of them may be the cause
        suspects = list(lines)
    parts = ", ".join(f"{key}: your {import_paths[key]}" for key in suspects)
    problem = type(error).__name__
    message = shown(str(error), 500)
    if message:
        problem += f": {message}"
    return PartError("raised", parts, problem=problem, line=lines[suspects[0]])


def _line_in_package(path: str, error: Exception) -> str:
    """Return, as text, the last traceback line in the package of the import path ``path``; "" if there is none."""
    package = path.partition(":")[0].partition(".")[0]
    theirs = [
        (frame, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if str(frame.f_globals.get("__name__")).partition(".")[0] == package
    ]
    if not theirs:
        return ""
    [last] = traceback.StackSummary.extract(iter(theirs[-1:]))
    return f" at {last.filename}:{last.lineno}: {shown(last.line or '')}"


NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
"""The kinds of parameters that a config can set: it names all arguments."""


def _unless_empty(value: object, default: object) -> object:
    """Return ``value``, an annotation or a default of a parameter; if the parameter has none, return ``default``."""
    return default if value is inspect.Parameter.empty else value


class PartConfig(Section):
    """A part of a run, such as the model: the function or class that makes the part, and its keyword arguments.

    ``name`` or ``path`` gives the function or class. All other keys are keyword arguments, which are validated by the
    annotations of the function; missing arguments get its defaults.
    """

    model_config = ConfigDict(extra="allow")
    key: ClassVar[str] = ""
    """The key of the part in a config."""
    registry: ClassVar[Mapping[str, Callable[..., Any]]] = {}
    takes: ClassVar[tuple[str, ...]] = ()
    """The positional arguments of the function or class, in words."""
    returns: ClassVar[type | None] = None
    """The type of the part; None if the part is a function."""

    name: str | None = None
    """The name of a built-in part: a key of ``registry``."""
    path: str | None = None
    """The import path of a custom part: ``package.module:attribute``."""

    @model_validator(mode="before")
    @classmethod
    def _check_arguments(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        arguments = dict(value)
        fields = {key: arguments.pop(key) for key in cls.model_fields if key in value}
        maker = cls._find(fields.get("name"), fields.get("path"))
        return fields | cls._arguments_of(maker).model_validate(arguments).model_dump()

    @classmethod
    def _find(cls, name: object, path: object) -> Callable[..., Any]:
        if (name is None) == (path is None):
            raise InvalidValueError("one_key", key="name", other="path")
        if path is not None:
            maker: Callable[..., Any] = import_attribute(path)
            return maker
        if not isinstance(name, str) or name not in cls.registry:
            names = ", ".join(cls.registry)
            raise InvalidValueError("known_name", "name", names=names, name=quoted(name))
        return cls.registry[name]

    @classmethod
    def _arguments_of(cls, maker: Callable[..., Any]) -> type[Section]:
        """Return a pydantic model of the arguments of ``maker`` after the positional ones, which `takes` describes."""
        try:
            signature = inspect.signature(maker, eval_str=True)
            parameters = [*signature.parameters.values()][len(cls.takes) :]
            arguments: dict[str, Any] = {
                parameter.name: (
                    _unless_empty(parameter.annotation, Any),
                    _unless_empty(parameter.default, ...),  # to pydantic, no default
                )
                for parameter in parameters
                if parameter.kind in NAMED
            }
            clash = arguments.keys() & cls.model_fields.keys()
            if clash:
                name = min(clash)
                raise InvalidValueError("no_key", f"its argument {name}", name=name)
            signature.bind(*cls.takes, **arguments)
            return create_model("Arguments", __base__=Section, **arguments)
        except Exception as error:
            # Evaluating an annotation runs code, which can raise anything.
            takes = " and ".join(cls.takes)
            cause = shown(str(error))
            raise InvalidValueError(
                "maker", takes=takes, maker=quoted(maker), cause=cause
            ) from error

    @property
    def place(self) -> str:
        """The key and the name or the import path, with which messages begin."""
        key = self.key if self.path is None else f"{self.key}.path"
        return f"{key}: {self}"

    def make(self, *positional: object) -> Any:
        """Call `maker` with ``positional`` and the config's arguments; raise a `PartError` if it fails."""
        try:
            maker = self._find(self.name, self.path)
            made = maker(*positional, **(self.model_extra or {}))
        except DataError:
            raise
        except Exception as error:
            paths = {} if self.path is None else {f"{self.key}.path": self.path}
            of_user = error_of_parts(error, paths)
            if of_user is not None:
                raise of_user from error
            cause = shown(str(error), 500)
            raise PartError("caused_by", f"{self.place}:", cause=cause) from error
        if self.returns is None:
            is_valid = callable(made)
            needed = "a function"
        else:
            is_valid = isinstance(made, self.returns)
            needed = self.returns.__name__
        if not is_valid:
            returned = type(made).__name__
            raise PartError("returns", self.place, needed=needed, returned=returned)
        return made

    def __str__(self) -> str:
        return self.name or self.path or ""


PUBLISHED = (
    "accuracy",
    "f1_macro",
    "mcc",
    "mean_squared_error",
    "cross_entropy",
    "mpcs",
    "mpcs_count",
    "dangerous",
)
"""The columns of the published records, in addition to the test accuracy."""
TEST = "test_"
"""The prefix of columns that are measured on the test split."""
FILLED_IN = ("num_classes", "concern", "from_logits", "validate_args")
"""Settings of metrics that a config cannot set: they come from the data, the score section and the trainer."""


class MetricConfig(Section):
    """A metric, and the name of its column in the records.

    Keys that are no fields of this class are settings of the metric. In a config, a name alone, such as ``mcc``, stands
    for a registered metric without settings.
    """

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
    def _from_name(cls, value: object) -> object:
        return {"name": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.name == "epoch" or self.name.startswith(TEST):
            raise InvalidValueError(
                "name_of_column", "name", prefix=repr(TEST), name=quoted(self.name)
            )
        if self.path is None and self.model_fields_set & {"takes", "direction"}:
            raise InvalidValueError("only_with_path", "takes and direction", name=self.name)
        if self.path is not None and self.metric is not None:
            raise InvalidValueError("one_key", key="metric", other="path")
        entry = self.entry()
        allowed = entry.accepted_settings - set(FILLED_IN)
        unknown = [key for key in self.model_extra or {} if key not in allowed]
        if unknown:
            names = ", ".join(sorted(allowed))
            raise InvalidValueError(
                "unknown_settings",
                f"{shown(', '.join(unknown))}:",
                name=self.name,
                names=names,
            )
        return self

    @model_serializer(mode="wrap")
    def _short(self, handler: SerializerFunctionWrapHandler) -> Any:
        plain = {**handler(self), "direction": self.entry().direction}
        if self.metric is None:
            del plain["metric"]
        if self.path is None:
            del plain["path"], plain["takes"], plain["direction"]
        return self.name if set(plain) == {"name"} else plain

    def entry(self) -> MetricEntry:
        """Return the metric's entry in the register, with the column's name and the settings of this config."""
        if self.path is not None:
            entry = entry_of_path(self.path)
            entry = replace(entry, takes=self.takes, given_direction=self.direction)
        else:
            usable = {name: entry for name, entry in COLUMNS.items() if entry.takes_classes}
            registered = self.metric or self.name
            if registered not in usable:
                names = ", ".join(usable)
                raise InvalidValueError(
                    "known_name_or_path", names=names, name=quoted(registered)
                )
            entry = usable[registered]
        return replace(
            entry, name=self.name, settings={**entry.settings, **(self.model_extra or {})}
        )
