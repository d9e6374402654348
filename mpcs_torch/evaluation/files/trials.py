"""Trials of detectors: the values of their columns, with labels of the same file or of a list of trials."""

import shlex
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import printable, quoted
from mpcs_torch.evaluation.files.chunks import Advance, PredictionsError
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.labels import NamedRows, match_rows, name_shown, names_of, repeated
from mpcs_torch.evaluation.files.reading import NO_GROUP, ReadOptions
from mpcs_torch.evaluation.files.roles import label_text
from mpcs_torch.evaluation.files.tables import Table, codes_of, listed, numbers_of, text_of
from mpcs_torch.evaluation.files.trial_roles import PAIR, TrialRoles, find_roles, in_words, names_shown, naming_of
from mpcs_torch.evaluation.files.words import polarity_of
from mpcs_torch.functional.detection.errors import missing_kind
from mpcs_torch.functional.inputs.groups import Groups

if TYPE_CHECKING:
    import pyarrow


MISSING = "is missing, or no number"
DROP = "--missing drop leaves out such rows"


class Trials(NamedTuple):
    """The score and the label of each trial."""

    scores: Tensor
    """(N,), float64."""
    labels: Tensor
    """(N,), bool: True for target trials, False for non-target trials."""


class TrialTable(NamedTuple):
    """Trials with what else their file says of them."""

    trials: Trials
    names: "pyarrow.Array | None"
    """(N,), no two alike; None if the file does not name its trials, or if names are not asked for."""
    groups: dict[str, Groups]
    """By column, those that were asked for."""
    read: str = ""
    """How the file was read, in a sentence."""
    unread: Sequence[str] = ()
    """The columns that were not read."""


def read_trials(
    path: Path,
    options: ReadOptions,
    advance: Advance,
    *,
    both_kinds: bool = True,
    named: bool = False,
    all_columns: bool = False,
) -> TrialTable:
    """Read the scores and labels of a detector, and the groups and clusters of the options.

    Args:
        path: A table in any format, with a header or without: see `find_roles`.
        options: How to read it. ``labels`` is a list of trials, matched by their names. A trial of the list needs a
            score; scores of other trials are an error, but in the matrices of HDF5 they are ignored, as by BOSARIS.
        advance: Called with the number of rows after each batch.
        both_kinds: Whether there must be target and non-target trials.
        named: Whether to read the names of the trials.
        all_columns: Whether to read all other columns, as groups; two names of a trial are enrollment and test.

    Raises:
        PredictionsError: If a file cannot be read, can be read in several ways or in none, or a value breaks a rule.
    """
    table, is_apart = open_table(path), options.labels is not None
    roles = find_roles(table, options, has_label=not is_apart)
    naming = naming_of(table, roles, options, is_matched=is_apart) if named or all_columns or is_apart else []
    coded = roles.others if all_columns else list(dict.fromkeys(roles.groups.values()))
    read = labelled = read_columns(table, roles, coded, naming, advance)
    places = np.arange(len(read.scores), dtype=np.int32)
    if options.labels is not None:
        labelled = _labels_apart(options.labels, options)
        names: tuple[str, ...] = ()
        if naming or labelled.rows.naming or len(places) != len(labelled.codes[labelled.roles.label][1]):
            names, places = match_rows(read.rows, labelled.rows)
    else:
        names = _unique_names(read) if named else max(naming, key=len, default=())
    targets, meaning = labelled.targets(options.target_label)
    targets = np.where(places < 0, np.int8(-1), targets[places])
    kept, words = _kept(read, labelled, names, places, targets, options)
    scores = read.scores if kept.all() else read.scores[kept]
    trials = Trials(
        torch.from_numpy(-scores if options.lower_is_target else scores), torch.from_numpy(targets[kept] == 1)
    )
    if both_kinds and (missing := missing_kind(trials.labels)) is not None:
        rule = f"must contain target and non-target trials, but contains no {missing.removesuffix('s')} trial"
        raise PredictionsError(labelled.rows.path, rule)
    groups = {name: read.groups(of, kept, is_cluster=name == options.cluster) for name, of in roles.groups.items()}
    if all_columns:
        usual = PAIR if len(names) == 2 else names if table.has_names else ("trial",)
        called = dict(zip(names, usual, strict=False))
        groups = {called.get(column, column): read.groups(column, kept) for column in coded}
    texts = read.rows.ids(names).take(kept.nonzero()[0]) if named and names else None
    unread = [name for name in table.names if name not in {roles.score, roles.label, *coded, *names}]
    source = f"of {printable(labelled.rows.path.name)}, " if is_apart else ""
    words = [f"labels {source}{names_shown(labelled.roles.label)} ({meaning})", *words]
    return TrialTable(trials, texts, groups, in_words(table, roles.score, names, words, unread, options), unread)


class TrialColumns(NamedTuple):
    """The columns of trials that were read, of all rows."""

    table: Table
    roles: TrialRoles
    scores: NDArray[np.float64]
    codes: Mapping[str, tuple[list[str], NDArray[np.int32]]]
    """By column, its different texts in the order in which they occur, and the place of each row among these."""
    rows: NamedRows

    def targets(self, target: str | None) -> tuple[NDArray[np.int8], str]:
        """Return 1 for each target, 0 for each non-target, -1 without a label; and the meaning of labels in words."""
        column, path = self.roles.label, self.rows.path
        texts, codes = [label_text(text) for text in self.codes[column][0]], self.codes[column][1]
        labels = list(dict.fromkeys(text for text in texts if text))
        kinds = {text: polarity_of(text) if target is None else int(text == label_text(target)) for text in labels}
        unknown = [text for text, kind in kinds.items() if kind is None]
        problem, row = "", None
        if target is not None and 1 not in kinds.values():
            problem = f"has no label {quoted(target)} of --target-label, but {listed(labels)}"
        elif target is None and {"0", "-1"} <= {*labels}:
            problem = "has the labels 0 and -1: name that of targets with --target-label"
        elif unknown and len(labels) <= 2:
            known = " or ".join(f"--target-label {shlex.quote(text)}" for text in labels)
            problem = f"has the labels {listed(labels)}: pass {known}"
        elif unknown:
            rule = "must be a word of targets or of non-targets, such as 1, target, 0, nontarget"
            known = "name the label of targets with --target-label, and all others are non-targets"
            problem = f"{rule}, but is {quoted(unknown[0])}: {known}"
            row = int((codes == texts.index(unknown[0])).argmax()) + 1
        if problem:
            raise PredictionsError(path, problem, row=row, column=column)
        words = [text for text in labels if kinds[text]] or [f"not {text}" for text in labels]
        meaning = f"{listed(words)} = target" + ", all others are non-targets" * (target is not None)
        return np.array([kinds.get(text, -1) for text in texts], dtype=np.int8)[codes], meaning

    def groups(self, column: str, kept: NDArray[np.bool_], *, is_cluster: bool | None = None) -> Groups:
        """Return the groups of the rows that are kept, in the order in which they occur; None keeps missing names."""
        import pyarrow

        texts, codes = self.codes[column]
        if is_cluster and "" in texts and (is_gap := (codes == texts.index("")) & kept).any():
            raise PredictionsError(self.rows.path, f"is missing ({DROP})", row=int(is_gap.argmax()) + 1, column=column)
        missing = "" if is_cluster is None else NO_GROUP
        named = pyarrow.array([text or missing for text in texts]).take(pyarrow.array(codes[kept]))
        encoded = named.dictionary_encode()
        codes = np.array(encoded.indices, dtype=np.int64)
        return Groups(encoded.dictionary.to_pylist(), torch.from_numpy(codes))


def read_columns(
    table: Table, roles: TrialRoles, coded: Sequence[str], naming: Sequence[tuple[str, ...]], advance: Advance
) -> TrialColumns:
    """Read scores, labels and other columns of text of all rows, and the columns that may name the rows."""
    path, score = table.path, [roles.score] * bool(roles.score)
    scores, places = [np.empty(0)], {name: [np.empty(0, dtype=np.int32)] for name in (roles.label, *coded) if name}
    numbers: dict[str, dict[str, int]] = {name: {} for name in places}
    names: dict[str, list[Any]] = {name: [] for columns in naming for name in columns}

    for batch in table.batches(numbers=score, texts=[*places, *names]):
        scores += [numbers_of(path, batch.columns[name], name, batch.first_row) for name in score]
        for name, known in numbers.items():
            code_of = partial(_code, known)
            codes = codes_of(path, batch.columns[name], name, batch.first_row, code_of, "")
            places[name].append(codes.numpy().astype(np.int32))
        for name, parts in names.items():
            parts.append(names_of(path, batch.columns[name], name, batch.first_row))
        advance(batch.rows)
    codes_by_column = {name: (list(numbers[name]), np.concatenate(parts)) for name, parts in places.items()}
    return TrialColumns(table, roles, np.concatenate(scores), codes_by_column, NamedRows(path, naming, names))


def _code(known: dict[str, int], value: Any) -> int:
    """Return the place of a text, which keeps its white space; a missing one is empty."""
    text = value if isinstance(value, str) and value.strip() else text_of(value)
    return known.setdefault(text, len(known))


def _labels_apart(path: Path, options: ReadOptions) -> TrialColumns:
    """Read a list of trials with labels."""
    table = open_table(path)
    roles = find_roles(table, options._replace(by=(), cluster=None, score_columns=()), has_score=False)
    naming = naming_of(table, roles, options, is_matched=True)
    return read_columns(table, roles, [], naming, lambda _: None)


def _unique_names(read: TrialColumns) -> tuple[str, ...]:
    """Return the first columns that name each trial once; refuse those of a header if they do not."""
    naming = read.rows.naming
    for names in naming:
        texts = read.rows.ids(names)
        if not (row := repeated(texts)):
            return names
    if naming and (read.table.has_names or len(naming) <= 2):
        rule = f"must name each trial once, but {quoted(texts[row].as_py())} appears more than once"
        raise PredictionsError(read.rows.path, f"{rule}: name other columns with --id-column")
    return ()


def _kept(
    read: TrialColumns,
    labelled: TrialColumns,
    names: Sequence[str],
    places: NDArray[np.int32],
    targets: NDArray[np.int8],
    options: ReadOptions,
) -> tuple[NDArray[np.bool_], list[str]]:
    """Return the rows that are trials with a label and a score, and how many are not, in words."""
    kept, is_other = (targets >= 0) & ~np.isnan(read.scores), places < 0
    if options.cluster is not None and options.missing == "drop":
        texts, codes = read.codes[read.roles.groups[options.cluster]]
        kept &= np.array([bool(text) for text in texts])[codes]
    is_ignored = is_other & (read.table.dialect == MATRIX)
    is_left_out = ~kept & ~is_ignored
    if is_left_out.any() and options.missing == "error":
        row = int(is_left_out.argmax())
        if is_other[row]:
            name = name_shown(read.rows.ids(names)[row])
            raise PredictionsError(read.rows.path, f"the trial {name} is not in {labelled.rows.path}", row=row + 1)
        column = read.roles.score if np.isnan(read.scores[row]) else ""
        faulty, row = (read, row) if column else (labelled, int(places[row]))
        raise PredictionsError(
            faulty.rows.path,
            f"{MISSING} ({DROP})",
            row=row + 1,
            column=column or faulty.roles.label,
        )
    if not kept.any():
        raise PredictionsError(read.rows.path, "contains no rows")
    words = {"scores of other pairs ignored": is_ignored, "rows without a label or a score left out": is_left_out}
    return kept, [f"{int(rows.sum())} {what}" for what, rows in words.items() if rows.any()]
