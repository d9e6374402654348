"""The records of a run: a row of numbers for each turn, in a CSV file."""

import csv
from collections.abc import Collection, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from mpcs_torch.metrics.by_name import BY_NAME, Direction
from mpcs_torch.trainer.loop import LoopState, Turn
from mpcs_torch.trainer.metrics_config import TEST
from mpcs_torch.yaml_files import parse_yaml

Record = dict[str, float]
"""The values of a turn by column; turn and counts are whole."""


def as_record(turn: Turn) -> Record:
    """Return the row of a turn."""
    return {"turn": turn.number, **turn.values}


class RecordWriter:
    """A hook that writes the row of each turn at once, so that a run cut short keeps its measurements."""

    def __init__(self, path: Path, columns: Sequence[str], *, append: bool = False) -> None:
        self._file = path.open("a" if append else "x", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, ["turn", *columns], lineterminator="\n")
        if not append:
            self._writer.writeheader()
            self._file.flush()

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
    """Read a records file, ours or a published one (which has fewer columns)."""
    with path.open(newline="", encoding="utf-8") as file:
        return [{name: float(value) for name, value in row.items()} for row in csv.DictReader(file)]


def pick(records: Sequence[Record], column: str) -> int:
    """Return the turn with the best value of a metric of the register; the first of equals, never one with NaN."""
    sign = 1 if BY_NAME[column.removeprefix(TEST)].direction == "max" else -1
    sound = [record for record in records if record[column] == record[column]]
    if not sound:
        raise ValueError(f"column {column} must hold a number in some turn, but is NaN in all {len(records)}.")
    return int(max(sound, key=lambda record: sign * record[column])["turn"])


def recorded_directions(folder: Path, columns: Collection[str]) -> dict[str, Direction]:
    """Return which way is better for the columns of a finished run, where that is known.

    It is read from the run's ``config.yaml`` as text, so that no code that the config names is run; without that file,
    columns are looked up in the register.

    Raises:
        ValueError: If ``config.yaml`` is not valid YAML.
    """
    known = {name: entry.direction for name, entry in BY_NAME.items()}
    config = folder / "config.yaml"
    tree = parse_yaml(config.read_text(encoding="utf-8")) if config.is_file() else {}
    listed = tree.get("metrics") if isinstance(tree, dict) else None
    for metric in listed if isinstance(listed, list) else []:
        if isinstance(metric, dict):
            known[str(metric.get("name"))] = metric.get("direction") or known.get(str(metric.get("metric")))
    return {column: direction for column in columns if (direction := known.get(column)) in ("min", "max")}
