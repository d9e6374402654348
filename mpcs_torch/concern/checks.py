"""Check the arguments of a `ConcernSpec`, and list all problems with their places."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeGuard

import numpy as np

from mpcs_torch.error_sentences import CONCERN_PROBLEMS, MAX_CONCESSION, MIN_CONCESSION
from mpcs_torch.errors import MpcsError, did_you_mean, has_control, quoted, shown

OR = " or "
"""The separator of class names in a coarse answer (a decision for a set of classes), such as "red or yellow"."""
REFERRAL = "refer"
"""The name of the decision to refer a sample to a person."""
Pairs = Sequence[Sequence[str | int]]
"""Lists ``[true, predicted, ...]`` of class names or indices."""
MAX_READABLE_CLASSES = 30
"""The maximum number of classes for which matrices and tables are shown."""
MAX_CLASSES = 10_000_000
"""The maximum number of classes; a larger number is probably a mistake."""
MAX_MATRIX_CLASSES = 10_000
"""The maximum number of classes of a matrix of all class pairs; a larger matrix takes more than a gigabyte."""
MAX_NAME = 200
"""The maximum number of characters of a class name."""
RESERVED = ("samples", "decided")
"""The names that no group of classes may have, because limits on errors use these words for sets of samples."""
MAX_COMPARED = 1000
"""The maximum number of classes with which a misspelled name is compared."""
MAX_PROBLEMS = 20
"""The maximum number of problems in a message."""


class Problem(NamedTuple):
    """An error in the description of a `ConcernSpec`: a message, and the location of the error."""

    path: tuple[str | int, ...]
    """The field name, then keys and list indices; empty if the problem concerns the whole spec."""
    message: str
    place: str = ""
    """The file, line and column of the problem, if the spec is from a file."""

    def __str__(self) -> str:
        steps = [f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path]
        path = "".join(steps).removeprefix(".")
        return ": ".join(part for part in (self.place, path, self.message) if part)


class ConcernError(MpcsError, ValueError):
    """An invalid `ConcernSpec`; ``problems`` lists all errors in it, and the message shows the first 20."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        lines = [str(problem) for problem in problems[:MAX_PROBLEMS]]
        if len(problems) > MAX_PROBLEMS:
            lines.append("... and more")
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Problem, ...]]]:
        # The default would pickle the text instead of the problems.
        arguments = (self.problems,)
        return type(self), arguments


def _suggestion(given: object, names: Sequence[str]) -> str:
    """Return the end of a message that suggests the class that ``given`` may mean; empty if none is similar."""
    meant = did_you_mean(given, names[:MAX_COMPARED])
    return f": {meant}" if meant else ""


def class_names(classes: Sequence[str] | int) -> tuple[str, ...]:
    """Return ``classes`` as a tuple; if ``classes`` is a number C, return the names "0" to "C - 1"."""
    if isinstance(classes, int):
        return tuple(map(str, range(classes)))
    return tuple(classes)


def class_indices(
    pairs: Sequence[Sequence[str | int]], names: Sequence[str]
) -> tuple[tuple[int, ...], ...]:
    """Convert lists of class names or class indices to tuples of class indices; ``names`` are in index order."""
    places = {name: i for i, name in enumerate(names)}
    indices = list[tuple[int, ...]]()
    for entries in pairs:
        of_list = [places[entry] if isinstance(entry, str) else entry for entry in entries]
        indices.append(tuple(of_list))
    return tuple(indices)


def without_arrays(value: Any) -> Any:
    """Convert arrays and tensors in ``value``, also in its lists and mappings, to Python lists and numbers.

    Pandas objects stay unchanged and are refused later, because their labels may not be in class order.
    """
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "detach"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {without_arrays(key): without_arrays(item) for key, item in value.items()}
    # Not of subclasses, such as a NamedTuple, whose constructor takes other arguments.
    if type(value) in (list, tuple):
        return type(value)(map(without_arrays, value))
    return value


def problem(code: str, *path: str | int, value: object = None, **fields: object) -> Problem:
    """Return the problem at ``path`` whose sentence has the key ``code`` in `error_sentences.CONCERN_PROBLEMS`.

    The sentence quotes ``value``; the other fields are filled in as they are.
    """
    return Problem(path, CONCERN_PROBLEMS[code].format(value=quoted(value), **fields))


def find_problems(
    classes: Any,
    releases: Any,
    factor: Any,
    weights: Any,
    dangerous: Any,
    refer: Any,
    concession: Any,
    answers: Any,
    class_groups: Any,
) -> Iterator[Problem]:
    """Yield every problem of the arguments of `ConcernSpec`, which are unchecked."""
    class_problems = list(_class_problems(classes))
    yield from class_problems
    names = None if class_problems else class_names(classes)
    yield from _pair_problems("releases", releases, names)
    if not is_number(factor) or not 0 < factor <= 1:
        yield problem("factor", "factor", value=factor)
    if weights is not None:
        if releases:
            yield problem("weights_or_releases", "weights")
        yield from _weight_problems(weights, names)
    if dangerous is not None:
        if releases:
            yield problem("dangerous_or_releases", "dangerous")
        yield from _dangerous_problems(dangerous, weights, names)
    if refer is not None:
        yield from _refer_problems(refer, names)
    if answers:
        yield from _answer_problems(answers, refer, names)
    if class_groups:
        yield from _group_problems(class_groups, answers, names)
    if concession is not None:
        is_in_range = is_number(concession) and concession >= MIN_CONCESSION
        if not is_in_range or concession >= MAX_CONCESSION:
            yield problem("concession", "concession", value=concession)


def _class_problems(classes: object) -> Iterator[Problem]:
    if _is_whole(classes):
        if not 2 <= classes <= MAX_CLASSES:
            yield problem(
                "number_of_classes", "classes", value=classes, maximum=MAX_CLASSES
            )
        return
    if not _is_list(classes):
        yield problem("list_of_classes", "classes", value=classes)
        return
    before = set()
    for i, name in enumerate(classes):
        if not isinstance(name, str):
            yield problem("quoted_name", "classes", i, value=name)
        elif len(name) > MAX_NAME:
            lengths = {"maximum": MAX_NAME, "length": len(name)}
            yield problem("short_name", "classes", i, **lengths)
        elif has_control(name):
            yield problem("no_control_characters", "classes", i, value=name)
        elif name in before:
            yield problem("new_name", "classes", i, value=name)
        else:
            before.add(name)
    if len(classes) < 2:
        yield problem("two_classes", "classes", value=len(classes))


def _pair_problems(
    field: str, pairs: object, names: tuple[str, ...] | None
) -> Iterator[Problem]:
    if not _is_list(pairs):
        yield problem("list_of_pairs", field, value=pairs)
        return
    known = frozenset(names or ())
    for i, entries in enumerate(pairs):
        if not _is_list(entries) or len(entries) < 2:
            yield problem("pair", field, i, value=entries)
        elif names is not None:
            unknown = list(_unknown_classes(entries, names, known, field, i))
            yield from unknown
            if unknown:
                continue
            named = [names[entry] if isinstance(entry, int) else entry for entry in entries]
            true, *predicted = named
            if true in predicted:
                place = predicted.index(true) + 1
                yield problem("other_class", field, i, place, value=true)


def _unknown_classes(
    entries: Sequence[object],
    names: tuple[str, ...],
    known: frozenset[str],
    *path: str | int,
) -> Iterator[Problem]:
    """Yield a problem for each of ``entries``, which stand at ``path``, that is no name or index of a class.

    ``known`` are the ``names`` as a set, made once for all entries: there may be many classes.
    """
    for place, entry in enumerate(entries):
        if isinstance(entry, str):
            if entry not in known:
                more = ", ..." if len(names) > 100 else ""
                listed = shown(", ".join(names[:100]) + more)
                fields = {"classes": listed, "suggestion": _suggestion(entry, names)}
                yield problem("known_class", *path, place, value=entry, **fields)
            continue
        if not _is_whole(entry) or not 0 <= entry < len(names):
            yield problem("name_or_index", *path, place, value=entry, last=len(names) - 1)


def _weight_problems(weights: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if not _is_list(weights):
        yield problem("matrix", "weights", value=weights)
        return
    size = len(weights) if names is None else len(names)
    if len(weights) != size:
        yield problem("row_per_class", "weights", value=len(weights), size=size)
    off_diagonal = []
    for i, row in enumerate(weights):
        if not _is_list(row) or len(row) != size:
            yield problem("row_of_numbers", "weights", i, value=row, size=size)
            continue
        for j, weight in enumerate(row):
            if i != j:
                off_diagonal.append(weight)
            if not is_number(weight) or (i != j and weight < 0):
                yield problem("weight", "weights", i, j, value=weight)
    if off_diagonal and all(weight == 0 for weight in off_diagonal):
        yield problem("some_weight", "weights")
    yield from _diagonal_problems(weights)


def _diagonal_problems(weights: Sequence[Any]) -> Iterator[Problem]:
    """Yield a problem if the diagonal, which is not read, has several numbers: a row may be shifted by a place."""
    diagonal = [row[i] for i, row in enumerate(weights) if _is_list(row) and i < len(row)]
    numbers = [number for number in diagonal if is_number(number)]
    # A row or a number is invalid, which has its own problem.
    if len(numbers) < len(weights):
        return
    for i, number in enumerate(numbers):
        if number != numbers[0]:
            yield problem("one_diagonal", "weights", i, i, value=number, first=numbers[0])
            return


def _dangerous_problems(
    dangerous: Any, weights: object, names: tuple[str, ...] | None
) -> Iterator[Problem]:
    if isinstance(dangerous, int | float):
        others = [weight for _, _, weight in _off_diagonal(weights)]
        highest = max(others, default=dangerous)
        if not is_number(dangerous) or dangerous <= 0:
            yield problem("weight_or_pairs", "dangerous", value=dangerous)
        elif weights is None:
            yield problem("pairs_without_weights", "dangerous", value=dangerous)
        elif highest < dangerous:
            yield problem("not_above_all", "dangerous", value=dangerous, highest=highest)
        return
    pair_problems = list(_pair_problems("dangerous", dangerous, names))
    yield from pair_problems
    if pair_problems:
        return
    if not dangerous:
        yield problem("some_pair", "dangerous")
    if names is not None:
        free = {(i, j) for i, j, weight in _off_diagonal(weights) if weight == 0}
        for i, (true, *predicted) in enumerate(class_indices(dangerous, names)):
            for j, other in enumerate(predicted, start=1):
                if (true, other) in free:
                    yield problem("avoided_error", "dangerous", i, j)


def _off_diagonal(weights: object) -> Iterator[tuple[int, int, float]]:
    """Yield the row, column and value of each off-diagonal number in ``weights``; skip what is not a number."""
    if not _is_list(weights):
        return
    for i, row in enumerate(weights):
        if not _is_list(row):
            continue
        for j, weight in enumerate(row):
            if i != j and is_number(weight):
                yield i, j, weight


def _refer_problems(refer: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if not _is_list(refer):
        if not _is_cost(refer):
            yield problem("cost_or_costs", "refer", value=refer)
        return
    if names is not None and len(refer) != len(names):
        yield problem("cost_per_class", "refer", value=len(refer), size=len(names))
    for i, cost in enumerate(refer):
        if not _is_cost(cost):
            yield problem("cost", "refer", i, value=cost)


def _answer_problems(
    answers: object, refer: object, names: tuple[str, ...] | None
) -> Iterator[Problem]:
    if not isinstance(answers, Mapping):
        yield problem("mapping_of_answers", "answers", value=answers)
        return
    if refer is None:
        yield problem("answers_with_refer", "answers")
    known = names or ()  # empty if the classes are invalid: then any name may be one
    ambiguous = [name for name in known if OR in name]
    if ambiguous:
        yield problem("ambiguous_name", "answers", value=ambiguous[0])
    before = set[frozenset[str]]()
    for answer, cost in answers.items():
        members = str(answer).split(OR)
        unknown = [member for member in members if known and member not in known]
        is_repeated = len(set(members)) < len(members)
        if is_repeated or len(members) < 2:
            yield problem("separated_classes", "answers", value=answer)
        elif unknown and not ambiguous:
            suggestion = _suggestion(unknown[0], known)
            fields = {"unknown": quoted(unknown[0]), "suggestion": suggestion}
            yield problem("classes_of_answer", "answers", value=answer, **fields)
        elif len(members) == len(known):
            yield problem("not_all_classes", "answers", value=answer)
        if frozenset(members) in before:
            yield problem("other_answer", "answers", value=answer)
        before.add(frozenset(members))
        if not _is_cost(cost):
            yield problem("cost_of_answer", "answers", value=answer, cost=quoted(cost))


def _group_problems(
    groups: object, answers: Any, names: tuple[str, ...] | None
) -> Iterator[Problem]:
    if not isinstance(groups, Mapping):
        yield problem("mapping_of_groups", "class_groups", value=groups)
        return
    known = frozenset(names or ())
    taken = known.union(RESERVED, dict(answers or ()))
    for group, members in groups.items():
        is_text = isinstance(group, str) and 0 < len(group) <= MAX_NAME
        if not is_text or has_control(group) or "]" in group:
            yield problem("group_name", "class_groups", value=group, maximum=MAX_NAME)
        elif group in taken:
            reserved = " and ".join(RESERVED)
            yield problem(
                "new_group", "class_groups", group, value=group, reserved=reserved
            )
        if not _is_list(members) or not members:
            yield problem("members", "class_groups", str(group), value=members)
        elif names is not None:
            path = ("class_groups", group)
            unknown = list(_unknown_classes(members, names, known, *path))
            yield from unknown
            if unknown:
                continue
            indices = class_indices([members], names)[0]
            if len(set(indices)) == len(names):
                yield problem("some_class_left", "class_groups", group)


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_cost(value: object) -> bool:
    return is_number(value) and value >= 0


def is_number(value: object) -> TypeGuard[float]:
    """Return whether ``value`` is a finite int or float, but not a bool."""
    if not isinstance(value, float) and not _is_whole(value):
        return False
    # NaN is not below any number, and an int may be too large for a float.
    return abs(value) <= sys.float_info.max


def _is_whole(value: object) -> TypeGuard[int]:
    """Return whether ``value`` is an int; True and False, which Python counts as such, are none."""
    return isinstance(value, int) and not isinstance(value, bool)
