"""Find the columns of a detector's file: scores, labels, groups, and the names of trials."""

from collections.abc import Collection, Sequence
from itertools import combinations, product
from typing import NamedTuple

from mpcs_torch.errors import Rule, listed, printable, shown
from mpcs_torch.evaluation.files.facts import Facts, label_text
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.reading import ReadOptions
from mpcs_torch.evaluation.files.row_ids import Ids
from mpcs_torch.evaluation.files.tables import FileTable, choices
from mpcs_torch.evaluation.files.words import (
    DECISIONS,
    IDS,
    LABELS,
    POSITIVE,
    named_as,
    plain,
    target_or_not,
)

MAX_SINGLES, MAX_PAIRED = 30, 10
"""The numbers of columns without names that may name trials alone, or with another: each is compared with each."""
PAIR = ("enrollment", "test")


class TrialRoles(NamedTuple):
    """The names of the column of scores, the column of labels ("" if there is none) and all other columns."""

    score: str
    label: str
    others: list[str]


def find_roles(
    table: FileTable,
    options: ReadOptions,
    *,
    has_score: bool = True,
    has_label: bool = True,
) -> TrialRoles:
    """Find the columns of scores and of labels by ``options``, or else by names and values; refuse ambiguous tables.

    The column of labels has a usual name for labels, or else contains only words for targets and non-targets. Numbers
    such as 0 and 1 are such words only if no other column has exactly two words or digits. The column of scores has a
    usual name for scores, or else is the only column of numbers.
    """
    table.check_options(options, "by", "cluster", "unit", *["label_column"] * has_label)
    table.check_columns(options.score_columns, "--score-column")
    columns = Facts(table, options)
    if len(options.score_columns) > 1:
        raise columns.error(Rule("one_column_of_scores", number=len(options.score_columns)))
    scores = labels = [""]
    if has_score:
        scores = [*options.score_columns] or _possible_scores(columns)
    if has_label:
        given = options.label_column
        labels = (
            _possible_labels(columns, has_score=has_score) if given is None else [given]
        )
    # Five of each are enough to decide, and for a message: products of all columns may be too many.
    pairs = [pair for pair in product(scores[:5], labels[:5]) if pair[0] != pair[1]]
    if not pairs:
        raise columns.error(_no_reading(columns, is_score=has_score and not scores))
    if len(pairs) > 1:
        ways, steps = list[str](), list[str]()
        if has_score:
            steps.append("--score-column")
        if has_label:
            steps.append("--label-column")
        for score, label in pairs[:4]:
            named = {"scores": score, "labels": label}
            words = [f"{what} {names_shown(name)}" for what, name in named.items() if name]
            ways.append(" and ".join(words))
        raise columns.error(
            Rule("one_way", ways=", or as ".join(ways), steps=" and ".join(steps))
        )
    return TrialRoles(*pairs[0], [name for name in table.names if name not in pairs[0]])


def _is_label(texts: Collection[str]) -> bool:
    return (
        bool(texts)
        and None not in map(target_or_not, texts)
        and not {"0", "-1"} <= {*texts}
    )


def _possible_labels(columns: Facts, *, has_score: bool) -> list[str]:
    """Return the columns that may have the labels: named so, or of words for targets and non-targets alone."""
    target, known, likely = columns.options.target_label, set[str](), set[str]()
    for name in columns.free:
        texts = columns.texts(name)
        if _is_label(texts) if target is None else label_text(target) in texts:
            known.add(name)
        are_words = all(
            text.isalpha() or (len(text) == 1 and text.isdecimal()) for text in texts
        )
        if are_words and len(texts) == 2 < len(columns.columns[name].values):
            likely.add(name)
    likely |= known
    named = named_as(columns.free, LABELS)
    if named:
        return [name for name in named if name in likely] or named
    other = POSITIVE | DECISIONS | IDS
    free = [name for name in columns.free if plain(name) not in other]
    labels = [name for name in free if name in known]
    is_sure = (
        not labels
        or not has_score
        or target is not None
        or bool(columns.by_kind(labels, "text"))
    )
    return labels if is_sure else [name for name in free if name in likely]


def _possible_scores(columns: Facts) -> list[str]:
    """Return the columns that may have the scores: named so, or else of numbers."""
    numbers = columns.by_kind(columns.free, "whole", "number")
    if not columns.table.has_names:
        return columns.by_kind(numbers, "number") or numbers
    other = LABELS | IDS | DECISIONS
    # Predicted labels may be called as scores are.
    decided = [
        name
        for name in named_as(columns.free, DECISIONS)
        if name not in numbers or _is_label(columns.texts(name))
    ]
    named = [name for name in named_as(columns.free, POSITIVE) if name not in decided]
    unnamed = [
        name for name in numbers if plain(name) in POSITIVE or plain(name) not in other
    ]
    return [name for name in named if name in numbers] or named or unnamed


def _no_reading(columns: Facts, *, is_score: bool) -> Rule:
    if columns.table.dialect == MATRIX:
        return Rule("labels_of_matrix")
    has = columns.table.names_in_file
    if is_score:
        return Rule("column_of_trial_scores", columns=has)
    example: Rule | str = ""
    for name in columns.by_kind(columns.free, "text"):
        words = list(dict.fromkeys(columns.columns[name].values))
        if len(words) == 2:
            ways = choices("--target-label", words)
            shown = names_shown(name)
            example = Rule("column_of_two_words", column=shown, words=words, ways=ways)
    return Rule("column_of_trial_labels", columns=has, example=example)


def find_names(
    table: FileTable, roles: TrialRoles, options: ReadOptions, *, is_matched: bool = False
) -> list[Ids]:
    """Return sets of columns, the most likely first: the texts of a set, joined, may be the names of the trials."""
    given = [] if options.id_column is None else options.id_column.split(",")
    if given and (set(given) <= set(table.names) or not is_matched):
        table.check_columns(given, "--id-column")
        return [tuple(given)]
    known: list[Ids] = [
        names for names in (("trial",), PAIR) if set(names) <= set(roles.others)
    ]
    usual: list[Ids] = [(name,) for name in named_as(roles.others, IDS)]
    known = known or (usual if len(usual) == 1 or is_matched else [])
    if table.has_names and (known or not is_matched):
        return known
    singles: list[Ids] = [(name,) for name in roles.others[:MAX_SINGLES]]
    pairs = list(combinations(roles.others[:MAX_PAIRED], 2))
    if is_matched:
        return [*pairs, *singles]
    return [*singles[:1], *pairs] if len(pairs) == 1 else singles


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
