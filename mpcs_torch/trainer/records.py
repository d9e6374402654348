"""The records of a run: a row of numbers for each epoch, in a CSV file."""

import csv
import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Self
from warnings import warn

from mpcs_torch.errors import MAX_QUOTED, MpcsError, quoted
from mpcs_torch.io.untrusted_files import read_limited
from mpcs_torch.io.yaml_files import YamlError, read_yaml_file
from mpcs_torch.metrics.by_name import BY_NAME, Direction
from mpcs_torch.trainer.config.metrics import TEST
from mpcs_torch.trainer.loop import LoopState, MeasuredEpoch

MAX_BYTES = 1_000_000_000
"""Millions of epochs, which are read as a whole."""
NUMBER = re.compile(r"[-+]?(\d{1,40}(\.\d{0,40})?(e[-+]?\d{1,4})?|nan|inf)", re.ASCII)
"""As Python writes it."""

Record = dict[str, float]
"""The values of an epoch by column; epoch and counts are whole."""


class RecordsError(MpcsError, ValueError):
    """A records file that breaks its rules."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"{path}: {problem}")


class CutRecordsWarning(UserWarning):
    """A records file whose last line is not whole."""


def as_record(epoch: MeasuredEpoch) -> Record:
    """Return the row of an epoch."""
    return {"epoch": epoch.number, **epoch.values}


class RecordWriter:
    """A hook that writes the row of each epoch at once, so that a run cut short keeps its measurements."""

    def __init__(self, path: Path, columns: Sequence[str], *, append: bool = False) -> None:
        self._file = path.open("a" if append else "x", newline="", encoding="utf-8")
        self._writer = csv.DictWriter(self._file, ["epoch", *columns], lineterminator="\n")
        if not append:
            self._writer.writeheader()
            self._file.flush()

    def __call__(self, epoch: MeasuredEpoch, state: LoopState) -> None:  # noqa: ARG002  # a Hook
        """Write one row, at full precision."""
        self._writer.writerow(as_record(epoch))
        self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self._file.close()


def read_records(path: Path) -> list[Record]:
    """Read a records file, ours or a published one (which has fewer columns).

    A row counts once its line has ended: the last line of a run that was cut short, or whose disk was full, is left out
    with a `CutRecordsWarning`, because its last number may be cut.

    Raises:
        RecordsError: If the file is too large or not UTF-8 text, has no header, or lacks a number in a whole row.
    """
    try:
        *lines, cut = read_limited(path, MAX_BYTES).decode("utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise RecordsError(path, f"byte {error.object[error.start]:#04x} at {error.start} is not UTF-8 text") from None
    except ValueError as error:
        raise RecordsError(path, str(error)) from None
    if not lines:
        raise RecordsError(path, "is empty" if not cut else "has no whole line")
    columns = _columns(path, lines[0].removesuffix("\r"))
    if cut:
        warn(f"{path}: line {len(lines) + 1} was cut off and is left out", CutRecordsWarning, stacklevel=2)
    return [_record(path, number, columns, line.removesuffix("\r")) for number, line in enumerate(lines[1:], start=2)]


def _columns(path: Path, header: str) -> list[str]:
    columns = header.split(",")
    if columns[0] == "turn":  # the word of the published records
        columns[0] = "epoch"
    if columns[0] != "epoch":
        raise RecordsError(path, f"must begin with a column epoch, but begins with {quoted(columns[0])}")
    for place, name in enumerate(columns):
        if not name or len(name) > MAX_QUOTED or not name.isprintable():
            raise RecordsError(path, f"column {place + 1} must have a short, printable name, but has {quoted(name)}")
    if len(set(columns)) < len(columns):
        raise RecordsError(path, f"must name each column once, but names {quoted(columns)}")
    return columns


def _record(path: Path, line: int, columns: Sequence[str], text: str) -> Record:
    cells = text.split(",")
    if len(cells) != len(columns):
        raise RecordsError(path, f"line {line} must have {len(columns)} columns, but has {len(cells)}")
    for name, cell in zip(columns, cells, strict=True):
        if not NUMBER.fullmatch(cell):
            raise RecordsError(path, f"line {line}, column {name}: must be a number, but is {quoted(cell)}")
    if not cells[0].isdigit():
        raise RecordsError(path, f"line {line}, column epoch: must be a whole number, but is {cells[0]}")
    return dict(zip(columns, map(float, cells), strict=True))


def pick(records: Sequence[Record], column: str) -> int:
    """Return the epoch with the best value of a metric of the register; the first of equals, never one with NaN."""
    sign = 1 if BY_NAME[column.removeprefix(TEST)].direction == "max" else -1
    sound = [record for record in records if record[column] == record[column]]
    if not sound:
        raise ValueError(f"column {column} must hold a number in some epoch, but is NaN in all {len(records)}.")
    return int(max(sound, key=lambda record: sign * record[column])["epoch"])


def recorded_directions(folder: Path, columns: Collection[str]) -> dict[str, Direction]:
    """Return which way is better for the columns of a finished run, where that is known.

    It is read from the run's ``config.yaml`` as text, so that no code that the config names is run; without that file,
    columns are looked up in the register.

    Raises:
        RecordsError: If ``config.yaml`` is not plain YAML.
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
