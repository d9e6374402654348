"""Find the sets of columns, and the columns of lists, that have a score for each class."""

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

import numpy as np

from mpcs_torch.concern.checks import MAX_CLASSES
from mpcs_torch.errors import Rule, numbered_families
from mpcs_torch.evaluation.files.facts import (
    SEPARATOR,
    Facts,
    by_class,
    named_class,
    shared_start,
)
from mpcs_torch.evaluation.files.label_columns import LabelColumns
from mpcs_torch.evaluation.files.roles import CLASS_SCORES, Reading, Roles
from mpcs_torch.evaluation.files.score_scale import nominal_sum
from mpcs_torch.evaluation.files.tables import to_number, to_text
from mpcs_torch.evaluation.files.words import POSITIVE, ROW_NAMES, plain, split_words

SCORES = (POSITIVE | {"softmax", "conf", "confidence"}) - {
    "distance",
    "similarity",
    "cosine",
}
"""Words that may stand before or after the class name in the name of a column of scores, such as ``prob_red``."""
NO_SCORES = {"distance", "dist", "loss"}
"""Words in the names of columns of numbers that are no scores of classes."""
PREFIX = re.compile("prediction|prob|score", re.IGNORECASE)
"""A word at the beginning of a name, without a separator, as in Predictioncat."""
MAX_NEIGHBOURS = 50
"""The maximum number of columns among which neighbours are sought that sum to 1."""
MIN_FALLING = 20
"""The minimum number of lists, each of falling scores, that are taken for those of the best classes of each row."""


def score_sets(
    facts: Facts, labels: LabelColumns, names: Sequence[str], *, is_decided: bool
) -> list[Reading]:
    """Return the readings of the best sets of columns in ``names`` with a score of each class.

    ``is_decided`` says whether the file has predicted labels, too: whole numbers are then features, not scores.
    """
    sets = list(_column_sets(facts, labels, names))
    words = label_words(facts, labels.column)
    passing = [
        roles for roles in sets if labels.truth or _sum_problem(facts, roles) is None
    ]
    if is_decided:
        passing = [roles for roles in passing if facts.by_kind(roles.scores, "number")]
    is_logits = facts.options.from_logits

    def signs(roles: Roles) -> tuple[bool, bool, bool, bool]:
        """Return the signs that a set is meant: each decides if those before it are equal."""
        classes = {*roles.classes}
        covers_labels = words <= classes
        # Any columns may be logits, so names must tell.
        is_known = not is_logits or words == classes
        has_common_word = bool(_common_words(roles))
        return covers_labels, is_known, has_common_word, roles.is_numbered

    if is_logits and facts.class_names is None and not labels.truth:
        passing = [roles for roles in passing if _are_named(facts, roles, labels, names)]
    best = max(map(signs, passing), default=None)
    passing = [roles for roles in passing if signs(roles) == best]
    if not is_logits:  # a class whose scores are 0 changes no sum
        passing = _largest(passing)
    distinct = dict[frozenset[str], Roles]()
    for roles in passing:
        distinct.setdefault(frozenset(roles.scores), roles)
    if distinct:
        return [
            _score_reading(roles, _order_problem(facts, roles))
            for roles in distinct.values()
        ]
    # Names that are clear tell why the values do not fit; they are not read as something else.
    for roles in sets:
        problem = _sum_problem(facts, roles)
        if problem is not None and _are_named(facts, roles, labels):
            return [_score_reading(roles, problem)]
    return []


def _are_named(
    facts: Facts, roles: Roles, labels: LabelColumns, names: Sequence[str] = ()
) -> bool:
    """Return whether names tell that columns have scores, as sums do not; or they are all the numbers in ``names``."""
    words = label_words(facts, labels.column)
    covers = bool(words) and words <= {*roles.classes}
    if covers or _common_words(roles) & SCORES:
        return True
    are_all = {*roles.scores} == {*facts.by_kind(names, "number", "whole")}
    return (roles.is_numbered or are_all) and _are_used(facts, roles, labels)


def _are_used(facts: Facts, roles: Roles, labels: LabelColumns) -> bool:
    """Return whether the labels use at least half of the classes; else the columns may be features.

    Columns that are called 0, 1 and so on, without another word, are no features.
    """
    is_called_so = roles.is_numbered and [*roles.scores] == [*roles.classes]
    if labels.column is None or facts.class_names is not None or is_called_so:
        return True
    return 2 * len(facts.all_texts(labels.column)) >= len(roles.classes)


def _score_reading(roles: Roles, problem: Rule | None) -> Reading:
    """Return the reading of scores of classes, with the ``problem`` of their values."""
    return Reading(roles, CLASS_SCORES, broken=problem)


def score_lists(
    facts: Facts, labels: LabelColumns, names: Sequence[str]
) -> Iterator[Reading]:
    """Yield the reading of each column of lists in ``names``. Unknown classes are numbered."""
    for name in names:
        size = facts.width(name)
        classes = facts.class_names
        if size > MAX_CLASSES:
            raise facts.error(Rule("classes_at_most", maximum=MAX_CLASSES, number=size))
        if classes is not None and len(classes) != size:
            raise facts.error(Rule("size_of_lists", size=size, number=len(classes)), name)
        roles = Roles("lists", [name], tuple(classes or map(str, range(size))))
        problem = None if labels.truth else _sum_problem(facts, roles)
        yield _score_reading(roles, problem or _order_problem(facts, roles))


def chosen_columns(facts: Facts, free: Sequence[str]) -> list[str]:
    """Return the columns that ``--score-columns`` names, among those that are ``free``; refuse texts."""
    names = list[str]()
    for pattern in facts.options.score_columns:
        matched = [pattern]
        if "*" in pattern:
            matched = [name for name in free if fnmatchcase(name, pattern)]
        facts.table.check_columns(matched or [pattern], "--score-columns")
        names += [name for name in matched if name not in names]
    for name in names:
        if facts.kind(name) in ("text", "nested"):
            filled = [value for value in facts.columns[name].values if to_text(value)]
            value = next(value for value in filled if to_number(value) is None)
            raise facts.error(Rule("column_of_numbers", value=value), name)
    return names


def chosen_set(facts: Facts, labels: LabelColumns, names: Sequence[str]) -> Roles:
    """Return the roles of several columns that the user named: their classes are known, or are in their names."""
    classes = facts.class_names
    if classes is not None:
        named = list[tuple[str, ...]]()
        if facts.called or not facts.options.classes:
            named = _by_known_class(facts, classes, names)
        if not named and len(classes) != len(names):
            raise facts.error(
                Rule(
                    "column_for_each_score",
                    classes=classes,
                    columns=len(names),
                    number=len(classes),
                )
            )
        # Without names, the order is that of the classes.
        columns = named[0] if named else names
        return Roles("columns", columns, tuple(classes))
    for family, numbers in numbered_families(names):
        if len(family) == len(names):
            return Roles("columns", family, numbers, is_numbered=True)
    return Roles("columns", names, _class_names(names, label_words(facts, labels.column)))


def label_words(facts: Facts, label: str | None) -> set[str]:
    """Return the distinct labels in the first rows or, for logits, in all rows. Numbers give an empty set."""
    if label is None or facts.kind(label) != "text":
        return set()
    return facts.labels(label, in_all=facts.options.from_logits)


def is_in_unit(facts: Facts, name: str) -> bool:
    """Return whether the numbers of a column in the first rows are from 0 to 1."""
    numbers = facts.matrix([name])
    return bool(numbers.size) and numbers.min() >= 0 and numbers.max() <= 1


def _column_sets(
    facts: Facts, labels: LabelColumns, names: Sequence[str]
) -> Iterator[Roles]:
    """Yield each set of columns that names, or a common range of values, mark as the scores of the classes."""
    names = [
        name
        for name in names
        if NO_SCORES.isdisjoint(split_words(name)) and not name.startswith(ROW_NAMES)
    ]
    # The scores of a class may be missing in the first rows.
    known = facts.by_kind(names, "number", "whole", "empty")
    numeric = facts.by_kind(names, "number", "whole")
    fractions = facts.by_kind(names, "number")
    families = list(numbered_families(known))
    is_list = bool(facts.by_kind(labels.truth.values(), "list"))
    classes = tuple(facts.class_names or ())
    if not classes and not is_list:
        classes = tuple(labels.truth)
    if classes:
        named = _by_known_class(facts, classes, known)
        if named:
            yield from (Roles("columns", columns, classes) for columns in named)
            return
        # Without the names of classes, as many columns in their order may have the scores.
        groups = [family for family, _ in families]
        if not facts.table.has_names:
            groups = [tuple(numeric), tuple(fractions)]
        for group in groups:
            if len(group) == len(classes):
                yield Roles("columns", group, classes, is_numbered=True)
    elif labels.truth and numeric:
        yield Roles("columns", tuple(numeric), tuple(numeric))
    elif not labels.truth:
        yield from (Roles("columns", *family, is_numbered=True) for family in families)
        yield from _sets_by_names(
            facts, labels, numeric, [columns for columns, _ in families]
        )


def _sets_by_names(
    facts: Facts,
    labels: LabelColumns,
    numeric: Sequence[str],
    families: Sequence[Sequence[str]],
) -> Iterator[Roles]:
    """Yield the columns named after the labels; all columns of a kind; and those whose names share a word."""
    words = label_words(facts, labels.column)
    in_order = sorted(words)
    if len(words) > 1:
        for columns in by_class(numeric, in_order):
            class_of = dict(zip(columns, in_order, strict=True))
            scores = tuple(name for name in numeric if name in class_of)
            yield Roles("columns", scores, tuple(class_of[name] for name in scores))
    in_unit = [name for name in facts.by_kind(numeric, "number") if is_in_unit(facts, name)]
    known = {frozenset(columns) for columns in families}
    for group in [numeric, in_unit, *_with_common_word(numeric), *_runs(facts, numeric)]:
        if len(group) < 2:
            continue
        called = _class_names(group, words)
        # A family such as grade0, grade1 has numbered classes, unless the labels are these names.
        if frozenset(group) not in known or (words and words <= {*called}):
            yield Roles("columns", tuple(group), called)


def _runs(facts: Facts, names: Sequence[str]) -> Iterator[list[str]]:
    """Yield neighbouring columns among ``names`` whose scores sum to 1 or 100 in each row; the longest from each."""
    names = names[:MAX_NEIGHBOURS]
    matrix = facts.matrix(names) if names else np.empty((0, 0))
    if not len(matrix):
        return
    before = np.cumsum(np.pad(matrix, ((0, 0), (1, 0))), axis=1)
    for start in range(len(names) - 1):
        for end in range(len(names), start + 1, -1):
            sums = before[:, end] - before[:, start]
            scores = matrix[:, start:end]
            may_be_scores = scores.min() >= 0 and (scores % 1 != 0).any()
            if may_be_scores and nominal_sum(sums, end - start) is not None:
                yield [*names[start:end]]
                break


def _by_known_class(
    facts: Facts, classes: Sequence[str], names: Sequence[str]
) -> list[tuple[str, ...]]:
    """Return sets of columns that are named after the known ``classes``, or after the file's names for these."""
    return list(by_class(names, classes)) or list(by_class(names, facts.called))


def _with_common_word(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield each group of columns whose names begin with the same word, or end with the same word such as ``prob``."""
    beginning = defaultdict[str, list[str]](list)
    ending = defaultdict[str, list[str]](list)
    for name in names:
        words = SEPARATOR.split(name)
        first = words[0]  # any word: rf_a and rf_b, beside svm_a and svm_b
        prefix = PREFIX.match(first)  # of Predictioncat and Predictiondog
        beginning[prefix[0] if prefix else first].append(name)
        if plain(words[-1]) in SCORES:
            ending[words[-1]].append(name)
    yield from beginning.values()
    yield from ending.values()


def _common_words(roles: Roles) -> set[str]:
    """Return the words, such as ``prob``, that the names of all score columns have."""
    of_names = [{plain(part) for part in SEPARATOR.split(name)} for name in roles.scores]
    return set.intersection(*of_names)


def _class_names(names: Sequence[str], labels: set[str]) -> tuple[str, ...]:
    """Return the class of each column in ``names``: its name without a shared first or last word such as ``prob``."""
    if labels and labels <= {*names}:
        return tuple(names)
    in_order = sorted(labels)
    named = [place for name in names for place in named_class(name, in_order)]
    if sorted(named) == [*range(len(names))] and len(names) == len(labels):
        return tuple(in_order[place] for place in named)
    for place in (0, -1):
        words = {SEPARATOR.split(name)[place] for name in names}
        if len(words) > 1:
            continue
        [word] = words
        size = len(word) + 1  # with the separator
        short = [name[:-size] for name in names]
        if place == 0:
            short = [name[size:] for name in names]
        are_labels = bool(labels) and labels <= {*short}
        if all(short) and (are_labels or plain(word) in SCORES):
            return tuple(short)
    start = shared_start(names)  # of Predictioncat and Predictiondog
    rest = tuple(name[start:] for name in names)
    return rest if labels and labels <= {*rest} else tuple(names)


def _sum_problem(facts: Facts, roles: Roles) -> Rule | None:
    """Return the problem that scores of the first rows do not sum to about 1 or 100; None for logits."""
    if facts.options.from_logits:
        return None
    matrix = facts.matrix(roles.scores)
    sums = matrix.sum(axis=1)
    if matrix.size and matrix.min() >= 0 and nominal_sum(sums, matrix.shape[1]) is not None:
        return None
    low = np.nan
    high = np.nan
    if len(sums):
        low = float(f"{sums.min():.3g}")
        high = float(f"{sums.max():.3g}")
    return Rule("sums", columns=roles.scores, low=low, high=high)


def _largest(sets: Sequence[Roles]) -> list[Roles]:
    """Return the sets whose columns are no proper subset of the columns of another set."""
    sets_with = defaultdict[str, list[set[str]]](list)
    for roles in sets:
        columns = {*roles.scores}
        for name in columns:
            sets_with[name].append(columns)
    largest = []
    for roles in sets:
        # Only sets that have its first column can have all of them.
        others = sets_with[roles.scores[0]]
        if not any({*roles.scores} < columns for columns in others):
            largest.append(roles)
    return largest


def _name_the_best(facts: Facts, roles: Roles) -> bool:
    """Return whether other columns have the numbers of the scores, such as top1 and top2 beside score1 and score2."""
    for _, numbers in numbered_families(roles.scores):
        for family in facts.numbered.get(numbers, []):
            if {*family}.isdisjoint(roles.scores):
                return True
    return False


def _order_problem(facts: Facts, roles: Roles) -> Rule | None:
    """Return the problem that scores seem to be those of the best classes of each row, not those of fixed classes."""
    matrix = facts.matrix(roles.scores)
    if not len(matrix) or (np.diff(matrix, axis=1) > 0).any():
        return None
    if roles.form == "lists":
        is_sure = len(matrix) >= MIN_FALLING and matrix.shape[1] > 2
        falls_in_each = is_sure and (matrix[:, 0] > matrix[:, -1]).all()
        is_best = falls_in_each and not facts.table.counts_from_0
    else:  # the scores are score1 and score2, and top1 and top2 name the classes
        is_best = roles.is_numbered and _name_the_best(facts, roles)
    return Rule("falling", columns=roles.scores) if is_best else None
