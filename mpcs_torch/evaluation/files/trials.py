"""Read the trials of a detector: scores, with labels (target or non-target) from the same or another file."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import Rule, listed
from mpcs_torch.evaluation.files.facts import label_text, named_class
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.joined_labels import join
from mpcs_torch.evaluation.files.reading import (
    NO_GROUP,
    Advance,
    PredictionsError,
    ReadOptions,
)
from mpcs_torch.evaluation.files.row_ids import Ids, RowIds
from mpcs_torch.evaluation.files.tables import FileTable, ReadColumns, choices, to_number
from mpcs_torch.evaluation.files.trial_roles import (
    TrialRoles,
    find_names,
    find_roles,
    in_words,
    names_shown,
)
from mpcs_torch.evaluation.files.words import target_or_not
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
    table = open_table(path)
    names: Ids = ()
    if options.labels is None:
        roles = find_roles(table, options)
        naming = find_names(table, roles, options) if named else []
    else:
        table, roles, names = _with_list(table, options)
        naming = [names] if names and named else []
    grouped = options._replace(id_column=None).columns
    texts_of = dict.fromkeys([roles.label, *grouped, *chain(*naming)])
    read = table.read([roles.score, *texts_of], numbers=[roles.score])
    scores = read.numbers(roles.score)
    advance(read.rows)
    texts = read._replace(columns={name: read.texts(name) for name in texts_of})
    names = _unique_names(table, texts, naming) if options.labels is None else names
    targets, meaning = _targets(texts, roles, options.target_label)
    kept, words = _kept(
        texts, roles, scores, targets, options, is_matrix=MATRIX in table.dialect
    )
    values = scores if kept.all() else scores[kept]
    trials = Trials(
        torch.from_numpy(-values if options.lower_is_target else values),
        torch.from_numpy(targets[kept] == 1),
    )
    missing = missing_kind(trials.labels)
    if missing is not None:
        raise PredictionsError(
            table.path, Rule("both_kinds_of_trials", missing=missing.removesuffix("s"))
        )
    columns = (
        texts if kept.all() else texts.where(kept)
    )  # a mask makes pyarrow import pandas
    named_by_all = {options.cluster, options.unit}
    groups = {
        name: columns.groups(name, None if name in named_by_all else NO_GROUP)
        for name in grouped
    }
    ids = RowIds.of(texts, names).ids.take(kept.nonzero()[0]) if named and names else None
    used = {roles.score, roles.label, *grouped, *names}
    unread = [name for name in table.names if name not in used]
    words = [f"labels {names_shown(roles.label)} ({meaning})", *words]
    return TrialTable(
        trials,
        ids,
        groups,
        in_words(table, roles.score, names, words, unread, options),
        unread,
    )


def _with_list(table: FileTable, options: ReadOptions) -> tuple[FileTable, TrialRoles, Ids]:
    """Return ``table`` with the labels of a list of trials, the roles, and the columns that name the trials."""
    assert options.labels is not None
    other = open_table(options.labels)
    of_list = find_roles(other, options.alone()._replace(score_columns=()), has_score=False)
    roles = find_roles(table, options, has_label=False)
    ids = [
        find_names(each, own, options, is_matched=True)
        for each, own in ((table, roles), (other, of_list))
    ]
    may_lack = options.missing == "drop" or MATRIX in table.dialect
    joined, names = join(
        table,
        other,
        {"": of_list.label},
        [],
        (ids[0], ids[1]),
        may_lack=may_lack,
        is_list=True,
    )
    return joined, roles._replace(label=str(joined.label)), names


def _targets(
    texts: ReadColumns, roles: TrialRoles, target: str | None
) -> tuple[NDArray[np.int8], str]:
    """Return 1 for targets, 0 for non-targets, -1 without a label, (N,); and a phrase on what the labels mean."""
    distinct = map(label_text, texts.single(roles.label).unique().to_pylist())
    labels = list(dict.fromkeys(filter(None, distinct)))
    kinds = {text: target_or_not(text) for text in labels}
    if target is not None:
        kinds = {text: int(text == label_text(target)) for text in labels}
    rule = _broken_by_labels(kinds, roles.score, target)
    if rule is not None:
        raise PredictionsError(texts.path, rule, column=roles.label)

    def kind(value: Any) -> int | None:
        return kinds.get(label_text(value), -1)

    codes = texts.codes(roles.label, kind, Rule("label_of_trial")).numpy().astype(np.int8)
    words = [text for text in labels if kinds[text]] or [f"not {text}" for text in labels]
    others = [text for text in labels if not kinds[text]]
    pooled = "" if target is None else ", all others are non-targets"
    if len(others) > 1:
        pooled = f", {listed(others)} are non-targets together"
    return codes, f"{listed(words)} = target{pooled}"


def _broken_by_labels(
    kinds: Mapping[str, int | None], score: str, target: str | None
) -> Rule | None:
    """Return the rule for labels, given their ``kinds``, that do not tell targets from non-targets; else None."""
    labels = [*kinds]
    if target is not None and 1 in kinds.values():
        return None
    if target is not None:
        return Rule("has_target_label", target=target, labels=labels)
    if {"0", "-1"} <= {*labels}:
        return Rule("zero_and_minus_one")
    named = [labels[place] for place in named_class(score, labels)]
    if named and kinds[named[0]] == 0 and to_number(named[0]) is None:
        word = shlex.quote(named[0])
        return Rule("score_of_non_target", label=named[0], score=score, word=word)
    if None not in kinds.values() or len(labels) > 2:
        return None
    ways = choices("--target-label", labels)
    return Rule("which_target", labels=labels, ways=ways)


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
    roles: TrialRoles,
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
        column = roles.score if np.isnan(scores[row]) else roles.label
        raise texts.error(Rule("missing_value"), row, column)
    if not kept.any():
        raise PredictionsError(texts.path, Rule("rows_of_trials"))
    number = int((~kept).sum())
    return kept, [f"{number} rows without a label or a score left out"] if number else []
