"""Read the new rows of growing logs of decisions, in any format of `open_table`."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.checks import decision_numbers
from mpcs_torch.evaluation.files.file_errors import NoRowsError, PredictionsError
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import NO_LABEL, Predictions
from mpcs_torch.evaluation.files.reading import NO_GROUP, ReadOptions
from mpcs_torch.evaluation.files.tables import distinct_texts, text_of
from mpcs_torch.evaluation.files.words import DECISION

UNLABELLED = NO_LABEL
"""The stand-in for a label that is not known yet."""
CHANGED = (
    "has changed since row {} was read. Each row is read once: append a row when its label has had time to come, and "
    "give a new log a new name"
)
CHANCE, TIME = "chance", "time"


class Position(NamedTuple):
    """The position up to which a log was read."""

    rows: int = 0
    sha256: str = ""
    """The hash of the decisions, labels, chances and groups of these rows."""


class LogRows(NamedTuple):
    """Some rows of a log."""

    numbers: Tensor
    """(N,), int64: the numbers of the rows in the log, from 1."""
    decisions: Tensor
    """(N,), int64: -1 for referrals."""
    target: Tensor
    """(N,), int64: `UNLABELLED` where there is no label."""
    chance: Tensor | None
    """(N,), float64: the probability with which a row was chosen to be labelled; NaN if the cell is empty."""
    groups: Mapping[str, Tensor]
    """The index of the group of each row, (N,), by column; -1 for groups that are not monitored."""
    times: Any = ()
    """The times as an arrow array of texts (N,); empty if the log has no column of times."""

    def at(self, rows: slice | Tensor) -> "LogRows":
        """Return some of the rows; times are kept only if ``rows`` is a slice."""
        numbers, decisions, target = (part[rows] for part in (self.numbers, self.decisions, self.target))
        chance = None if self.chance is None else self.chance[rows]
        groups = {column: codes[rows] for column, codes in self.groups.items()}
        return LogRows(numbers, decisions, target, chance, groups, self.times[rows] if isinstance(rows, slice) else ())

    def time(self, row: int) -> str:
        """Return the time of the row with the index ``row``; empty if the log has no times."""
        return text_of(self.times[row]) if len(self.times) else ""

    def position(self) -> Position:
        """Return the position after these rows, which must be all rows from the first."""
        content = hashlib.sha256()
        for part in (self.decisions, self.target, self.chance, *self.groups.values()):
            content.update(b"" if part is None else part.double().numpy().data)
        return Position(int(self.numbers[-1]), content.hexdigest())


class LogReader(NamedTuple):
    """Read logs of decisions."""

    concern: ConcernSpec
    """The concern, which names the classes and coarse answers."""
    groups: Mapping[str, Sequence[str]]
    """The names of the monitored groups, by column."""
    reading: ReadOptions = ReadOptions()
    tell: Callable[[str], object] = str
    """A function that is called with sentences on how each log was read."""

    def new_rows(self, path: Path, position: Position) -> tuple[LogRows, Position] | None:
        """Return the rows after ``position``, and the position after these rows; None if there are no new rows.

        A last line without a line break is incomplete, and is left for a later call.

        Raises:
            PredictionsError: If a value breaks a rule, or if rows before the position have changed.
        """
        rows = self._rows(path)
        if rows is None and not position.rows:
            return None
        known = 0 if rows is None else int((rows.numbers <= position.rows).sum())
        if rows is None or (position.rows and (not known or rows.at(slice(known)).position() != position)):
            raise PredictionsError(path, CHANGED.format(position.rows))
        return None if known == len(rows.numbers) else (rows.at(slice(known, None)), rows.position())

    def _rows(self, path: Path) -> LogRows | None:
        """Return all rows of a log; None if there is no complete row yet."""
        classes, answers = self.concern.classes, self.concern.answers
        try:
            predictions = Predictions(
                path,
                self.reading._replace(decision_column=self.reading.decision_column or DECISION),
                class_names=classes,
                needs_labels=False,
                texts=[*self.groups, TIME],
                numbers=[CHANCE],
                decisions=decision_numbers(classes, answers),
                table=open_table(path, is_whole=False),
            )
        except NoRowsError:
            return None
        predictions.table.check_columns([*self.groups], "--limit")
        if predictions.roles.label is None:
            rule = "must have a column of labels, which may be empty: --label-column COLUMN names it"
            raise PredictionsError(path, rule)
        self.tell(predictions.how())
        read = predictions.rows()
        for note in predictions.notes():
            self.tell(note)
        others, columns = read.others, read.others.columns
        chance = torch.from_numpy(others.numbers(CHANCE)) if CHANCE in columns else None
        groups = {
            column: others.codes(column, partial(_code, {name: code for code, name in enumerate(names)}), "")
            for column, names in self.groups.items()
        }
        decisions = read.scores.squeeze(1)
        return LogRows(read.numbers, decisions, read.target, chance, groups, columns.get(TIME, ()))


def names_of_groups(path: Path, column: str) -> list[str]:
    """Return the different texts of a column, sorted; rows without a text are the group "(none)"."""
    table = open_table(path)
    table.check_columns([column], "--limit")
    texts = distinct_texts(table, [column], 10**4, has_gaps=True)
    return sorted({text or NO_GROUP for text in texts})


def _code(names: Mapping[str, int], value: Any) -> int:
    return names.get(text_of(value) or NO_GROUP, -1)
