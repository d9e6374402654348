"""Read growing logs of decisions, in any format of `open_table`."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.checks import decision_numbers
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.predictions import NO_LABEL, Predictions
from mpcs_torch.evaluation.files.reading import NO_GROUP, NoRowsError, PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.tables import distinct_texts, text_of
from mpcs_torch.evaluation.files.words import DECISION

CHANCE, TIME = "chance", "time"


class Position(NamedTuple):
    """The position up to which a log was read."""

    rows: int = 0
    sha256: str = ""
    """The hash of the decisions, labels, chances and groups of these rows."""


class LogRows(NamedTuple):
    """The N rows of a log."""

    numbers: Tensor
    """(N,), int64: the numbers of the rows in the log, from 1."""
    decisions: Tensor
    """(N,), int64: -1 for referrals."""
    target: Tensor
    """(N,), int64: the labels; `NO_LABEL` for rows that have no label yet."""
    chance: Tensor
    """(N,), float64: the probability with which a row was chosen to be labelled; 1 if the log has no such column."""
    groups: Mapping[str, Tensor]
    """The index of the group of each row, (N,), by column; -1 for groups that are not monitored."""
    times: Any = ()
    """The times as an arrow array of texts (N,); empty if the log has no column of times."""

    def position(self, rows: int) -> Position:
        """Return the position after the first ``rows`` rows, which must be at least one."""
        content = hashlib.sha256()
        for part in (self.decisions, self.target, self.chance, *self.groups.values()):
            content.update(part[:rows].double().numpy().data)
        return Position(int(self.numbers[rows - 1]), content.hexdigest())


def read_log(
    path: Path,
    concern: ConcernSpec,
    groups: Mapping[str, Sequence[str]],
    least_chance: float,
    reading: ReadOptions,
    tell: Callable[[str], object],
) -> LogRows | None:
    """Read a log; return None if there is no complete row yet. A last line without a line break is incomplete.

    ``groups`` has the names of the monitored groups by column. A row with a label must have a chance from
    ``least_chance`` to 1. ``tell`` is called with sentences on how the log was read.

    Raises:
        PredictionsError: If a value breaks a rule.
    """
    classes, answers = concern.classes, concern.answers
    try:
        predictions = Predictions(
            path,
            reading._replace(decision_column=reading.decision_column or DECISION),
            class_names=classes,
            needs_labels=False,
            texts=[*groups, TIME],
            numbers=[CHANCE],
            decisions=decision_numbers(classes, answers),
            table=open_table(path, is_whole=False),
        )
    except NoRowsError:
        return None
    predictions.table.check_columns([*groups], "--limit")
    predictions.table.check_columns([CHANCE] if least_chance < 1 else [], "--least-chance")
    if predictions.roles.label is None:
        rule = "must have a column of labels, which may be empty: --label-column COLUMN names it"
        raise PredictionsError(path, rule)
    tell(predictions.how())
    numbers, decisions, target, others = predictions.rows()
    for note in predictions.notes:
        tell(note)
    chance = torch.ones(len(target)).double()
    if CHANCE in others.columns:
        chance = torch.from_numpy(others.numbers(CHANCE))
    is_bad = (target != NO_LABEL) & ~((chance >= least_chance) & (chance <= 1))
    if is_bad.any():
        row = int(is_bad.int().argmax())
        rule = f"must be from {least_chance:g} (--least-chance) to 1 where there is a label, but is {chance[row]:g}"
        raise others.error(rule, row, CHANCE)
    codes = {
        column: others.codes(column, partial(_code, {name: code for code, name in enumerate(names)}), "")
        for column, names in groups.items()
    }
    return LogRows(numbers, decisions.squeeze(1), target, chance, codes, others.columns.get(TIME, ()))


def names_of_groups(path: Path, column: str) -> list[str]:
    """Return the different texts of a column, sorted. Rows without a text form the group "(none)"."""
    table = open_table(path)
    table.check_columns([column], "--limit")
    texts = distinct_texts(table, [column], 10**4, has_gaps=True)
    return sorted({text or NO_GROUP for text in texts})


def _code(names: Mapping[str, int], value: Any) -> int:
    return names.get(text_of(value) or NO_GROUP, -1)
