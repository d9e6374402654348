"""Write and read the records of a run, a CSV file with a row for each epoch."""

import csv
from collections.abc import Collection, Sequence
from pathlib import Path

from mpcs_torch.errors import MpcsError, quoted, shown
from mpcs_torch.functional.comparison.significance import Direction
from mpcs_torch.io.yaml_files import YamlError, read_yaml_file
from mpcs_torch.metrics.register import BY_NAME
from mpcs_torch.trainer.loop import LoopState, MeasuredEpoch

Record = dict[str, float]
"""The values of an epoch by column."""


class RecordsError(MpcsError, ValueError):
    """A records file that breaks its rules."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


class RecordWriter:
    """A hook that writes the row of each epoch immediately, so that an interrupted run keeps its measurements."""

    def __init__(self, path: Path, columns: Sequence[str], *, append: bool = False) -> None:
        self._file = path.open("a" if append else "x", buffering=1, newline="", encoding="utf-8")  # by lines
        self._writer = csv.DictWriter(self._file, ["epoch", *columns], lineterminator="\n")
        if not append:
            self._writer.writeheader()

    def __call__(self, epoch: MeasuredEpoch, state: LoopState) -> None:  # noqa: ARG002  # a Hook
        """Write one row, at full precision."""
        self._writer.writerow(epoch.record)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def read_records(path: Path) -> list[Record]:
    """Read the records file of a run, or a published records file, which has fewer columns.

    A last line without a newline, from an interrupted run, is ignored because its last number may be truncated.

    Raises:
        RecordsError: If the file is not UTF-8 text, has no header, or lacks a number in a complete row.
    """
    try:
        *lines, cut = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RecordsError(path, f"is not UTF-8 text: {error}") from None
    if not lines:
        raise RecordsError(path, "is empty" if not cut else "has no complete line")
    columns = lines[0].split(",")
    if columns[0] == "turn":  # the name in the published records
        columns[0] = "epoch"
    if columns[0] != "epoch" or len(set(columns)) < len(columns):
        raise RecordsError(path, f"must begin with epoch and name each column once, but names {quoted(columns)}")
    return [_record(path, number, columns, line) for number, line in enumerate(lines[1:], start=2)]


def _record(path: Path, line: int, columns: Sequence[str], text: str) -> Record:
    cells = text.split(",")
    if len(cells) != len(columns):
        raise RecordsError(path, f"line {line} must have {len(columns)} columns, but has {len(cells)}")
    try:
        record = dict(zip(columns, map(float, cells), strict=True))
    except ValueError as error:
        raise RecordsError(path, f"line {line}: {shown(str(error))}") from None
    if not record["epoch"].is_integer():
        raise RecordsError(path, f"line {line}, column epoch: must be a whole number, but is {cells[0]}")
    return record


def recorded_directions(folder: Path, columns: Collection[str]) -> dict[str, Direction]:
    """Return the direction of each column of a run, if it is known from the run's ``config.yaml`` or the register.

    The config is read as plain YAML, without importing the modules that it names.
    """
    known = {name: entry.direction for name, entry in BY_NAME.items()}
    config = folder / "config.yaml"
    try:
        tree = read_yaml_file(config).value if config.is_file() else {}
    except YamlError as error:
        raise RecordsError(config, str(error)) from None
    listed = tree.get("metrics") if isinstance(tree, dict) else None
    for metric in listed if isinstance(listed, list) else []:
        if isinstance(metric, dict):
            known[str(metric.get("name"))] = metric.get("direction") or known.get(str(metric.get("metric")))
    return {column: direction for column in columns if (direction := known.get(column)) in ("min", "max")}
