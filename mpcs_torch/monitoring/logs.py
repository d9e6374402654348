"""Read the new rows of logs of decisions, which grow: csv and parquet files."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError, is_number, reading
from mpcs_torch.evaluation.files.columns import DECISION, LABELS, decision_numbers
from mpcs_torch.evaluation.files.tables import (
    Batch,
    CsvFile,
    import_pyarrow,
    labels_of,
    numbers_of,
    parquet_batches,
    parquet_names,
    parquet_rows,
)
from mpcs_torch.learning import DecisionRule

UNLABELLED = -100
"""Stands for a label that is not known yet."""
BYTES, ROWS = 2**20, 2**16
"""The most that is read at a time, of csv and of parquet files."""
HEAD = 4096
"""So many of the bytes that were read tell whether a file is still the same."""
RISK, CHANCE, TIME = "risk", "chance", "time"


class Place(NamedTuple):
    """How far a log was read."""

    rows: int = 0
    bytes: int = 0
    """Of a csv file, with its header; 0 for a parquet file."""
    head: str = ""
    """SHA-256 of the first bytes."""


class LogRows(NamedTuple):
    """Consecutive rows of a log."""

    decisions: Tensor
    """(N,), int64: -1 for referrals."""
    target: Tensor
    """(N,), int64: `UNLABELLED` where there is no label."""
    risk: Tensor | None
    """(N,), float64."""
    chance: Tensor | None
    """(N,), float64: the probability with which a row was chosen to be labelled; NaN where none is given."""
    groups: Mapping[str, Tensor]
    """By column: (N,) indices of the groups, -1 for others."""
    times: Sequence[str]
    """(N,), or empty without a column of times."""

    def at(self, rows: slice | Tensor) -> "LogRows":
        """Return some of the rows, without their times."""
        risk, chance = (None if part is None else part[rows] for part in (self.risk, self.chance))
        groups = {column: codes[rows] for column, codes in self.groups.items()}
        return LogRows(self.decisions[rows], self.target[rows], risk, chance, groups, [])


class LogReader:
    """Reads logs of decisions, or of scores that a rule decides by.

    Args:
        rule: It names the classes and answers.
        groups: The names of the groups of each column that is needed.
        target: The column of labels. Default: one with a usual name, such as ``target``.
        from_logits: Whether scores are logits, not probabilities.
    """

    def __init__(
        self,
        rule: DecisionRule,
        *,
        groups: Mapping[str, Sequence[str]],
        target: str | None = None,
        from_logits: bool = False,
    ) -> None:
        self._rule, self._target, self._from_logits = rule, target, from_logits
        self._groups = {column: {name: code for code, name in enumerate(names)} for column, names in groups.items()}
        self._decisions = decision_numbers(rule.concern)
        self._labels = {name: label for label, name in enumerate(rule.concern.classes)}

    def pieces(self, path: Path, place: Place) -> Iterator[tuple[LogRows, Place]]:
        """Yield the rows after a place, and the place after them; a line without its end is left for later.

        Raises:
            PredictionsError: If a value breaks a rule, or the file is not the one that was read before.
        """
        with reading(path):
            batches = _parquet(path, place) if path.suffix == ".parquet" else _csv(path, place)
            for batch, after in batches:
                yield self._rows(path, batch), after

    def names_in(self, path: Path, column: str) -> list[str]:
        """Return the different texts of a column, sorted."""
        names = set[str]()
        with reading(path):
            for batch, _ in _parquet(path, Place()) if path.suffix == ".parquet" else _csv(path, Place()):
                names |= {str(name) for name in _column(path, batch, column).unique().to_pylist()}
        return sorted(names - {"", "None"})

    def _rows(self, path: Path, batch: Batch) -> LogRows:
        columns, first = batch.columns, batch.first_row
        target = self._target or next((name for name in LABELS if name in columns), None)
        number = len(next(iter(columns.values())))
        labels = torch.full((number,), UNLABELLED)
        if target is not None:
            rule = f"must be empty, a class index or one of {quoted(list(self._labels)[:10])}"
            labels = self._codes(path, batch, target, self._label, rule)
        groups = {
            column: self._codes(path, batch, column, partial(_code, known), "")
            for column, known in self._groups.items()
        }
        if DECISION in columns:
            rule = f"must be one of {quoted(list(self._decisions)[:10])}"
            decisions = self._codes(path, batch, DECISION, lambda name: self._decisions.get(str(name)), rule)
            risk = torch.from_numpy(numbers_of(path, columns[RISK], RISK, first)) if RISK in columns else None
        else:
            decisions, risk = self._decided(path, batch)
        chance = torch.from_numpy(_numbers(columns[CHANCE])) if CHANCE in columns else None
        times = [str(time) for time in columns[TIME].to_pylist()] if TIME in columns else []
        return LogRows(decisions, labels, risk, chance, groups, times)

    def _codes(self, path: Path, batch: Batch, column: str, code_of: Callable[[Any], int | None], rule: str) -> Tensor:
        return torch.from_numpy(labels_of(path, _column(path, batch, column), column, batch.first_row, code_of, rule))

    def _label(self, value: Any) -> int | None:
        text = "" if value is None else str(value).strip()
        if text in self._labels or text in ("", "nan"):
            return self._labels.get(text, UNLABELLED)
        is_index = is_number(text) and float(text) in range(len(self._labels))
        return int(float(text)) if is_index else None

    def _decided(self, path: Path, batch: Batch) -> tuple[Tensor, Tensor]:
        missing = next((name for name in self._labels if name not in batch.columns), None)
        if missing is not None:
            columns = quoted(list(batch.columns))
            problem = f"must have a column {DECISION!r}, or scores of each class, but has {columns}"
            raise PredictionsError(path, problem)
        scores = [numbers_of(path, batch.columns[name], name, batch.first_row) for name in self._labels]
        logits = torch.from_numpy(np.stack(scores, axis=1))
        with torch.no_grad():
            assessed = self._rule.assess((logits if self._from_logits else logits.log()).float())
        return assessed.decision, assessed.risk.double().clamp(0, 1)


def _code(known: Mapping[str, int], name: Any) -> int:
    return known.get(str(name), -1)


def _column(path: Path, batch: Batch, column: str) -> Any:
    if column not in batch.columns:
        raise PredictionsError(path, f"must have a column {quoted(column)}, but has {quoted(list(batch.columns))}")
    return batch.columns[column]


def _numbers(values: Any) -> Any:
    """Return numbers, NaN where there is none: float64 (N,)."""
    return np.array([float(value) if is_number(value) else np.nan for value in values.to_pylist()])


def _csv(path: Path, place: Place) -> Iterator[tuple[Batch, Place]]:
    arrow = import_pyarrow(path)
    from pyarrow import csv as arrow_csv

    table = CsvFile(path)
    with path.open("rb") as file:
        _check_same(path, file.read(min(place.bytes, HEAD)), place, path.stat().st_size)
        file.seek(0)
        start = place.bytes or len(file.readline())
        file.seek(start)
        while block := file.read(BYTES):
            block += file.readline()
            block = block[: block.rfind(b"\n") + 1]  # the rest of the last line is not written yet
            if not block:
                return
            read = arrow_csv.read_csv(
                arrow.BufferReader(block),
                arrow_csv.ReadOptions(column_names=table.names),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(table.names, arrow.string()), null_values=[]
                ),
            ).combine_chunks()
            columns = {name: read.column(name).combine_chunks() for name in table.names}
            here, rows = start + len(block), place.rows + len(read)
            with path.open("rb") as again:
                head = hashlib.sha256(again.read(min(here, HEAD))).hexdigest()
            yield Batch(place.rows + 1, columns), Place(rows, here, head)
            start, place = here, Place(rows, here, head)


def _parquet(path: Path, place: Place) -> Iterator[tuple[Batch, Place]]:
    names = parquet_names(path)
    head = hashlib.sha256(repr(names).encode()).hexdigest()
    if place.rows and (place.head != head or parquet_rows(path) < place.rows):
        raise PredictionsError(path, "is not the file that was read before: give a new log a new name")
    for batch in parquet_batches(path, ROWS, part=range(place.rows, parquet_rows(path))):
        yield batch, Place(batch.first_row - 1 + len(next(iter(batch.columns.values()))), 0, head)


def _check_same(path: Path, head: bytes, place: Place, size: int) -> None:
    if place.bytes and (size < place.bytes or hashlib.sha256(head).hexdigest() != place.head):
        raise PredictionsError(path, "is not the file that was read before: give a new log a new name")
