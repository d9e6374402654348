"""What every format of predictions comes down to."""

from pathlib import Path
from typing import NamedTuple

from torch import Tensor

ROWS = 8192
"""At a time."""


class PredictionsError(ValueError):
    """A file of predictions that cannot be read or scored; says where."""

    def __init__(self, path: Path, problem: str, *, row: int | None = None, column: str | int | None = None) -> None:
        place = [str(path)]
        place += [] if row is None else [f"row {row}"]
        place += [] if column is None else [f"column {column}"]
        super().__init__(f"{', '.join(place)}: {problem}")


class Chunk(NamedTuple):
    """Rows that follow each other."""

    first_row: int
    """Counted from 1, without a header."""
    scores: Tensor
    """(n, C), float32 or float64."""
    target: Tensor
    """(n,) int64 labels, or (n, C) degrees of truth."""
