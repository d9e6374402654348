"""Read the new rows of logs of decisions, which grow: files of any format of `open_table`."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern.rules import decision_numbers
from mpcs_torch.evaluation.files.file_errors import NoRowsError, PredictionsError
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import NO_LABEL, PredictedRows, Predictions
from mpcs_torch.evaluation.files.reading import NO_GROUP, ReadOptions
from mpcs_torch.evaluation.files.tables import distinct_texts, text_of
from mpcs_torch.evaluation.files.words import DECISION
from mpcs_torch.learning import DecisionRule

UNLABELLED = NO_LABEL
"""Stands for a label that is not known yet."""
CHANGED = (
    "is not as it was when row {} was read: a row is read once, so leave labels the time that they take (--label-age, "
    "with a new --state), and give a new log a new name"
)
RISK, CHANCE, TIME = "risk", "chance", "time"
PIECE_ROWS = 2**16
"""The state of a watch is saved after so many rows."""


class Place(NamedTuple):
    """The place up to which a log was read."""

    rows: int = 0
    sha256: str = ""
    """Of the decisions, labels, risks, chances and groups of these rows."""


class LogRows(NamedTuple):
    """Rows of a log."""

    numbers: Tensor
    """(N,), int64: the numbers of the rows in the log, from 1."""
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
    times: Any = ()
    """(N,) texts as an arrow array, or empty without a column of times."""

    def at(self, rows: slice | Tensor) -> "LogRows":
        """Return some of the rows; without their times if they are not consecutive."""
        numbers, decisions, target = (part[rows] for part in (self.numbers, self.decisions, self.target))
        risk, chance = (None if part is None else part[rows] for part in (self.risk, self.chance))
        groups = {column: codes[rows] for column, codes in self.groups.items()}
        return LogRows(
            numbers, decisions, target, risk, chance, groups, self.times[rows] if isinstance(rows, slice) else ()
        )

    def time(self, row: int) -> str:
        """Return the time of a row, from 0; empty if there is none."""
        return text_of(self.times[row]) if len(self.times) else ""

    def content(self) -> bytes:
        """Return all values but the times, row by row."""
        parts = [self.decisions, self.target, self.risk, self.chance, *self.groups.values()]
        return torch.stack([part.double() for part in parts if part is not None], dim=1).numpy().tobytes()


class LogReader:
    """Reads logs of decisions, or of scores that a rule decides by.

    Args:
        rule: It names the classes and answers.
        groups: The names of the groups of each column that is needed.
        reading: How to read logs, where their content does not say it.
        is_whole: Whether files have ended, so that a last line without its end is a row.
        tell: Is called with a sentence on how each log is read.
    """

    def __init__(
        self,
        rule: DecisionRule,
        *,
        groups: Mapping[str, Sequence[str]],
        reading: ReadOptions | None = None,
        is_whole: bool = False,
        tell: Callable[[str], object] = str,
    ) -> None:
        self._rule, self._reading, self._is_whole, self._tell = rule, reading or ReadOptions(), is_whole, tell
        self._groups = {column: {name: code for code, name in enumerate(names)} for column, names in groups.items()}

    def count(self, path: Path) -> int:
        """Return the number of rows of a log."""
        rows = self._rows(path)
        return 0 if rows is None else len(rows.numbers)

    def pieces(self, path: Path, place: Place, number: int | None = None) -> Iterator[tuple[LogRows, Place]]:
        """Yield the rows after a place, and the place after them; a line without its end is left for later.

        With a number, only so many rows of the log are read.

        Raises:
            PredictionsError: If a value breaks a rule, or the file is not the one that was read before.
        """
        whole = self._rows(path)
        if whole is None and not place.rows:
            return
        rows = None if whole is None else whole.at(slice(number))
        known = 0 if rows is None else int((rows.numbers <= place.rows).sum())
        if rows is None or (place.rows and not known):
            raise PredictionsError(path, CHANGED.format(place.rows))
        seen = hashlib.sha256(rows.at(slice(known)).content())
        if place.rows and (int(rows.numbers[known - 1]), seen.hexdigest()) != place:
            raise PredictionsError(path, CHANGED.format(place.rows))
        for start in range(known, len(rows.numbers), PIECE_ROWS):
            new = rows.at(slice(start, start + PIECE_ROWS))
            seen.update(new.content())
            yield new, Place(int(new.numbers[-1]), seen.hexdigest())

    def names_in(self, path: Path, column: str) -> list[str]:
        """Return the different texts of a column, sorted; rows without one are the group "(none)"."""
        table = open_table(path)
        table.check_columns([column], "--limit")
        texts = distinct_texts(table, [column], 10**4, has_gaps=True)
        return sorted({text or NO_GROUP for text in texts})

    def _rows(self, path: Path) -> LogRows | None:
        """Return all rows of a log; None if there is no whole row yet."""
        reading, concern = self._reading, self._rule.concern
        try:
            table = open_table(path, is_whole=self._is_whole)
            if DECISION in table.names and not reading.score_columns and reading.decision_column is None:
                reading = reading._replace(decision_column=DECISION)  # what was decided, whatever the rule says
            predictions = Predictions(
                path,
                reading,
                class_names=concern.classes,
                needs_labels=False,
                texts=[*self._groups, TIME],
                numbers=[RISK, CHANCE],
                decisions=decision_numbers(concern.classes, concern.answers),
                table=table,
            )
        except NoRowsError:
            return None
        predictions.table.check_columns([*self._groups], "--limit")
        if predictions.roles.label is None:
            rule = "must have a column of labels, which may be empty: --label-column COLUMN names it"
            raise PredictionsError(path, rule)
        self._tell(predictions.how())
        read = predictions.rows() if predictions.decides else predictions.logits()
        rows = self._made(read, is_decided=predictions.decides)
        for note in predictions.notes():
            self._tell(note)
        return rows

    def _made(self, read: PredictedRows, *, is_decided: bool) -> LogRows:
        others, columns = read.others, read.others.columns
        given = (torch.from_numpy(others.numbers(name)) if name in columns else None for name in (RISK, CHANCE))
        risk, chance = given
        groups = {column: others.codes(column, partial(_code, names), "") for column, names in self._groups.items()}
        if is_decided:
            decisions = read.scores.squeeze(1)
        else:
            with torch.no_grad():
                assessed = self._rule.assess(read.scores)
            decisions, risk = assessed.decision, assessed.risk.double().clamp(0, 1)
        return LogRows(read.numbers, decisions, read.target, risk, chance, groups, columns.get(TIME, ()))


def _code(names: Mapping[str, int], value: Any) -> int:
    return names.get(text_of(value) or NO_GROUP, -1)
