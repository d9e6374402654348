"""Section, the base of all sections of a config, which refuses unknown keys and wrong types."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A section of a config: unknown keys are refused, types are strict, numbers are finite, and values are frozen."""

    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
        strict=True,
        allow_inf_nan=False,
        protected_namespaces=(),  # a custom part may have arguments that begin with model_
    )
