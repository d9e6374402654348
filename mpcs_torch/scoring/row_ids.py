"""Match the rows of several files by a column of ids."""

from array import array
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.scoring.chunks import Chunk, PredictionsError

NAMED = 3
"""The most missing ids that an error names."""


class RowIds:
    """The place of each id among the rows of the first file, about 150 bytes for a row; and of those of another file.

    Args:
        column: The column of ids. Each names one row.
    """

    def __init__(self, column: str) -> None:
        self._column = column
        self._places = dict[str, int]()
        self._order = array("q")

    def hold(self, path: Path, chunk: Chunk) -> None:
        """Add the next rows of the first file.

        Raises:
            PredictionsError: If an id is missing or repeated.
        """
        for row, found in enumerate(self._ids(path, chunk)):
            if self._places.setdefault(found, len(self._places)) != len(self._order):
                raise PredictionsError(path, _repeated(found), row=chunk.first_row + row, column=self._column)
            self._order.append(len(self._order))

    def places(self, path: Path, chunk: Chunk, first: str) -> Tensor:
        """Return the place of the next rows of another file: ``(n,)``, int64.

        Raises:
            PredictionsError: If an id is missing or repeated, or the first file lacks it.
        """
        if chunk.first_row == 1:
            self._order, self._seen = array("q"), bytearray(len(self._places))
        found = []
        for row, name in enumerate(self._ids(path, chunk)):
            place = self._places.get(name)
            if place is None or self._seen[place]:
                problem = f"{first} has no row with the id {quoted(name)}" if place is None else _repeated(name)
                raise PredictionsError(path, problem, row=chunk.first_row + row, column=self._column)
            self._seen[place] = 1
            found.append(place)
        self._order.extend(found)
        return torch.tensor(found, dtype=torch.int64)

    def check_all_seen(self, path: Path, first: str) -> None:
        """Check that a file had all rows.

        Raises:
            PredictionsError: If ids of the first file are missing.
        """
        missing = len(self._places) - len(self._order)
        if missing:
            names = [name for name, place in self._places.items() if not self._seen[place]][:NAMED]
            more = f" and {missing - len(names)} more" if missing > len(names) else ""
            raise PredictionsError(path, f"lacks {missing} rows of {first}: those with the ids {quoted(names)}{more}")

    def order(self) -> Tensor:
        """Return the place of each row of the last file: ``(N,)``, int64."""
        return torch.frombuffer(self._order, dtype=torch.int64)

    def _ids(self, path: Path, chunk: Chunk) -> list[str]:
        found = [text_of(value) for value in chunk.texts[self._column].to_pylist()]
        if not all(found):
            row = chunk.first_row + found.index("")
            raise PredictionsError(path, "must be the id of the row, but is missing", row=row, column=self._column)
        return found


def text_of(value: Any) -> str:
    """Return what a cell of csv, parquet or arrow holds, as text."""
    plain = value.as_py() if hasattr(value, "as_py") else value
    return "" if plain is None else str(plain).strip()


def _repeated(name: str) -> str:
    return f"each id must name one row, but {quoted(name)} appears again"
