"""Operating points on the command line."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from mpcs_torch.functional import OperatingPoint

DEFAULT = ("0.5", "0.01", "0.001")


def points_of(texts: Sequence[str] | None) -> "list[OperatingPoint]":
    """Read P_TARGET or P_TARGET,C_MISS,C_FA from each text, or from the default ones.

    Raises:
        typer.BadParameter: If a text is no operating point.
    """
    numbers = [(text, _numbers(text)) for text in texts or DEFAULT]  # before torch is imported
    return [_point(*each) for each in numbers]


def _numbers(text: str) -> list[float]:
    parts = text.split(",")
    try:
        if len(parts) not in (1, 3):
            raise ValueError("it must be P_TARGET or P_TARGET,C_MISS,C_FA.")
        return [float(part) for part in parts]
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="--point") from None


def _point(text: str, numbers: list[float]) -> "OperatingPoint":
    from mpcs_torch.functional import OperatingPoint
    from mpcs_torch.functional.detection.operating_point import check_point

    try:
        return check_point(OperatingPoint(*numbers))
    except ValueError as error:
        raise typer.BadParameter(f"{text}: {error}", param_hint="--point") from None
