"""Check the arguments of a `ConcernSpec`, and list all problems with their places."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Self, TypeGuard

import numpy as np

from mpcs_torch.errors import MpcsError, has_control, quoted, shown

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
MAX_PROBLEMS = 20
"""The maximum number of problems in a message."""


class Problem(NamedTuple):
    """An error in the description of a `ConcernSpec`: a message, and the location of the error."""

    path: tuple[str | int, ...]
    """The field name, then list indices; empty if the problem concerns the whole spec."""
    message: str
    place: str = ""
    """The file, line and column of the problem, if the spec is from a file."""

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else step for step in self.path)
        return ": ".join(
            part for part in (self.place, "".join(steps), self.message) if part
        )


class ConcernError(MpcsError, ValueError):
    """An invalid `ConcernSpec`; ``problems`` lists all errors in it, and the message shows the first 20."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        more = ["... and more"] if len(problems) > MAX_PROBLEMS else []
        super().__init__("\n".join([*map(str, problems[:MAX_PROBLEMS]), *more]))

    def __reduce__(self) -> tuple[type[Self], tuple[tuple[Problem, ...]]]:
        return type(self), (
            self.problems,
        )  # the default would pickle the text instead of the problems


def class_names(classes: Sequence[str] | int) -> tuple[str, ...]:
    """Return ``classes`` as a tuple; if ``classes`` is a number C, return the names "0" to "C - 1"."""
    return tuple(map(str, range(classes))) if isinstance(classes, int) else tuple(classes)


def decision_numbers(
    classes: Sequence[str], answers: Sequence[tuple[str, float]] = ()
) -> dict[str, int]:
    """Map names of decisions to numbers: ``classes`` from 0, then ``answers``; "refer" is -1 if it is not a class."""
    numbers = {
        name: number
        for number, name in enumerate([*classes, *(answer for answer, _ in answers)])
    }
    numbers.setdefault(REFERRAL, -1)
    return numbers


def class_indices(
    pairs: Sequence[Sequence[str | int]], names: Sequence[str]
) -> tuple[tuple[int, ...], ...]:
    """Convert lists of class names or class indices to tuples of class indices; ``names`` are in index order."""
    places = {name: i for i, name in enumerate(names)}
    return tuple(
        tuple(entry if isinstance(entry, int) else places[entry] for entry in entries)
        for entries in pairs
    )


def without_arrays(value: Any) -> Any:
    """Convert arrays and tensors in ``value``, also in its lists and mappings, to Python lists and numbers.

    Pandas objects stay unchanged and are refused later, because their labels may not be in class order.
    """
    if isinstance(value, np.ndarray | np.generic) or hasattr(value, "detach"):
        return value.tolist()
    if isinstance(value, Mapping):
        return {without_arrays(key): without_arrays(each) for key, each in value.items()}
    return (
        type(value)(map(without_arrays, value)) if type(value) in (list, tuple) else value
    )


def find_problems(arguments: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield every problem of ``arguments``, the unchecked keyword arguments of `ConcernSpec`."""
    classes, factor, concession = (
        arguments["classes"],
        arguments["factor"],
        arguments["concession"],
    )
    class_problems = list(_class_problems(classes))
    yield from class_problems
    names = None if class_problems else class_names(classes)
    yield from _pair_problems("releases", arguments["releases"], names)
    if not is_number(factor) or not 0 < factor <= 1:
        yield Problem(
            ("factor",), f"must be a number above 0 and at most 1, but got {quoted(factor)}"
        )
    if arguments["weights"] is not None:
        if arguments["releases"]:
            yield Problem(
                ("weights",), "cannot be combined with releases: give only one of them"
            )
        yield from _weight_problems(arguments["weights"], names)
    if arguments["dangerous"] is not None:
        yield from _dangerous_problems(arguments, names)
    if arguments["refer"] is not None:
        yield from _refer_problems(arguments["refer"], names)
    if arguments["answers"]:
        yield from _answer_problems(arguments["answers"], arguments["refer"], names)
    if arguments["class_groups"]:
        yield from _group_problems(arguments["class_groups"], arguments["answers"], names)
    if concession is not None and not (is_number(concession) and 2e-9 <= concession < 0.5):
        yield Problem(
            ("concession",),
            f"must be a number from 2e-9 to below 0.5, but got {quoted(concession)}",
        )


def _class_problems(classes: object) -> Iterator[Problem]:
    if isinstance(classes, int) and not isinstance(classes, bool):
        if not 2 <= classes <= MAX_CLASSES:
            yield Problem(
                ("classes",),
                f"must be at least 2 and at most {MAX_CLASSES}, but got {quoted(classes)}",
            )
        return
    if not _is_list(classes):
        yield Problem(
            ("classes",),
            f"must be a list of names or the number of classes, but got {quoted(classes)}",
        )
        return
    before = set()
    for i, name in enumerate(classes):
        if not isinstance(name, str):
            yield Problem(
                ("classes", i), f"must be a name in quotes, but got {quoted(name)}"
            )
        elif len(name) > MAX_NAME:
            yield Problem(
                ("classes", i),
                f"must have at most {MAX_NAME} characters, but has {len(name)}",
            )
        elif has_control(name):
            yield Problem(
                ("classes", i),
                f"must not contain control characters, but got {quoted(name)}",
            )
        elif name in before:
            yield Problem(
                ("classes", i),
                f"must differ from the other names, but {quoted(name)} appears twice",
            )
        else:
            before.add(name)
    if len(classes) < 2:
        yield Problem(("classes",), f"must name at least 2 classes, but got {len(classes)}")


def _pair_problems(
    field: str, pairs: object, names: tuple[str, ...] | None
) -> Iterator[Problem]:
    if not _is_list(pairs):
        yield Problem(
            (field,),
            f"must be a list of lists [true, predicted, ...], but got {quoted(pairs)}",
        )
        return
    known = frozenset(names or ())
    for i, entries in enumerate(pairs):
        if not _is_list(entries) or len(entries) < 2:
            yield Problem(
                (field, i),
                f"must be a list [true, predicted, ...], but got {quoted(entries)}",
            )
        elif names is not None:
            unknown = [_unknown_class(entry, names, known) for entry in entries]
            yield from (
                Problem((field, i, j), message)
                for j, message in enumerate(unknown)
                if message
            )
            if not any(unknown):
                true, *predicted = [
                    names[entry] if isinstance(entry, int) else entry for entry in entries
                ]
                if true in predicted:
                    place = predicted.index(true) + 1
                    yield Problem(
                        (field, i, place), f"must differ from the true class {quoted(true)}"
                    )


def _unknown_class(
    entry: object, names: tuple[str, ...], known: frozenset[str]
) -> str | None:
    if isinstance(entry, str):
        listed = shown(", ".join(names[:100]) + (", ..." if len(names) > 100 else ""))
        return (
            None
            if entry in known
            else f"must be one of the classes {listed}, but got {quoted(entry)}"
        )
    if isinstance(entry, int) and not isinstance(entry, bool) and 0 <= entry < len(names):
        return None
    return f"must be a class name or an index from 0 to {len(names) - 1}, but got {quoted(entry)}"


def _weight_problems(weights: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if not _is_list(weights):
        yield Problem(
            ("weights",), f"must be a matrix (a list of rows), but got {quoted(weights)}"
        )
        return
    size = len(weights) if names is None else len(names)
    if len(weights) != size:
        yield Problem(
            ("weights",), f"must have {size} rows, one per class, but got {len(weights)}"
        )
    off_diagonal = []
    for i, row in enumerate(weights):
        if not _is_list(row) or len(row) != size:
            yield Problem(
                ("weights", i), f"must be a list of {size} numbers, but got {quoted(row)}"
            )
            continue
        off_diagonal += [weight for j, weight in enumerate(row) if i != j]
        for j, weight in enumerate(row):
            if not is_number(weight) or (i != j and weight < 0):
                yield Problem(
                    ("weights", i, j),
                    f"must be a finite number >= 0, but got {quoted(weight)}",
                )
    if off_diagonal and all(weight == 0 for weight in off_diagonal):
        yield Problem(
            ("weights",),
            "must have a weight above 0 off the diagonal: otherwise no error has a cost",
        )


def _dangerous_problems(
    arguments: Mapping[str, Any], names: tuple[str, ...] | None
) -> Iterator[Problem]:
    dangerous, weights = arguments["dangerous"], arguments["weights"]
    if arguments["releases"]:
        yield Problem(
            ("dangerous",),
            "cannot be combined with releases: every error that is not released is dangerous",
        )
    if not isinstance(dangerous, int | float):
        pair_problems = list(_pair_problems("dangerous", dangerous, names))
        yield from pair_problems
        if not pair_problems and not dangerous:
            yield Problem(
                ("dangerous",),
                "must list at least one pair: otherwise no error would be dangerous",
            )
        elif not pair_problems and names is not None and _is_list(dangerous):
            free = {(i, j) for i, j, weight in _off_diagonal(weights) if weight == 0}
            for i, (true, *predicted) in enumerate(class_indices(dangerous, names)):
                for j, other in enumerate(predicted, start=1):
                    if (true, other) in free:
                        problem = "must have a weight above 0: decisions would not avoid this error"
                        yield Problem(("dangerous", i, j), problem)
    elif not is_number(dangerous) or dangerous <= 0:
        yield Problem(
            ("dangerous",),
            f"must be a weight above 0 or a list of pairs, but got {quoted(dangerous)}",
        )
    elif weights is None:
        yield Problem(
            ("dangerous",),
            f"must be a list of pairs unless there are weights, but got {quoted(dangerous)}",
        )
    elif (
        highest := max((weight for *_, weight in _off_diagonal(weights)), default=dangerous)
    ) < dangerous:
        rule = f"must be at most the highest weight {quoted(highest)}: otherwise no error would be dangerous"
        yield Problem(("dangerous",), f"{rule}, but got {quoted(dangerous)}")


def _off_diagonal(weights: object) -> Iterator[tuple[int, int, float]]:
    """Yield the row, column and value of each off-diagonal number in ``weights``; skip what is not a number."""
    for i, row in enumerate(weights if _is_list(weights) else []):
        for j, weight in enumerate(row if _is_list(row) else []):
            if i != j and is_number(weight):
                yield i, j, weight


def _refer_problems(refer: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if not _is_list(refer):
        if not is_number(refer) or refer < 0:
            yield Problem(
                ("refer",),
                f"must be a finite cost >= 0, or one for each class, but got {quoted(refer)}",
            )
        return
    if names is not None and len(refer) != len(names):
        yield Problem(
            ("refer",),
            f"must be one cost, or {len(names)} costs, one per class, but got {len(refer)}",
        )
    for i, cost in enumerate(refer):
        if not is_number(cost) or cost < 0:
            yield Problem(
                ("refer", i), f"must be a finite cost >= 0, but got {quoted(cost)}"
            )


def _answer_problems(
    answers: object, refer: object, names: tuple[str, ...] | None
) -> Iterator[Problem]:
    if not isinstance(answers, Mapping):
        rule = f"must be a mapping such as {{'red{OR}yellow': 0.3}}"
        yield Problem(("answers",), f"{rule}, but got {quoted(answers)}")
        return
    if refer is None:
        yield Problem(
            ("answers",),
            "must come with the cost of a referral (refer), the coarsest answer",
        )
    ambiguous = [name for name in names or () if OR in name]
    if ambiguous:
        yield Problem(
            ("answers",),
            f"must not be given if a class name contains {OR!r}, as in {quoted(ambiguous[0])}",
        )
    before = set[frozenset[str]]()
    for answer, cost in answers.items():
        members = str(answer).split(OR)
        if len(set(members)) < max(2, len(members)):
            rule = f"must name different classes separated by {OR!r}"
            yield Problem(("answers",), f"{rule}, but got {quoted(answer)}")
        elif names is not None and not ambiguous and not set(members) <= set(names):
            unknown = next(member for member in members if member not in names)
            yield Problem(
                ("answers",),
                f"must name classes, but {quoted(answer)} names {quoted(unknown)}",
            )
        elif len(members) == len(names or ()):
            yield Problem(
                ("answers",), f"must leave out a class: {quoted(answer)} is a referral"
            )
        if frozenset(members) in before:
            yield Problem(
                ("answers",),
                f"must differ, but {quoted(answer)} has the same classes as another",
            )
        before.add(frozenset(members))
        if not is_number(cost) or cost < 0:
            yield Problem(
                ("answers",),
                f"must have a finite cost >= 0, but {quoted(answer)} has {quoted(cost)}",
            )


def _group_problems(
    groups: object, answers: Any, names: tuple[str, ...] | None
) -> Iterator[Problem]:
    if not isinstance(groups, Mapping):
        rule = "must be a mapping such as {referable: [moderate, severe]}"
        yield Problem(("class_groups",), f"{rule}, but got {quoted(groups)}")
        return
    for group, members in groups.items():
        if (
            not isinstance(group, str)
            or not group
            or len(group) > MAX_NAME
            or has_control(group)
            or "]" in group
        ):
            rule = f"must have names of up to {MAX_NAME} characters without ]"
            yield Problem(("class_groups",), f"{rule}, but got {quoted(group)}")
        elif group in RESERVED or group in (names or ()) or group in dict(answers or ()):
            rule = f"must differ from classes, coarse answers, {' and '.join(RESERVED)}"
            yield Problem(("class_groups", group), f"{rule}, but {quoted(group)} is one")
        if not _is_list(members) or not members:
            yield Problem(
                ("class_groups", str(group)),
                f"must be a list of classes, but got {quoted(members)}",
            )
        elif names is not None:
            unknown = [
                _unknown_class(member, names, frozenset(names)) for member in members
            ]
            yield from (
                Problem(("class_groups", group, j), message)
                for j, message in enumerate(unknown)
                if message
            )
            if not any(unknown) and len(set(class_indices([members], names)[0])) in {
                0,
                len(names),
            }:
                yield Problem(("class_groups", group), "must leave out a class")


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether ``value`` is a finite int or float, but not a bool."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )
