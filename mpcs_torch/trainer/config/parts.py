"""Parts of a config, such as data and model: built-in parts are given by name, custom parts by import path."""

import inspect
import sys
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, create_model, model_validator

from mpcs_torch.errors import MpcsError, quoted, shown
from mpcs_torch.io.packaged import import_attribute


def _number(value: object) -> object:
    """Convert text to a number, because YAML 1.1 reads 1e-3 (without a dot) as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


Number = Annotated[float, BeforeValidator(_number)]


class Section(BaseModel):
    """A section of a config: unknown keys are refused, types are strict, numbers are finite, and values are frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class _CustomArguments(Section):
    """Keyword arguments of a custom part, which may default to infinity."""

    model_config = ConfigDict(allow_inf_nan=True, protected_namespaces=())


class PartError(MpcsError, RuntimeError):
    """A custom part breaks a rule, or raised an error, which is then the cause of this one."""


def error_of_parts(error: Exception, custom_parts: Mapping[str, str]) -> PartError | None:
    """Return the `PartError` to raise instead of ``error``; ``custom_parts`` are import paths by config key.

    The message names each part whose package is in the traceback, with the line, or all parts if there is no such part.
    Return None if there are no custom parts, or if ``error`` is an `MpcsError`.
    """
    if isinstance(error, MpcsError) or not custom_parts:
        return None
    lines = {key: line for key, path in custom_parts.items() if (line := _line_in_package(path, error))}
    parts = ", ".join(f"{key}.path: your {custom_parts[key]}" for key in lines or custom_parts)
    problem = f"{type(error).__name__}: {shown(str(error), 500)}".removesuffix(": ")
    return PartError(f"{parts} raised {problem}{next(iter(lines.values()), '')}")


def _line_in_package(path: str, error: Exception) -> str:
    """Return, as text, the last line of the traceback that is in the package of the import path; empty if none is."""
    module = sys.modules.get(path.partition(":")[0].partition(".")[0])
    roots = [*getattr(module, "__path__", []), *([] if (file := getattr(module, "__file__", None)) is None else [file])]
    lines = traceback.extract_tb(error.__traceback__)
    theirs = [line for line in lines if any(Path(line.filename).is_relative_to(root) for root in roots)]
    return f" at {theirs[-1].filename}:{theirs[-1].lineno}: {shown(theirs[-1].line or '')}" if theirs else ""


class PartConfig(Section):
    """A part made by the function or class that ``name`` or ``path`` gives; the other keys are keyword arguments.

    Arguments are validated by the annotations of the function, and its defaults are filled in.
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
        maker = cls._find(value.get("name"), value.get("path"))
        fields = {key: value[key] for key in cls.model_fields if key in value}
        keywords = {key: entry for key, entry in value.items() if key not in fields}
        arguments = cls._arguments(maker, Section if value.get("path") is None else _CustomArguments)
        return {**fields, **arguments.model_validate(keywords).model_dump()}

    @classmethod
    def _arguments(cls, maker: Callable[..., Any], base: type[Section]) -> type[Section]:
        """Return a pydantic model of the keyword arguments of ``maker``; its positional ones must be ``cls.takes``."""
        try:
            signature = inspect.signature(maker, eval_str=True)
            keywords = {}
            for name, parameter in signature.parameters.items():
                if parameter.kind is parameter.KEYWORD_ONLY:
                    annotation = Any if parameter.annotation is parameter.empty else parameter.annotation
                    keywords[name] = annotation, ... if parameter.default is parameter.empty else parameter.default
            if taken := [name for name in ("name", "path") if name in keywords]:
                raise ValueError(f"its argument {taken[0]} must have another name, because {taken[0]} is a key here")
            signature.bind(*cls.takes, **keywords)
            return create_model("Arguments", __base__=base, **keywords)  # type: ignore[call-overload,no-any-return]
        except Exception as error:  # evaluating an annotation runs code, which can raise anything
            rule = f"must name a function or class of {' and '.join(cls.takes)}, with other arguments by keyword only"
            raise ValueError(f"{rule}, but {quoted(maker)}: {shown(str(error))}") from error

    @classmethod
    def _find(cls, name: object, path: object) -> Callable[..., Any]:
        if (name is None) == (path is None):
            raise ValueError("must have one of the keys name and path")
        if path is not None:
            maker: Callable[..., Any] = import_attribute(path)
            return maker
        if not isinstance(name, str) or name not in cls.registry:
            raise ValueError(f"name must be one of {', '.join(cls.registry)}, but is {quoted(name)}")
        return cls.registry[name]

    @property
    def maker(self) -> Callable[..., Any]:
        """The function or class that makes the part."""
        return self._find(self.name, self.path)

    def make(self, *positional: object) -> Any:
        """Make the part with the keyword arguments of the config; raise a `PartError` if a custom part fails."""
        try:
            made = self.maker(*positional, **(self.model_extra or {}))
        except Exception as error:
            own = {} if self.path is None else {self.key: self.path}
            if (of_parts := error_of_parts(error, own)) is None:
                raise
            raise of_parts from error
        if not (callable(made) if self.returns is None else isinstance(made, self.returns)):
            needed = "a function" if self.returns is None else self.returns.__name__
            raise PartError(f"{self.key}.path: {self.path} must return {needed}, but returns {type(made).__name__}")
        return made

    def __str__(self) -> str:
        return self.name or self.path or ""
