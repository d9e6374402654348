"""Chunks of rows, and errors with a place, for the readers of all formats of predictions."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from torch import Tensor

from mpcs_torch.errors import MpcsError

VALUES = 2**17
"""About how many scores are read at a time."""


class PredictionsError(MpcsError, ValueError):
    """A file of predictions that cannot be read or scored, and where. Rows count from 1, without the header."""

    def __init__(self, path: Path, problem: str, *, row: int | None = None, column: str | int | None = None) -> None:
        place = [str(path)]
        place += [] if row is None else [f"row {row}"]
        place += [] if column is None else [f"column {column}"]
        super().__init__(f"{', '.join(place)}: {problem}")


class Chunk(NamedTuple):
    """Consecutive rows of a file."""

    first_row: int
    scores: Tensor
    """(n, C)."""
    target: Tensor
    """(n,) labels, or (n, C) soft labels; (n, 0) if the file has no labels."""

    @property
    def is_soft(self) -> bool:
        """True if each row has a label from 0 to 1 for each class."""
        return self.target.ndim == 2 and self.target.shape[1] > 0


def rows_at_a_time(classes: int) -> int:
    """Return how many rows to read at a time."""
    return max(1, VALUES // classes)


def is_number(value: object) -> bool:
    """Return whether a value is a number or the text of one; NaN is a number."""
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return False
    return True


@contextmanager
def reading(path: Path, row: int | None = None) -> Iterator[None]:
    """Turn any error of a parser into a `PredictionsError` that names the file, and the row it had reached."""
    try:
        yield
    except (PredictionsError, FileNotFoundError):
        raise
    except Exception as error:  # the parsers of zip, npy, pickle, csv and parquet raise many kinds
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise PredictionsError(path, f"cannot be read: {reason}", row=row) from error
