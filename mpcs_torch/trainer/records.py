"""One row of numbers per turn, and their CSV file."""

import csv
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from mpcs_torch.trainer.columns import COLUMNS, HIGHER_IS_BETTER
from mpcs_torch.trainer.loop import LoopState, Turn

Record = dict[str, float]
"""A turn's values by column; turn and dangerous are whole."""


def as_record(turn: Turn) -> Record:
    """The row of a turn."""
    return {"turn": turn.number, **turn.evaluation.values}


class RecordWriter:
    """A hook that writes each turn's row as it comes, so that a run cut short keeps what it measured."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("x", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, COLUMNS, lineterminator="\n")
        self._writer.writeheader()

    def __call__(self, turn: Turn, state: LoopState) -> None:  # noqa: ARG002  # a Hook
        """Write one row, at full precision."""
        self._writer.writerow(as_record(turn))
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


def read_records(path: Path) -> list[Record]:
    """Read the rows of a records file, ours or a published one (which lacks columns)."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def pick(records: Sequence[Record], column: str) -> int:
    """The turn with the best value of a column; the first of equals, NaN never."""
    sign = 1 if HIGHER_IS_BETTER[column] else -1
    sound = [record for record in records if record[column] == record[column]]
    if not sound:
        raise ValueError(f"column {column} must hold a number in some turn, but is NaN in all {len(records)}.")
    return int(max(sound, key=lambda record: sign * record[column])["turn"])
