"""Parts in a config, such as data and model: one of ours by name, or a user's own by import path."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, create_model, model_validator

from mpcs_torch.import_paths import import_attribute


def _number(value: object) -> object:
    """YAML 1.1 reads 1e-3 (without a dot) as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


Number = Annotated[float, BeforeValidator(_number)]


class Section(BaseModel):
    """A section of a config: unknown keys are refused, types are strict, and values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PartConfig(Section):
    """A part made by the function or class that ``name`` or ``path`` gives; the other keys are its keyword arguments.

    The arguments are checked against its annotations, and its defaults are filled in.
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
        own = {key: value[key] for key in cls.model_fields if key in value}
        given = {key: entry for key, entry in value.items() if key not in own}
        return {**own, **source, **arguments.model_validate(given).model_dump()}

    @classmethod
    def _find(cls, source: Mapping[str, object]) -> Callable[..., Any]:
        match source:
            case {"name": str(name)} if len(source) == 1 and name in cls.registry:
                return cls.registry[name]
            case {"path": str(path)} if len(source) == 1:
                maker: Callable[..., Any] = import_attribute(path)
                return maker
            case {"name": name} if len(source) == 1:
                raise ValueError(f"name must be one of {', '.join(cls.registry)}, but is {name!r}")
        raise ValueError("must have one of the keys name and path")

    def make(self, *positional: object) -> Any:
        """Make the part with the keyword arguments of the config."""
        source = {"name": self.name} if self.path is None else {"path": self.path}
        return self._find(source)(*positional, **(self.model_extra or {}))

    def __str__(self) -> str:
        return self.name or self.path or ""


def _default(parameter: inspect.Parameter) -> Any:
    return ... if parameter.default is parameter.empty else parameter.default
