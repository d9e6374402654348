"""Read the trials of a detector: scores, with labels (target or non-target) from the same or another file."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import printable, quoted
from mpcs_torch.evaluation.files.facts import label_text, named_class
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.reading import NO_GROUP, Advance, PredictionsError, ReadOptions
from mpcs_torch.evaluation.files.row_ids import RowIds
from mpcs_torch.evaluation.files.tables import FileTable, ReadColumns, choices, listed, to_number
from mpcs_torch.evaluation.files.trial_roles import TrialRoles, find_names, find_roles, in_words, names_shown
from mpcs_torch.evaluation.files.words import target_or_not
from mpcs_torch.functional.detection.errors import missing_kind
from mpcs_torch.functional.inputs.groups import Groups

if TYPE_CHECKING:
    import pyarrow

MISSING = "is missing, or no number"
COMPARED = 1000
"""The number of trial names that are compared to find the columns by which two files can be matched."""
DROP = "--missing drop leaves out such rows"


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
        path: A table in any format, with a header or without: see `find_roles`.
        options: The options for reading. ``options.labels`` may be a file that lists trials; each must have a score.
            Scores of other trials are an error; but in HDF5 matrices they are ignored, as in BOSARIS.
        advance: Called with the number of rows of a file after it is read.
        named: Whether to read the names of the trials.

    Raises:
        PredictionsError: If a file cannot be read, its columns are ambiguous or missing, or a value breaks a rule.
    """
    table, is_apart = open_table(path), options.labels is not None
    roles = find_roles(table, options, has_label=not is_apart)
    naming = find_names(table, roles, options, is_matched=is_apart) if named or is_apart else []
    coded = list(dict.fromkeys(roles.groups.values()))
    read = labelled = read_columns(table, roles, coded, naming, advance)
    places = np.arange(len(read.scores), dtype=np.int32)
    if options.labels is not None:
        other, of_list = open_table(options.labels), options.alone()._replace(score_columns=())
        list_roles = find_roles(other, of_list, has_score=False)
        list_naming = find_names(other, list_roles, options, is_matched=True)
        labelled = read_columns(other, list_roles, [], list_naming, lambda _: None)
        names: tuple[str, ...] = ()
        if naming or labelled.naming or len(places) != labelled.texts.rows:
            names, places = match_trials(read, labelled)
    else:
        names = _unique_names(read) if named else ()
    targets, meaning = labelled.targets(options.target_label)
    targets = np.where(places < 0, np.int8(-1), targets[places])
    kept, words = _kept(read, labelled, names, places, targets, options)
    values = read.scores if kept.all() else read.scores[kept]
    scores = torch.from_numpy(-values if options.lower_is_target else values)
    trials = Trials(scores, torch.from_numpy(targets[kept] == 1))
    missing = missing_kind(trials.labels)
    if missing is not None:
        rule = f"must contain target and non-target trials, but contains no {missing.removesuffix('s')} trial"
        raise PredictionsError(labelled.table.path, rule)
    columns = read.texts if kept.all() else read.texts.where(kept)  # a mask makes pyarrow import pandas
    named_by_all = {options.cluster, options.unit}
    groups = {name: columns.groups(of, None if name in named_by_all else NO_GROUP) for name, of in roles.groups.items()}
    texts = read.ids(names).ids.take(kept.nonzero()[0]) if named and names else None
    used = {roles.score, roles.label, *coded, *names}
    unread = [name for name in table.names if name not in used]
    source = f"of {printable(labelled.table.path.name)}, " if is_apart else ""
    words = [f"labels {source}{names_shown(labelled.roles.label)} ({meaning})", *words]
    return TrialTable(trials, texts, groups, in_words(table, roles.score, names, words, unread, options), unread)


class TrialColumns(NamedTuple):
    """The columns that were read from a file of trials, with all N rows."""

    table: FileTable
    roles: TrialRoles
    scores: NDArray[np.float64]
    naming: Sequence[tuple[str, ...]]
    """Sets of columns whose joined texts may name each row, the most likely set first."""
    texts: ReadColumns
    """Arrow arrays of texts (N,) by column, null where a text is missing."""

    def ids(self, names: Sequence[str]) -> RowIds:
        """Return the ids of the rows: the joined texts in the columns ``names``. Refuse a missing text."""
        return RowIds.of(self.texts, names)

    def targets(self, target: str | None) -> tuple[NDArray[np.int8], str]:
        """Return 1 for targets, 0 for non-targets, -1 without a label, (N,); and a phrase on what the labels mean."""
        column = self.roles.label
        texts = [label_text(value) for value in self.texts.single(column).unique().to_pylist()]
        labels = list(dict.fromkeys(filter(None, texts)))
        kinds = {text: target_or_not(text) if target is None else int(text == label_text(target)) for text in labels}
        problem = self._problem_of_labels(kinds, target)
        if problem:
            raise PredictionsError(self.table.path, problem, column=column)

        def kind(value: Any) -> int | None:
            return kinds.get(label_text(value), -1)

        rule = "must be a word of targets or of non-targets, such as 1, target, 0, nontarget"
        advice = "--target-label names the label of targets, and all others are non-targets"
        codes = self.texts.codes(column, kind, f"{rule} ({advice})").numpy().astype(np.int8)
        words = [text for text in labels if kinds[text]] or [f"not {text}" for text in labels]
        others = [text for text in labels if not kinds[text]]
        pooled = f", {listed(others)} are non-targets together" if len(others) > 1 else ""
        return codes, f"{listed(words)} = target{pooled or ', all others are non-targets' * (target is not None)}"

    def _problem_of_labels(self, kinds: Mapping[str, int | None], target: str | None) -> str:
        """Return the problem that labels do not tell targets from non-targets, given their ``kinds``; "" if they do."""
        labels, score = [*kinds], self.roles.score
        if target is not None:
            has_target = 1 in kinds.values()
            return "" if has_target else f"has no label {quoted(target)} of --target-label, but {listed(labels)}"
        if {"0", "-1"} <= {*labels}:
            return "has the labels 0 and -1: name that of targets with --target-label"
        named = [labels[place] for place in named_class(score, labels)]
        if named and kinds[named[0]] == 0 and to_number(named[0]) is None:
            way = f"--target-label {shlex.quote(named[0])} makes it the target"
            return f"has no target {quoted(named[0])}, but {quoted(score)} is named after it: {way}"
        is_unknown = None in kinds.values() and len(labels) <= 2
        return f"has the labels {listed(labels)}: {choices('--target-label', labels)}" if is_unknown else ""

    def is_gap(self, column: str) -> NDArray[np.bool_]:
        """Return a mask (N,), True for rows without a text in ``column``."""
        return np.asarray(self.texts.columns[column].is_null())


def read_columns(
    table: FileTable, roles: TrialRoles, coded: Sequence[str], naming: Sequence[tuple[str, ...]], advance: Advance
) -> TrialColumns:
    """Read the scores as numbers, and the labels and the columns in ``coded`` and ``naming`` as texts."""
    names = [*dict.fromkeys([*filter(None, [roles.label]), *coded, *chain(*naming)])]
    columns = table.read([*filter(None, [roles.score]), *names], numbers=[roles.score])
    scores = columns.numbers(roles.score) if roles.score else np.empty(0)
    advance(columns.rows)
    texts = columns._replace(columns={name: columns.texts(name) for name in names})
    return TrialColumns(table, roles, scores, naming, texts)


def match_trials(read: TrialColumns, listed: TrialColumns) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Return the columns of ``read`` that name trials in ``listed``; and the index of each row's trial, or -1: (N,)."""
    best, chosen = (False, 0, 0), None
    for pair in product(read.naming, listed.naming):
        if len(pair[0]) == len(pair[1]) and best < (True, len(pair[0]), COMPARED):
            known, some = listed.ids(pair[1]), read.ids(pair[0])
            number = int((some.among(known)[:COMPARED] >= 0).sum())
            match = (not known.repeated(), len(pair[0]), number) if number else best
            best, chosen = (match, pair) if match > best else (best, chosen)
    if chosen is None:
        example = "".join(f", such as {read.ids(names).named(0)}" for names in read.naming[:1])
        problem = f"has no trial of {listed.table.path}{example}: name the columns of names with --id-column"
        raise PredictionsError(read.table.path, problem)
    known, ids = listed.ids(chosen[1]).check_different(), read.ids(chosen[0]).check_different()
    known.all_among(ids)
    return chosen[0], ids.among(known)


def _unique_names(read: TrialColumns) -> tuple[str, ...]:
    """Return the first set of columns that names each row uniquely.

    If there is no such set, return (); if the table has a header, raise an error.
    """
    for names in read.naming:
        ids = read.ids(names)
        if not ids.repeated():
            return names
    if read.naming and (read.table.has_names or len(read.naming) <= 2):
        ids.check_different(": name other columns with --id-column")
    return ()


def _kept(
    read: TrialColumns,
    labelled: TrialColumns,
    names: Sequence[str],
    places: NDArray[np.int32],
    targets: NDArray[np.int8],
    options: ReadOptions,
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return a mask (N,) of the rows with a label and a score, and phrases on how many other rows are left out."""
    kept, is_other = (targets >= 0) & ~np.isnan(read.scores), places < 0
    for name in (options.cluster, options.unit):
        if name is not None and options.missing == "drop":
            kept &= ~read.is_gap(read.roles.groups[name])
    is_ignored = is_other & (read.table.dialect == MATRIX)
    is_left_out = ~kept & ~is_ignored
    if is_left_out.any() and options.missing == "error":
        row = int(is_left_out.argmax())
        if is_other[row]:
            problem = f"{read.ids(names).named(row)} is not in {labelled.table.path} ({DROP})"
            raise PredictionsError(read.table.path, problem, row=row + 1)
        column = read.roles.score if np.isnan(read.scores[row]) else ""
        faulty, row = (read, row) if column else (labelled, int(places[row]))
        column = column or faulty.roles.label
        raise PredictionsError(faulty.table.path, f"{MISSING} ({DROP})", row=row + 1, column=column)
    if not kept.any():
        raise PredictionsError(read.table.path, "contains no rows")
    words = {"scores of other pairs ignored": is_ignored, "rows without a label or a score left out": is_left_out}
    return kept, [f"{int(rows.sum())} {what}" for what, rows in words.items() if rows.any()]
