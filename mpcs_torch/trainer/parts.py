"""Data sets and models in a config: one of ours by name, or the user's own by import path."""

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, create_model, model_validator


def _number(value: object) -> object:
    """YAML 1.1 reads 1e-3 (without a dot) as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


Number = Annotated[float, BeforeValidator(_number)]


class Section(BaseModel):
    """A part of a config: unknown keys are refused, values keep their types and never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PartConfig(Section):
    """``name`` or ``path`` says what makes the part; every other key is one of its keyword-only arguments.

    The arguments are checked against the annotations of what makes the part, and its defaults filled in.
    """

    model_config = ConfigDict(extra="allow")
    registry: ClassVar[Mapping[str, Callable[..., Any]]] = {}

    name: str | None = None
    """A key of the registry."""
    path: str | None = None
    """``package.module:attribute``."""

    @model_validator(mode="before")
    @classmethod
    def _check_arguments(cls, value: object) -> object:
        if not isinstance(value, dict):
            return value
        source = {key: value[key] for key in ("name", "path") if value.get(key) is not None}
        maker = cls._find(source)
        keywords = {
            name: (Any if parameter.annotation is parameter.empty else parameter.annotation, _default(parameter))
            for name, parameter in inspect.signature(maker, eval_str=True).parameters.items()
            if parameter.kind is parameter.KEYWORD_ONLY
        }
        arguments = create_model("Arguments", __base__=Section, **keywords)  # type: ignore[call-overload]
        given = {key: entry for key, entry in value.items() if key not in ("name", "path")}
        return {**source, **arguments.model_validate(given).model_dump()}

    @classmethod
    def _find(cls, source: Mapping[str, object]) -> Callable[..., Any]:
        match source:
            case {"name": str(name)} if len(source) == 1 and name in cls.registry:
                return cls.registry[name]
            case {"path": str(path)} if len(source) == 1:
                return import_attribute(path)
            case {"name": name} if len(source) == 1:
                raise ValueError(f"name must be one of {', '.join(cls.registry)}, but is {name!r}")
        raise ValueError("must have one of the keys name and path")

    def make(self, *positional: object) -> Any:
        """Call what makes the part with the keyword arguments of the config."""
        source = {"name": self.name} if self.path is None else {"path": self.path}
        return self._find(source)(*positional, **(self.model_extra or {}))

    def __str__(self) -> str:
        return self.name or self.path or ""


def import_attribute(path: str) -> Callable[..., Any]:
    """The attribute that ``package.module:attribute`` names."""
    module, _, attribute = path.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(f"path must read package.module:attribute, but {path!r} gives: {error}") from None
    return found


def _default(parameter: inspect.Parameter) -> Any:
    return ... if parameter.default is parameter.empty else parameter.default
