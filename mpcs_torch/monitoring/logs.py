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
CHANGED = (
    "is not as it was when row {} was read: append labels that come later as new rows (--late-labels), and give a new "
    "log a new name"
)
RISK, CHANCE, TIME = "risk", "chance", "time"


class Place(NamedTuple):
    """The place up to which a log was read."""

    rows: int = 0
    bytes: int = 0
    """Of a csv file, with its header; 0 for a parquet file."""
    sha256: str = ""
    """Of everything that was read."""


class LogRows(NamedTuple):
    """Consecutive rows of a log."""

    decisions: Tensor
    """(N,), int64: -1 for referrals."""
    target: Tensor
    """(N,), int64: `UNLABELLED` where there is no label."""
    risk: Tensor | None
    """(N,), float64; NaN where none is given."""
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
        is_whole: Whether files have ended, so that a last line without its end is a row.
    """

    def __init__(
        self,
        rule: DecisionRule,
        *,
        groups: Mapping[str, Sequence[str]],
        target: str | None = None,
        from_logits: bool = False,
        is_whole: bool = False,
    ) -> None:
        self._rule, self._target, self._from_logits, self._is_whole = rule, target, from_logits, is_whole
        self._groups = {column: {name: code for code, name in enumerate(names)} for column, names in groups.items()}
        self._decisions = decision_numbers(rule.concern)
        self._labels = {name: label for label, name in enumerate(rule.concern.classes)}

    def pieces(self, path: Path, place: Place) -> Iterator[tuple[LogRows, Place]]:
        """Yield the rows after a place, and the place after them; a line without its end is left for later.

        Raises:
            PredictionsError: If a value breaks a rule, or the file is not the one that was read before.
        """
        with reading(path):
            if path.suffix == ".parquet":
                yield from self._parquet(path, place)
                return
            for batch, after in _csv(path, place, is_whole=self._is_whole):
                yield self._rows(path, batch), after

    def names_in(self, path: Path, column: str) -> list[str]:
        """Return the different texts of a column, sorted."""
        names, is_parquet = set[str](), path.suffix == ".parquet"
        with reading(path):
            csv = (batch for batch, _ in _csv(path, Place(), is_whole=True)) if not is_parquet else ()
            alone = [column] if is_parquet and column in parquet_names(path) else None
            for batch in parquet_batches(path, ROWS, alone) if is_parquet else csv:
                names |= {str(name) for name in _column(path, batch, column).unique().to_pylist()}
        return sorted(names - {"", "None"})

    def _parquet(self, path: Path, place: Place) -> Iterator[tuple[LogRows, Place]]:
        seen, number = (hashlib.sha256(), hashlib.sha256()), parquet_rows(path)

        def sha256_with(rows: LogRows) -> str:
            """Add the decisions and labels of rows to what was seen."""
            for part, hashes in zip((rows.decisions, rows.target), seen, strict=True):
                hashes.update(part.numpy().tobytes())
            return seen[0].hexdigest() + seen[1].hexdigest()

        sha256 = ""
        for batch in parquet_batches(path, ROWS, part=range(place.rows)) if place.rows <= number else ():
            sha256 = sha256_with(self._rows(path, batch))
        if sha256 != place.sha256:
            raise PredictionsError(path, CHANGED.format(place.rows))
        for batch in parquet_batches(path, ROWS, part=range(place.rows, number)):
            rows = self._rows(path, batch)
            yield rows, Place(batch.first_row - 1 + len(rows.decisions), 0, sha256_with(rows))

    def _rows(self, path: Path, batch: Batch) -> LogRows:
        columns, first = batch.columns, batch.first_row
        target = self._target or next((name for name in LABELS if name in columns), None)
        if target is None:
            have = f"but has {quoted(list(columns))}: --target-column COLUMN names it"
            raise PredictionsError(path, f"must have a column of labels, which may be empty, such as 'target', {have}")
        rule = f"must be empty, a class index or one of {quoted(list(self._labels)[:10])}"
        labels = self._codes(path, batch, target, self._label, rule)
        groups = {
            column: self._codes(path, batch, column, partial(_code, known), "")
            for column, known in self._groups.items()
        }
        if DECISION in columns:
            rule = f"must be one of {quoted(list(self._decisions)[:10])}"
            decisions = self._codes(path, batch, DECISION, self._decision, rule)
            risk = _numbers(path, columns[RISK], RISK, first) if RISK in columns else None
        else:
            decisions, risk = self._decided(path, batch)
        chance = _numbers(path, columns[CHANCE], CHANCE, first) if CHANCE in columns else None
        times = [str(time) for time in columns[TIME].to_pylist()] if TIME in columns else []
        return LogRows(decisions, labels, risk, chance, groups, times)

    def _codes(self, path: Path, batch: Batch, column: str, code_of: Callable[[Any], int | None], rule: str) -> Tensor:
        return torch.from_numpy(labels_of(path, _column(path, batch, column), column, batch.first_row, code_of, rule))

    def _decision(self, value: Any) -> int | None:
        return self._decisions.get(str(value).strip())

    def _label(self, value: Any) -> int | None:
        text = "" if value is None else str(value).strip()
        if text in self._labels or text in ("", "nan"):
            return self._labels.get(text, UNLABELLED)
        is_index = is_number(text) and float(text) in range(len(self._labels))
        return int(float(text)) if is_index else None

    def _decided(self, path: Path, batch: Batch) -> tuple[Tensor, Tensor]:
        missing = next((name for name in self._labels if name not in batch.columns), None)
        if missing is not None:
            problem = f"must have a column {DECISION!r}, or scores of each class, but has {quoted(list(batch.columns))}"
            hint = ": columns must have commas between" if len(batch.columns) == 1 else ""
            raise PredictionsError(path, problem + hint)
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


def _numbers(path: Path, values: Any, column: str, first_row: int) -> Tensor:
    """Return numbers, NaN where there is none: float64 (N,)."""
    texts = [None if value is None or not str(value).strip() else value for value in values.to_pylist()]
    bad = next((row for row, value in enumerate(texts) if value is not None and not is_number(value)), None)
    if bad is not None:
        problem = f"must be a number, but is {quoted(texts[bad])}"
        raise PredictionsError(path, problem, row=first_row + bad, column=column)
    return torch.tensor([float("nan") if value is None else float(value) for value in texts], dtype=torch.float64)


def _csv(path: Path, place: Place, *, is_whole: bool) -> Iterator[tuple[Batch, Place]]:
    arrow = import_pyarrow(path)
    from pyarrow import csv as arrow_csv

    table, seen = CsvFile(path), hashlib.sha256()
    with path.open("rb") as file:
        rest = place.bytes
        while rest and (block := file.read(min(rest, BYTES))):
            seen.update(block)
            rest -= len(block)
        if place.bytes and (rest or seen.hexdigest() != place.sha256):
            raise PredictionsError(path, CHANGED.format(place.rows))
        if not place.bytes:
            seen.update(file.readline())
        while block := file.read(BYTES) + file.readline():
            whole = block if is_whole else block[: block.rfind(b"\n") + 1]  # the last line may not be whole yet
            if not whole.strip():
                return
            read = arrow_csv.read_csv(
                arrow.BufferReader(whole),
                arrow_csv.ReadOptions(column_names=table.names),
                convert_options=arrow_csv.ConvertOptions(
                    column_types=dict.fromkeys(table.names, arrow.string()), null_values=[]
                ),
            )
            columns = {name: read.column(name).combine_chunks() for name in table.names}
            seen.update(whole)
            end = file.tell() - len(block) + len(whole)
            batch, place = Batch(place.rows + 1, columns), Place(place.rows + len(read), end, seen.hexdigest())
            yield batch, place
