"""Section, the base of all sections of a config, and the types of their numbers."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field


class Section(BaseModel):
    """A section of a config: unknown keys are refused, types are strict, numbers are finite, and values are frozen."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        protected_namespaces=(),  # a custom part may have arguments that begin with model_
    )


def _number(value: object) -> object:
    """Convert text to a number, because YAML 1.1 reads 1e-3 (without a dot) as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


Number = Annotated[float, BeforeValidator(_number)]
Positive = Annotated[Number, Field(gt=0)]
NotNegative = Annotated[Number, Field(ge=0)]
Share = Annotated[Number, Field(ge=0, le=1)]
Fraction = Annotated[Number, Field(gt=0, lt=1)]
Below1 = Annotated[Number, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1, lt=2**31)]
Seed = Annotated[int, Field(ge=0, lt=2**32)]
