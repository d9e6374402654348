"""Find the columns of a detector's file that have the scores, the labels and the names of trials."""

from collections.abc import Collection, Sequence
from itertools import combinations, product
from typing import NamedTuple

from mpcs_torch.errors import printable, shown
from mpcs_torch.evaluation.files.hdf5 import MATRIX
from mpcs_torch.evaluation.files.open_columns import OpenColumns, label_text
from mpcs_torch.evaluation.files.reading import ReadOptions
from mpcs_torch.evaluation.files.tables import FileTable, choices, listed
from mpcs_torch.evaluation.files.words import DECISIONS, IDS, LABELS, POSITIVE, named_as, plain, polarity_of

PAIR = ("enrollment", "test")


class TrialRoles(NamedTuple):
    """The column of scores and the column of labels (each empty if there is none), and all other columns."""

    score: str
    label: str
    others: list[str]
    groups: dict[str, str]
    """The columns of groups, clusters and units, by the requested name."""


def find_roles(
    table: FileTable, options: ReadOptions, *, has_score: bool = True, has_label: bool | None = True
) -> TrialRoles:
    """Find the columns of scores and of labels: by the options, or else by the only possible reading.

    The column of labels has a usual name for labels, or else contains only words for targets and non-targets. Numbers
    such as 0 and 1 are labels only if no other column has exactly two words or digits. The column of scores has a usual
    name for scores, or else is the only column of numbers. Without a header, whole numbers that look like ids or labels
    are not scores. ``has_label`` is None if a file may lack labels.

    Raises:
        PredictionsError: If no reading or several are possible; the message names the options.
    """
    groups = {name: column_named(table, name, "--by") for name in options.by}
    for name, option in ((options.cluster, "--cluster"), (options.unit, "--unit")):
        groups |= {} if name is None else {name: column_named(table, name, option)}
    columns = OpenColumns(table, options, None)
    columns.exclude([*groups.values()])
    if len(options.score_columns) > 1:
        raise columns.error(f"one column has the scores, not {len(options.score_columns)}: --score-column")
    given = [column_named(table, name, "--score-column") for name in options.score_columns]
    scores = (given or _possible_scores(columns)) if has_score else [""]
    if has_label is False:
        labels = [""]
    elif options.label_column is None:
        labels = _possible_labels(columns, has_score=has_score)
    else:
        labels = [column_named(table, options.label_column, "--label-column")]
    pairs = [pair for pair in product(scores, labels) if pair[0] != pair[1]]
    if has_label is None and not pairs:
        pairs = [(score, "") for score in scores]
    if not pairs:
        raise columns.error(_no_reading(columns, is_score=has_score and not scores))
    if len(pairs) > 1 and (has_label or len({score for score, _ in pairs}) > 1):
        said = [
            (f"scores {names_shown(score)}" * bool(score), f"labels {names_shown(label)}" * bool(label))
            for score, label in pairs[:4]
        ]
        ways = [" and ".join(filter(None, words)) for words in said]
        steps = " and ".join(["--score-column"] * has_score + ["--label-column"] * bool(has_label))
        raise columns.error(f"can be read as {', or as '.join(ways)}: choose with {steps}")
    return TrialRoles(*pairs[0], [name for name in table.names if name not in pairs[0]], groups)


def column_named(table: FileTable, name: str, option: str = "") -> str:
    """Return the column ``name``, which may be its number if there is no header; refuse a missing column."""
    if not table.has_names and f"column {name}" in table.names:
        return f"column {name}"
    table.check_columns([name], option)
    return name


def _is_label(texts: Collection[str]) -> bool:
    return bool(texts) and None not in map(polarity_of, texts) and not {"0", "-1"} <= {*texts}


def _possible_labels(columns: OpenColumns, *, has_score: bool) -> list[str]:
    texts, target = {name: columns.texts(name) for name in columns.open}, columns.options.target_label
    known = [
        name for name in texts if (_is_label(texts[name]) if target is None else label_text(target) in texts[name])
    ]
    pairs = [name for name, some in texts.items() if len(some) == 2 < len(columns.values[name])]
    two_words = [
        name for name in pairs if all(text.isalpha() or (len(text) == 1 and text.isdecimal()) for text in texts[name])
    ]
    named, other = named_as(columns.open, LABELS), POSITIVE | DECISIONS | IDS
    if named:
        return [name for name in named if name in known or name in two_words] or named
    free = [name for name in columns.open if plain(name) not in other]
    labels = [name for name in free if name in known]
    if not labels or not has_score or target is not None or columns.of_kind("text", among=labels):
        return labels
    return [name for name in free if name in labels or name in two_words]


def _possible_scores(columns: OpenColumns) -> list[str]:
    numeric, fractions = columns.of_kind("whole", "number"), columns.of_kind("number")
    texts = {name: columns.texts(name) for name in columns.open}
    if not columns.table.has_names:
        ids = [
            name for name in numeric if len(texts[name]) == len(columns.values[name]) and "-" not in str(texts[name])
        ]
        other = [*ids, *(name for name in numeric if _is_label(texts[name]))]
        return [name for name in numeric if name in fractions or name not in other] if fractions else numeric
    named = [name for name in named_as(columns.open, POSITIVE) if name in numeric or plain(name) not in DECISIONS]
    scores = [name for name in named if not _is_label(texts[name]) or plain(name) not in DECISIONS]
    others = [name for name in numeric if name in named or plain(name) not in LABELS | IDS | DECISIONS]
    return [name for name in scores if name in numeric] or scores or others


def _no_reading(columns: OpenColumns, *, is_score: bool) -> str:
    if columns.table.dialect == MATRIX:
        return "contains no labels: give a Key, or a list of trials, with --labels FILE"
    has = columns.table.it_has()
    if is_score:
        return f"has no column of scores by name or content: name it with --score-column; {has}"
    both = [(name, list(dict.fromkeys(columns.values[name]))) for name in columns.of_kind("text")[::-1]]
    name, words = next((each for each in both if len(each[1]) == 2), ("", []))
    ways = choices("--target-label", words)
    example = f" ({names_shown(name)} has {listed(words)}: {ways})" if words else ""
    known = "name it with --label-column, or the label of targets with --target-label, or give --labels FILE"
    return f"has no column of labels by name or content: {known}{example}; {has}"


def find_names(table: FileTable, roles: TrialRoles, options: ReadOptions, *, is_matched: bool) -> list[tuple[str, ...]]:
    """Return the sets of columns whose texts may together name a trial, the most likely first."""
    given = [] if options.id_column is None else options.id_column.split(",")
    if given and (set(given) <= set(table.names) or not is_matched):
        return [tuple(column_named(table, name.strip(), "--id-column") for name in given)]
    known: list[tuple[str, ...]] = [names for names in (("trial",), PAIR) if set(names) <= set(roles.others)]
    usual: list[tuple[str, ...]] = [(name,) for name in named_as(roles.others, IDS)]
    known = known or (usual if len(usual) == 1 or is_matched else [])
    if table.has_names and (known or not is_matched):
        return known
    singles: list[tuple[str, ...]] = [(name,) for name in roles.others]
    pairs = list(combinations(roles.others[:10], 2))
    return [*pairs, *singles] if is_matched else [*singles[:1], *pairs] if len(pairs) == 1 else singles


def in_words(
    table: FileTable,
    score: str,
    names: Sequence[str],
    words: Sequence[str],
    unread: Sequence[str],
    options: ReadOptions,
) -> str:
    """Describe in a sentence how a file was read."""
    negated = ", negated, as thresholds are, because low ones are those of targets" * options.lower_is_target
    parts = [table.dialect, f"names {names_shown(*names)}" if names else "", *words[:1]]
    parts += [f"scores {names_shown(score)}{negated}", *words[1:], f"not used: {listed(unread)}" if unread else ""]
    return f"{printable(table.path.name)}: {'; '.join(filter(None, parts))}"


def names_shown(*names: str) -> str:
    """Quote the names of columns for a sentence."""
    return " and ".join(f'"{shown(name)}"' for name in names)
