"""What every format of predictions comes down to."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from mpcs_torch.errors import MpcsError

VALUES = 2**17
"""Scores read at a time, about."""


class PredictionsError(MpcsError, ValueError):
    """A file of predictions that cannot be read or scored; says where. Rows count from 1, without a header."""

    def __init__(self, path: Path, problem: str, *, row: int | None = None, column: str | int | None = None) -> None:
        place = [str(path)]
        place += [] if row is None else [f"row {row}"]
        place += [] if column is None else [f"column {column}"]
        super().__init__(f"{', '.join(place)}: {problem}")


class Chunk(NamedTuple):
    """Rows that follow each other."""

    first_row: int
    scores: Tensor
    """(n, C)."""
    target: Tensor
    """(n,) labels, or (n, C) degrees of truth."""


def rows_at_a_time(classes: int) -> int:
    """How many rows to read together."""
    return max(1, VALUES // classes)


def is_number(value: object) -> bool:
    """Whether a value or its text is a number, NaN among them."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


@contextmanager
def reading(path: Path, row: int | None = None) -> Iterator[None]:
    """Say of whatever a damaged file makes its parser raise which file it is, and from which row on."""
    try:
        yield
    except (PredictionsError, FileNotFoundError):
        raise
    except Exception as error:  # parsers of zip, npy, pickle, csv and parquet raise a dozen kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PredictionsError(path, f"cannot be read: {reason}", row=row) from error
