"""`ConcernSpec`: how much each confusion of two classes matters."""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import MpcsError

MAX_CLASSES = 10_000
"""The matrix of more classes would take a gigabyte, so a larger number is probably a mistake."""


class Problem(NamedTuple):
    """A rule that a concern spec breaks, and where."""

    path: tuple[str | int, ...]
    """The name of a field, followed by list indices; empty if the whole spec breaks the rule."""
    message: str
    place: str = ""
    """File, line and column, if the spec was read from a file."""

    def __str__(self) -> str:
        steps = (f"[{step}]" if isinstance(step, int) else step for step in self.path)
        return ": ".join(part for part in (self.place, "".join(steps), self.message) if part)


class ConcernError(MpcsError, ValueError):
    """A concern spec that breaks its rules; `problems` lists all of them."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, problems)))

    def __reduce__(self) -> tuple[type["ConcernError"], tuple[tuple[Problem, ...]]]:
        return ConcernError, (self.problems,)  # the default would pickle the text instead of the problems


@dataclass(frozen=True)
class ConcernSpec:
    """Describe how much each error matters: release lists with one factor, or a full matrix of weights.

    Args:
        classes: The class names in index order, or the number of classes (which are then named "0", "1", ...).
        releases: Lists ``[true, predicted, ...]`` of class names or indices: mistaking the first class for any of the
            others is released, which means tolerable. Pairs are ordered: the opposite confusion is not released.
        factor: The concern of a released pair, ``0 < factor <= 1``; every other pair has concern 1.
        weights: The concern of each pair, instead of releases: C rows (true classes) of C columns (predicted classes),
            finite and > 0. The diagonal is ignored.

    Raises:
        ConcernError: If the arguments break rules; the message lists each of them with its place.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 8 (release list and factor). Deviation: a
        separate weight for each pair, which the introduction of the paper mentions and its equations leave out.

    Example:
        >>> spec = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]], factor=0.5)
        >>> spec.matrix()
        tensor([[1.0000, 0.5000, 1.0000],
                [1.0000, 1.0000, 1.0000],
                [1.0000, 1.0000, 1.0000]], dtype=torch.float64)
    """

    classes: Sequence[str] | int
    releases: Sequence[Sequence[str | int]] = ()
    factor: float = 0.5
    weights: Sequence[Sequence[float]] | None = None

    def __post_init__(self) -> None:
        problems = list(_problems(self.classes, self.releases, self.factor, self.weights))
        if problems:
            raise ConcernError(problems)
        frozen = {
            "classes": self.class_names,
            "releases": tuple(tuple(_index(e, self.class_names) for e in release) for release in self.releases),
            "weights": None if self.weights is None else tuple(tuple(map(float, row)) for row in self.weights),
        }
        for field, value in frozen.items():
            object.__setattr__(self, field, value)

    @property
    def class_names(self) -> tuple[str, ...]:
        """Return the names of the classes in index order."""
        return _names(self.classes)

    def matrix(self) -> Tensor:
        """Return the concern of each true class (row) predicted as each class (column), float64 (C, C), diagonal 1."""
        num_classes = len(self.class_names)
        if self.weights is None:
            return torch.ones(num_classes, num_classes, dtype=torch.float64).masked_fill_(self.released(), self.factor)
        return torch.tensor(self.weights, dtype=torch.float64).fill_diagonal_(1.0)

    def released(self) -> Tensor:
        """Return the released confusions, bool (C, C): those that are listed, or those with a weight below 1."""
        num_classes = len(self.class_names)
        if self.weights is not None:
            return self.matrix() < 1
        released = torch.zeros(num_classes, num_classes, dtype=torch.bool)
        for true, *predicted in self.releases:
            released[int(true), [int(other) for other in predicted]] = True
        return released


def _names(classes: Sequence[str] | int) -> tuple[str, ...]:
    return tuple(map(str, range(classes))) if isinstance(classes, int) else tuple(classes)


def _index(entry: str | int, names: tuple[str, ...]) -> int:
    return entry if isinstance(entry, int) else names.index(entry)


def _problems(classes: object, releases: object, factor: object, weights: object) -> Iterator[Problem]:
    names: tuple[str, ...] | None = None
    class_problems = list(_class_problems(classes))
    if class_problems:
        yield from class_problems
    else:
        names = _names(classes)  # type: ignore[arg-type]  # checked above
    yield from _release_problems(releases, names)
    if not _is_number(factor) or not 0 < factor <= 1:  # type: ignore[operator]  # a number by then
        yield Problem(("factor",), f"must be a number above 0 and at most 1, but got {factor!r}")
    if weights is not None:
        if releases:
            yield Problem(("weights",), "cannot be combined with releases: give only one of them")
        yield from _weight_problems(weights, names)


def _class_problems(classes: object) -> Iterator[Problem]:
    if isinstance(classes, int) and not isinstance(classes, bool):
        if not 2 <= classes <= MAX_CLASSES:
            yield Problem(("classes",), f"must be at least 2 and at most {MAX_CLASSES}, but got {classes}")
        return
    if isinstance(classes, str) or not isinstance(classes, Sequence):
        yield Problem(("classes",), f"must be a list of names or the number of classes, but got {classes!r}")
        return
    for i, name in enumerate(classes):
        if not isinstance(name, str):
            yield Problem(("classes", i), f"must be a name in quotes, but got {name!r}")
        elif name in classes[:i]:
            yield Problem(("classes", i), f"must differ from the other names, but {name!r} appears twice")
    if len(classes) < 2:
        yield Problem(("classes",), f"must name at least 2 classes, but got {len(classes)}")


def _release_problems(releases: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if isinstance(releases, str) or not isinstance(releases, Sequence):
        yield Problem(("releases",), f"must be a list of lists [true, predicted, ...], but got {releases!r}")
        return
    for i, release in enumerate(releases):
        if isinstance(release, str) or not isinstance(release, Sequence) or len(release) < 2:
            yield Problem(("releases", i), f"must be a list [true, predicted, ...], but got {release!r}")
        elif names is not None:
            unknown = [_unknown_class(entry, names) for entry in release]
            yield from (Problem(("releases", i, j), message) for j, message in enumerate(unknown) if message)
            if not any(unknown):
                true, *predicted = (_index(entry, names) for entry in release)
                if true in predicted:
                    place = predicted.index(true) + 1
                    yield Problem(("releases", i, place), f"must differ from the true class {names[true]!r}")


def _unknown_class(entry: object, names: tuple[str, ...]) -> str | None:
    if isinstance(entry, str):
        return None if entry in names else f"must be one of the classes {', '.join(names)}, but got {entry!r}"
    if isinstance(entry, int) and not isinstance(entry, bool) and 0 <= entry < len(names):
        return None
    return f"must be a class name or an index from 0 to {len(names) - 1}, but got {entry!r}"


def _weight_problems(weights: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if isinstance(weights, str) or not isinstance(weights, Sequence):
        yield Problem(("weights",), f"must be a matrix (a list of rows), but got {weights!r}")
        return
    size = len(weights) if names is None else len(names)
    if len(weights) != size:
        yield Problem(("weights",), f"must have {size} rows, one per class, but got {len(weights)}")
    for i, row in enumerate(weights):
        if isinstance(row, str) or not isinstance(row, Sequence) or len(row) != size:
            yield Problem(("weights", i), f"must be a list of {size} numbers, but got {row!r}")
            continue
        for j, weight in enumerate(row):
            if not _is_number(weight) or (i != j and not 0 < weight < float("inf")):
                yield Problem(("weights", i, j), f"must be a finite number above 0, but got {weight!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
