"""Read the trials of a detector: scores, with labels (target or non-target) from the same or another file."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import Rule, listed, printable, shown
from mpcs_torch.evaluation.files.facts import Facts, label_text
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.joined_labels import with_labels
from mpcs_torch.evaluation.files.offers import ReadValues
from mpcs_torch.evaluation.files.read_options import (
    NO_GROUP,
    Advance,
    PredictionsError,
    ReadOptions,
)
from mpcs_torch.evaluation.files.reading_choice import choose
from mpcs_torch.evaluation.files.roles import Roles
from mpcs_torch.evaluation.files.row_ids import Ids, RowIds, trial_ids
from mpcs_torch.evaluation.files.tables import (
    FileTable,
    ReadColumns,
    is_gap,
)
from mpcs_torch.evaluation.files.words import target_or_not
from mpcs_torch.functional.detection.equal_error_rate import equal_error_rate
from mpcs_torch.functional.detection.errors import missing_kind
from mpcs_torch.functional.inputs.groups import Groups

if TYPE_CHECKING:
    import pyarrow


class Trials(NamedTuple):
    """The score and the label of each trial."""

    scores: Tensor
    """(N,), float64."""
    labels: Tensor
    """(N,), bool: True for target trials, False for non-target trials."""


class TrialTable(NamedTuple):
    """Trials with their names and groups."""

    trials: Trials
    names: "pyarrow.Array | None"
    """The trial names, (N,), all different; None if the file lacks them or they were not requested."""
    groups: dict[str, Groups]
    """The groups of the trials, by column."""
    meaning: str = ""
    """A phrase on what the labels mean, such as ``bonafide = target``."""
    read: str = ""
    """A sentence that says how the file was read."""
    unread: Sequence[str] = ()
    """The columns that were not read."""


def read_trials(
    path: str | Path,
    options: ReadOptions,
    advance: Advance,
    *,
    named: bool = False,
) -> TrialTable:
    """Read the scores and labels of a detector, and the groups and clusters that ``options`` names.

    Args:
        path: A table in any format, with a header or without: see `trial_readings`.
        options: The options for reading. ``options.labels`` may be a file that lists trials; each must have a score.
            Scores of other trials are an error; but in HDF5 matrices they are ignored, as in BOSARIS.
        advance: Called with the number of rows of a file after it is read.
        named: Whether to read the names of the trials.

    Raises:
        PredictionsError: If a file cannot be read, its columns are ambiguous or missing, or a value breaks a rule.
    """
    table = open_table(path)
    has_list = options.labels is not None
    given = [] if has_list else ["label_column"]
    table.check_options(options, "by", "cluster", "unit", *given)
    ids: Ids = ()
    if has_list:
        facts = Facts(table, options, needs_labels=False, of_trials=True)
        scores = choose(facts, None).scores
        table, ids = with_labels(table, options, scores)
        options = options._replace(score_columns=scores)  # no label is a score
    facts = Facts(table, options, of_trials=True)
    roles = choose(facts, _measured)
    naming = [ids] if named and ids else []
    if named and not has_list:
        naming = trial_ids(table, [*roles.scores, str(roles.label)], options)
    return _read(table, roles, naming, ids, options, advance)


def _read(
    table: FileTable,
    roles: Roles,
    naming: Sequence[Ids],
    ids: Ids,
    options: ReadOptions,
    advance: Advance,
) -> TrialTable:
    """Read the trials whose columns have ``roles``. One of the sets ``naming`` names them: ``ids``, if it is known."""
    score, label = roles.scores[0], str(roles.label)
    grouped = options._replace(id_column=None).columns
    texts_of = dict.fromkeys([label, *grouped, *chain(*naming)])
    read = table.read([score, *texts_of], numbers=[score])
    values = read.numbers(score)
    advance(read.rows)
    texts = read._replace(columns={name: read.texts(name) for name in texts_of})
    unique = ids or _unique_names(table, texts, naming)
    targets, meaning = _targets(texts, roles, options)
    kept, words = _kept(
        texts, roles, values, targets, options, is_matrix=MATRIX in table.dialect
    )
    values = values if kept.all() else values[kept]
    trials = Trials(
        torch.from_numpy(-values if options.lower_is_target else values),
        torch.from_numpy(targets[kept] == 1),
    )
    missing = missing_kind(trials.labels)
    if missing is not None:
        raise PredictionsError(
            table.path, Rule("both_kinds_of_trials", missing=missing.removesuffix("s"))
        )
    columns = texts
    if not kept.all():  # a mask makes pyarrow import pandas
        columns = texts.where(kept)
    named_by_all = {options.cluster, options.unit}
    groups = {
        name: columns.groups(name, None if name in named_by_all else NO_GROUP)
        for name in grouped
    }
    names = None
    if naming and unique:
        names = RowIds.of(texts, unique).ids.take(kept.nonzero()[0])
    used = {score, label, *grouped, *unique}
    unread = [name for name in table.names if name not in used]
    words = [f"labels {names_shown(label)} ({meaning})", *words]
    sentence = in_words(table, score, unique, words, unread, options)
    return TrialTable(trials, names, groups, meaning, sentence, unread)


def _measured(facts: Facts, options: ReadOptions) -> ReadValues:
    """Return the equal error rate of all trials by other ``options``, for an offer."""
    roles = choose(facts.asked(options, facts.table), None)
    read = _read(facts.table, roles, [], (), options, lambda _: None)
    rate = equal_error_rate(*read.trials).item()
    return ReadValues({"": rate}, len(read.trials.labels), read.meaning, "equal error rate")


def _targets(
    texts: ReadColumns, roles: Roles, options: ReadOptions
) -> tuple[NDArray[np.int8], str]:
    """Return 1 for targets, 0 for non-targets, -1 without a label, (N,); and a phrase on what the labels mean."""
    label, target = str(roles.label), roles.classes[0]

    def kind(value: Any) -> int | None:
        text = label_text(value)
        if not text or (options.target_label is None and is_gap(text)):
            return -1
        return int(text == target) if target else target_or_not(text)

    codes = texts.codes(label, kind, Rule("label_of_trial")).numpy().astype(np.int8)
    distinct = map(label_text, texts.single(label).unique().to_pylist())
    labels = [text for text in dict.fromkeys(distinct) if kind(text) != -1]
    others = [text for text in labels if not kind(text)]
    words = [text for text in labels if kind(text)] or [f"not {text}" for text in others]
    pooled = ", all others are non-targets" if target else ""
    if len(others) > 1:
        pooled = f", {listed(others)} are non-targets together"
    return codes, f"{listed(words)} = target{pooled}"


def _unique_names(table: FileTable, texts: ReadColumns, naming: Sequence[Ids]) -> Ids:
    """Return the first set of columns that names each row uniquely.

    If there is no such set, return (); if the table has a header, raise an error.
    """
    for names in naming:
        ids = RowIds.of(texts, names)
        if not ids.repeated():
            return names
    if naming and (table.has_names or len(naming) <= 2):
        ids.check_different(Rule("other_names"))
    return ()


def _kept(
    texts: ReadColumns,
    roles: Roles,
    scores: NDArray[np.float64],
    targets: NDArray[np.int8],
    options: ReadOptions,
    *,
    is_matrix: bool,
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return a mask (N,) of the rows with a label and a score, and a phrase on how many other rows are left out.

    Some pairs of a matrix of scores may not be in the list of trials.
    """
    kept = (targets >= 0) & ~np.isnan(scores)
    if options.missing == "drop":
        for name in filter(None, (options.cluster, options.unit)):
            kept &= ~np.asarray(texts.columns[name].is_null())
    elif not kept.all() and not is_matrix:
        row = int((~kept).argmax())
        column = roles.scores[0] if np.isnan(scores[row]) else roles.label
        raise texts.error(Rule("missing_value"), row, column)
    if not kept.any():
        raise PredictionsError(texts.path, Rule("rows_of_trials"))
    number = int((~kept).sum())
    return kept, [f"{number} rows without a label or a score left out"] if number else []


def in_words(
    table: FileTable,
    score: str,
    names: Sequence[str],
    words: Sequence[str],
    unread: Sequence[str],
    options: ReadOptions,
) -> str:
    """Describe in a line how ``table`` was read: columns ``score``, ``names``, ``unread``, and further ``words``."""
    scores = f"scores {names_shown(score)}"
    if options.lower_is_target:
        scores += ", negated, as thresholds are, because low ones are those of targets"
    parts = [
        table.dialect,
        f"names {names_shown(*names)}" if names else "",
        *words[:1],
        scores,
        *words[1:],
        f"not used: {listed(unread)}" if unread else "",
    ]
    return f"{printable(table.path.name)}: {'; '.join(filter(None, parts))}"


def names_shown(*names: str) -> str:
    """Quote column names and join them with "and"."""
    return " and ".join(f'"{shown(name)}"' for name in names)
