"""The columns of scores, or of predicted labels, by their names, and by what their rows sum to."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from mpcs_torch.concern.rules import MAX_CLASSES
from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.files.chunks import PredictionsError
from mpcs_torch.evaluation.files.roles import (
    NUMBERED,
    SEPARATOR,
    OpenColumns,
    Roles,
    numbered_families,
    span,
)
from mpcs_torch.evaluation.files.single_columns import (
    DECISION,
    WRITTEN,
    first_list,
    refuse_predicted,
    refuse_scores_of,
    roles_of_decisions,
    roles_of_lists,
    roles_of_positive,
)
from mpcs_torch.evaluation.files.tables import distinct_texts, listed, number_of, text_of
from mpcs_torch.evaluation.files.words import (
    NO_PROBABILITY,
    POSITIVE,
    TRUTH,
    is_index,
    named_as,
    plain,
    words_of,
)

SCORES = POSITIVE | {"softmax", "conf", "confidence"} - {"distance", "similarity", "cosine"}
"""Words before or after the names of classes."""
WHOLES = (1.0, 100.0)
"""The sums of probabilities and of percentages."""


class Reading(NamedTuple):
    """Columns that may be the scores of classes."""

    columns: tuple[str, ...]
    classes: tuple[str, ...]
    is_numbered: bool = False


def scores_of(columns: OpenColumns, label: str | None, truth: Mapping[str, str], decisions: Sequence[str]) -> Roles:
    """Return the scores, or the decisions, with their classes."""
    options, table = columns.options, columns.table
    is_written = decisions == [DECISION] and {*WRITTEN} <= {*table.names} and not options.score_columns
    if options.decision_column is not None or is_written:
        return roles_of_decisions(columns, label, decisions[0])
    columns.take(decisions)
    columns.take([] if label is None else [name for name in columns.of_kind("whole") if _is_of_truth(name)])
    columns.take(columns.of_kind("text", "whole", "empty", among=[name for name in columns.open if is_index(name)]))
    if options.score_columns:
        return _chosen(columns, label)
    lists = [name for name in columns.of_kind("list") if truth or len(first_list(columns, name)) > 1]
    readings = list(_readings(columns, label, truth))
    passing = [reading for reading in readings if truth or _fits(columns, reading)]
    if decisions:  # beside them, zeros and ones are features, or one-hot labels
        passing = [one for one in passing if columns.of_kind("number", among=one.columns)]
    words = columns.texts(label) if label is not None and columns.kinds[label] == "text" else set()
    passing = [reading for reading in passing if words <= {*reading.classes}] or passing
    numbered = [reading for reading in passing if reading.is_numbered]
    if not options.from_logits:  # classes of zeros alone change no sum; logits have no sum to tell classes by
        passing = [one for one in passing if not any({*one.columns} < {*two.columns} for two in passing)]
    passing = numbered or passing
    passing = [one for place, one in enumerate(passing) if not _is_among(one, passing[:place])]
    if len(passing) + len(lists) > 1:
        _refuse_both(columns, [*(reading.columns for reading in passing), *((name,) for name in lists)])
    if passing:
        [reading] = passing
        _refuse_best(columns, reading)
        return Roles("columns", reading.columns, reading.classes)
    if lists:
        return roles_of_lists(columns, lists[0], label)
    bad, others = _bad_number(columns), columns.of_kind("number", "whole", "empty")
    known = [name for name in others if not {*words_of(name)} & NO_PROBABILITY]
    positive = columns.of_kind("number", "whole", among=named_as(known, POSITIVE))
    if not positive and len(others) == 1 and not bad:
        positive = [name for name in columns.of_kind("number", among=known) if {*words_of(name)} & POSITIVE]
    is_binary = len(columns.class_names or ()) == 2 if label is None else len(columns.texts(label)) <= 2
    if is_binary and not decisions and positive:
        if len(positive) > 1:
            _refuse_both(columns, [(name,) for name in positive])
        refuse_predicted(columns, positive[0], label)
        return roles_of_positive(columns, positive[0], label)
    if decisions and (label is not None or not readings):
        if len(decisions) > 1:
            one, two, *_ = decisions
            raise PredictionsError(
                table.path,
                f"has several columns of predicted labels, {listed(decisions)}: choose by --decision-column {one} or "
                f"--decision-column {two}",
            )
        refuse_scores_of(columns, words | columns.texts(decisions[0]), decisions[0])
        return roles_of_decisions(columns, label, decisions[0])
    if readings:
        return _only(columns, readings)
    raise PredictionsError(
        table.path,
        f"has no columns of scores or predicted labels that are known by their names; it has {listed(table.names)}: "
        f"name them by --score-columns or --decision-column{_difference(columns)}{bad}",
    )


def _fits(columns: OpenColumns, reading: Reading) -> bool:
    """Return whether the first rows are logits, or sum to 1 or 100."""
    matrix = columns.matrix(reading.columns)
    if columns.options.from_logits:
        return True
    if not len(matrix) or matrix.min() < 0:
        return False
    room = min(0.005 * matrix.shape[1], 0.25) + 1e-3
    sums = matrix.sum(axis=1)
    return any(bool((abs(sums - whole) <= room * (whole if whole == 1 else 20)).all()) for whole in WHOLES)


def _is_among(reading: Reading, others: Sequence[Reading]) -> bool:
    """Return whether others have the same columns, in some order."""
    return any({*reading.columns} == {*other.columns} for other in others)


def _is_of_truth(name: str) -> bool:
    """Return whether a name is that of the degree of truth of a class, such as target_a."""
    parts = SEPARATOR.split(name, maxsplit=1)
    return len(parts) == 2 and plain(parts[0]) in TRUTH


def _refuse_best(columns: OpenColumns, reading: Reading) -> None:
    """Refuse the scores of the best classes of each row, which other columns name: their number is a rank."""
    places = [NUMBERED.fullmatch(name) for name in reading.columns]
    numbers = {place[2] for place in places if place}
    families = defaultdict[tuple[str, str], set[str]](set)
    for name in columns.table.names:
        if (
            (match := NUMBERED.fullmatch(name))
            and name not in reading.columns
            and columns.kinds[name] in ("whole", "text")
        ):
            families[match[1], match[3]].add(match[2])
    matrix = columns.matrix(reading.columns)
    other = next((before for (before, _), given in families.items() if given == numbers), None)
    if reading.is_numbered and other is not None and len(matrix) and bool((np.diff(matrix, axis=1) <= 0).all()):
        raise columns.error(
            f"has falling scores {span(reading.columns)} beside {other}1, ...: of the best classes of each row? "
            "A column for each class is needed; --decision-column measures the best one",
        )


def _only(columns: OpenColumns, readings: Sequence[Reading]) -> Roles:
    """Return the only reading, though its first rows do not sum to 1, which its rows then say."""
    names = columns.class_names
    if names is not None or len({reading.columns for reading in readings}) == 1:
        return Roles("columns", readings[0].columns, readings[0].classes)
    whole = next((one for one in readings if not columns.of_kind("whole", among=one.columns)), None)
    numbered = next((one for one in readings if one.is_numbered), whole)
    one = numbered or min(readings, key=lambda reading: len(reading.columns))
    other = [
        name for name in max(readings, key=lambda reading: len(reading.columns)).columns if name not in one.columns
    ]
    sums = columns.matrix(one.columns).sum(axis=1)
    raise columns.error(
        f"has columns of numbers {span(one.columns)}, of which the first row sums to {sums[0] if len(sums) else 0:g}, "
        f"and {listed(other)}: which are scores of classes? --score-columns {','.join(one.columns[:3])},... names them "
        "(for logits pass --logits, too)",
    )


def _readings(columns: OpenColumns, label: str | None, truth: Mapping[str, str]) -> Iterator[Reading]:
    """Yield the columns that may be the scores of classes."""
    filled = columns.of_kind("number", "whole", "empty")  # a class may have no scores yet
    known = [name for name in filled if not {*words_of(name)} & {"distance", "dist", "loss"}]
    numeric, classes = columns.of_kind("number", "whole", among=known), columns.class_names
    if classes is not None:
        named = list(by_class(known, classes))
        fitting = [] if named else [each for each, _ in numbered_families(known) if len(each) == len(classes)]
        yield from named or [Reading(each, tuple(classes), is_numbered=True) for each in fitting]
        return
    if truth:
        of_truth = list(truth) if len(truth) > 1 or columns.kinds[next(iter(truth.values()))] != "list" else []
        numbered = [
            Reading(each, tuple(map(str, n))) for each, n in numbered_families(numeric) if {*map(str, n)} == {*of_truth}
        ]
        found = (list(by_class(numeric, of_truth)) or numbered) if of_truth else []
        yield from found or ([Reading(tuple(numeric), tuple(numeric))] if numeric else [])
        return
    families = list(numbered_families(known))
    for family, numbers in families:
        yield Reading(family, tuple(map(str, numbers)), is_numbered=True)
    words = _words_of(columns, label)
    for reading in by_class(numeric, words) if len(words) > 1 else ():
        class_of = dict(zip(reading.columns, words, strict=True))
        in_order = tuple(name for name in numeric if name in class_of)
        yield Reading(in_order, tuple(class_of[name] for name in in_order))
    in_unit = [name for name in numeric if _in_unit(columns, name)]
    fractions = columns.of_kind("number", among=numeric)
    groups = [numeric, in_unit, fractions, *_with_common_word(numeric)]
    for group in groups:
        if len(group) > 1 and tuple(sorted(group)) not in {tuple(sorted(family)) for family, _ in families}:
            yield Reading(tuple(group), _classes_of(group, {*words}))


def by_class(names: Sequence[str], classes: Sequence[str]) -> Iterator[Reading]:
    """Yield the columns that are named after all classes, with one text before and one after them, in any case.

    Columns with just the names go before others.
    """
    if not classes:
        return
    differs = all(len({name.lower() for name in some}) == len(some) for some in (names, classes))
    lower = {(name.lower() if differs else name): name for name in names}
    classes_in_case = [name.lower() if differs else name for name in classes]
    first = classes_in_case[0]
    around = {(name[:at], name[at + len(first) :]) for name in lower for at in _places(name, first)}
    ways = []
    for before, after in sorted(around, key=lambda pair: len(pair[0]) + len(pair[1])):
        wanted = [f"{before}{name}{after}" for name in classes_in_case]
        if all(name in lower for name in wanted):
            ways.append(Reading(tuple(lower[name] for name in wanted), tuple(classes)))
            if not before and not after:
                break
    yield from ways


def _words_of(columns: OpenColumns, label: str | None) -> list[str]:
    """Return the labels that are names: of the first rows, or of all rows of logits, which have no sum to tell by."""
    if label is None or columns.kinds[label] != "text":
        return []
    return sorted(
        distinct_texts(columns.table, [label], MAX_CLASSES) if columns.options.from_logits else columns.texts(label)
    )


def _places(text: str, part: str) -> Iterator[int]:
    at = text.find(part)
    while part and at >= 0:
        if (not at or SEPARATOR.match(text[at - 1]) or text[at - 1] == "(") and (
            at + len(part) == len(text) or SEPARATOR.match(text[at + len(part)]) or text[at + len(part)] == ")"
        ):
            yield at
        at = text.find(part, at + 1)


def _with_common_word(names: Sequence[str]) -> Iterator[list[str]]:
    """Yield the columns that begin, or end, with the same word for scores."""
    for place in (0, -1):
        groups = defaultdict[str, list[str]](list)
        for name in names:
            parts = SEPARATOR.split(name)
            if len(parts) > 1 and plain(parts[place]) in SCORES:
                groups[parts[place]].append(name)
        yield from groups.values()


def _in_unit(columns: OpenColumns, name: str) -> bool:
    matrix = columns.matrix([name])
    return bool(len(matrix)) and bool(matrix.min() >= 0) and bool(matrix.max() <= 1)


def _classes_of(names: Sequence[str], labels: set[str]) -> tuple[str, ...]:
    """Return the names of classes: those of the columns, without a word for scores that all have, or as labels are."""
    if labels and labels <= {*names}:
        return tuple(names)
    for place, cut in ((0, lambda name: SEPARATOR.split(name, maxsplit=1)[-1]), (-1, _without_last)):
        words = {SEPARATOR.split(name)[place] for name in names}
        short = [cut(name) for name in names]
        is_shorter = len(words) == 1 and len({*short}) == len(names) and all(short) and short != [*names]
        is_score = plain(next(iter(words))) in SCORES
        if is_shorter and (is_score or (labels and labels <= {*short})):
            return tuple(short)
    return tuple(names)


def _without_last(name: str) -> str:
    ends = [match.start() for match in SEPARATOR.finditer(name)]
    return name[: ends[-1]] if ends else name


def _chosen(columns: OpenColumns, label: str | None) -> Roles:
    """Return the columns that ``--score-columns`` names."""
    table, options, names = columns.table, columns.options, list[str]()
    for pattern in options.score_columns:
        matched = [name for name in columns.open if fnmatchcase(name, pattern)] if "*" in pattern else [pattern]
        if not matched:
            raise PredictionsError(
                table.path, f"has no column {quoted(pattern)} of --score-columns; it has {listed(table.names)}"
            )
        names += [name for name in matched if name not in names]
    table.check_columns(names, "--score-columns")
    bad = next((name for name in names if columns.kinds[name] == "text"), None)
    if bad is not None:
        value = next(value for value in columns.values[bad] if text_of(value) and number_of(value) is None)
        raise PredictionsError(table.path, f"must be numbers, but has {quoted(value)}", column=bad)
    if len(names) == 1 and columns.kinds[names[0]] == "list":
        return roles_of_lists(columns, names[0], label)
    if len(names) == 1:
        return roles_of_positive(columns, names[0], label)
    classes = columns.class_names
    if classes is not None:
        by_name = next(by_class(names, classes), None) if not options.classes else None
        if by_name is None and len(classes) != len(names):
            raise PredictionsError(
                table.path,
                f"has {len(names)} columns of scores, but there are {len(classes)} classes: {listed(classes)}",
            )
        return Roles("columns", by_name.columns if by_name else names, tuple(classes))
    family = next((family for family in numbered_families(names) if {*family[0]} == {*names}), None)
    if family is not None:
        return Roles("columns", family[0], tuple(map(str, family[1])))
    words = columns.texts(label) if label is not None and columns.kinds[label] == "text" else set()
    return Roles("columns", names, _classes_of(names, words))


def _refuse_both(columns: OpenColumns, ways: Sequence[Sequence[str]]) -> None:
    one, two = (",".join(names) if len(names) <= 4 else f"{names[0]},...,{names[-1]}" for names in ways[:2])
    raise columns.error(
        f"can be read in two ways: the scores are {span(ways[0])}, or {span(ways[1])}: choose by --score-columns "
        f"{one} or --score-columns {two}",
    )


def _bad_number(columns: OpenColumns) -> str:
    """Return where a text is among decimal numbers."""
    for name in columns.of_kind("text"):
        numbers = [number_of(value) for value in columns.values[name]]
        if any(number is not None and number % 1 for number in numbers):
            row = next(
                row for row, number in enumerate(numbers) if number is None and text_of(columns.values[name][row])
            )
            return f"; row {row + 1} of {quoted(name)} is no number, but {quoted(columns.values[name][row])}"
    return ""


def _difference(columns: OpenColumns) -> str:
    """Return which classes have no column, and which columns are no class."""
    if columns.class_names is None:
        return ""
    missing = [name for name in columns.class_names if name not in columns.open]
    return f"; there is no column for {listed(missing, 5)}" if missing else ""
