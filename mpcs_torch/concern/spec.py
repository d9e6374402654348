"""`ConcernSpec`: the costs of confusions of classes, and the rules that they must keep.

PyTorch is imported where a tensor is asked for, so that commands which read a spec start without it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from mpcs_torch.errors import MpcsError, has_control, quoted, shown
from mpcs_torch.tables import html_table

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from torch import Tensor

MAX_CLASSES = 10_000_000
"""A larger number is probably a mistake."""
MAX_MATRIX_CLASSES = 10_000
"""The matrix of more classes would take more than a gigabyte."""
MAX_NAME = 200
"""Characters of a class name, which stands in tables, figures and messages."""
MAX_PROBLEMS = 20
"""Nobody reads more at a time."""


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
    """A concern spec that breaks its rules; `problems` lists them, and the message the first 20."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        more = ["... and more"] if len(problems) > MAX_PROBLEMS else []
        super().__init__("\n".join([*map(str, problems[:MAX_PROBLEMS]), *more]))

    def __reduce__(self) -> tuple[type[ConcernError], tuple[tuple[Problem, ...]]]:
        return ConcernError, (self.problems,)  # the default would pickle the text instead of the problems


def names_of(classes: Sequence[str] | int) -> tuple[str, ...]:
    """Return the names of the classes: of a number of classes, their indices."""
    return tuple(map(str, range(classes))) if isinstance(classes, int) else tuple(classes)


def indices_of(pairs: Sequence[Sequence[str | int]], names: Sequence[str]) -> tuple[tuple[int, ...], ...]:
    """Return the indices of classes that are given by their names or indices."""
    places = {name: i for i, name in enumerate(names)}
    return tuple(tuple(entry if isinstance(entry, int) else places[entry] for entry in entries) for entries in pairs)


def find_problems(spec: ConcernSpec) -> Iterator[Problem]:
    """Find every rule that the arguments of a spec break; their types are not known yet."""
    class_problems = list(_class_problems(spec.classes))
    yield from class_problems
    names = None if class_problems else names_of(spec.classes)
    yield from _pair_problems("releases", spec.releases, names)
    if not is_number(spec.factor) or not 0 < spec.factor <= 1:
        yield Problem(("factor",), f"must be a number above 0 and at most 1, but got {quoted(spec.factor)}")
    if spec.weights is not None:
        if spec.releases:
            yield Problem(("weights",), "cannot be combined with releases: give only one of them")
        yield from _weight_problems(spec.weights, names)
    if spec.dangerous is not None:
        yield from _dangerous_problems(spec, names)
    if spec.refer is not None:
        yield from _refer_problems(spec.refer, names)
    if spec.answers:
        yield from _answer_problems(spec, names)
    if spec.concession is not None and not (is_number(spec.concession) and 2e-9 <= spec.concession < 0.5):
        yield Problem(("concession",), f"must be a number from 2e-9 to below 0.5, but got {quoted(spec.concession)}")


def _class_problems(classes: object) -> Iterator[Problem]:
    if isinstance(classes, int) and not isinstance(classes, bool):
        if not 2 <= classes <= MAX_CLASSES:
            yield Problem(("classes",), f"must be at least 2 and at most {MAX_CLASSES}, but got {quoted(classes)}")
        return
    if not _is_list(classes):
        yield Problem(("classes",), f"must be a list of names or the number of classes, but got {quoted(classes)}")
        return
    before = set()
    for i, name in enumerate(classes):
        if not isinstance(name, str):
            yield Problem(("classes", i), f"must be a name in quotes, but got {quoted(name)}")
        elif len(name) > MAX_NAME:
            yield Problem(("classes", i), f"must have at most {MAX_NAME} characters, but has {len(name)}")
        elif has_control(name):
            yield Problem(("classes", i), f"must not contain control characters, but got {quoted(name)}")
        elif name in before:
            yield Problem(("classes", i), f"must differ from the other names, but {quoted(name)} appears twice")
        else:
            before.add(name)
    if len(classes) < 2:
        yield Problem(("classes",), f"must name at least 2 classes, but got {len(classes)}")


def _pair_problems(field: str, pairs: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if not _is_list(pairs):
        yield Problem((field,), f"must be a list of lists [true, predicted, ...], but got {quoted(pairs)}")
        return
    known = frozenset(names or ())
    for i, entries in enumerate(pairs):
        if not _is_list(entries) or len(entries) < 2:
            yield Problem((field, i), f"must be a list [true, predicted, ...], but got {quoted(entries)}")
        elif names is not None:
            unknown = [_unknown_class(entry, names, known) for entry in entries]
            yield from (Problem((field, i, j), message) for j, message in enumerate(unknown) if message)
            if not any(unknown):
                true, *predicted = (names[entry] if isinstance(entry, int) else entry for entry in entries)
                if true in predicted:
                    place = predicted.index(true) + 1
                    yield Problem((field, i, place), f"must differ from the true class {quoted(true)}")


def _unknown_class(entry: object, names: tuple[str, ...], known: frozenset[str]) -> str | None:
    if isinstance(entry, str):
        listed = shown(", ".join(names[:100]) + (", ..." if len(names) > 100 else ""))
        return None if entry in known else f"must be one of the classes {listed}, but got {quoted(entry)}"
    if isinstance(entry, int) and not isinstance(entry, bool) and 0 <= entry < len(names):
        return None
    return f"must be a class name or an index from 0 to {len(names) - 1}, but got {quoted(entry)}"


def _weight_problems(weights: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if not _is_list(weights):
        yield Problem(("weights",), f"must be a matrix (a list of rows), but got {quoted(weights)}")
        return
    size = len(weights) if names is None else len(names)
    if len(weights) != size:
        yield Problem(("weights",), f"must have {size} rows, one per class, but got {len(weights)}")
    off_diagonal = []
    for i, row in enumerate(weights):
        if not _is_list(row) or len(row) != size:
            yield Problem(("weights", i), f"must be a list of {size} numbers, but got {quoted(row)}")
            continue
        off_diagonal += [weight for j, weight in enumerate(row) if i != j]
        for j, weight in enumerate(row):
            if not is_number(weight) or (i != j and weight < 0):
                yield Problem(("weights", i, j), f"must be a finite number >= 0, but got {quoted(weight)}")
    if off_diagonal and all(weight == 0 for weight in off_diagonal):
        yield Problem(("weights",), "must have a weight above 0 off the diagonal: errors without any cost need no spec")


def _dangerous_problems(spec: ConcernSpec, names: tuple[str, ...] | None) -> Iterator[Problem]:
    dangerous = spec.dangerous
    if spec.releases:
        yield Problem(("dangerous",), "cannot be combined with releases: every error that is not released is dangerous")
    if not isinstance(dangerous, int | float):
        pair_problems = list(_pair_problems("dangerous", dangerous, names))
        yield from pair_problems
        if not pair_problems and not dangerous:
            yield Problem(("dangerous",), "must list at least one pair: otherwise no error would be dangerous")
        elif not pair_problems and names is not None and _is_list(dangerous):
            free = {(i, j) for i, j, weight in _off_diagonal(spec.weights) if weight == 0}
            for i, (true, *predicted) in enumerate(indices_of(dangerous, names)):
                for j, other in enumerate(predicted, start=1):
                    if (true, other) in free:
                        problem = "must have a weight above 0: decisions would not avoid this error"
                        yield Problem(("dangerous", i, j), problem)
    elif not is_number(dangerous) or dangerous <= 0:
        yield Problem(("dangerous",), f"must be a weight above 0 or a list of pairs, but got {quoted(dangerous)}")
    elif spec.weights is None:
        yield Problem(("dangerous",), f"must be a list of pairs unless there are weights, but got {quoted(dangerous)}")
    elif (highest := max((weight for *_, weight in _off_diagonal(spec.weights)), default=dangerous)) < dangerous:
        rule = f"must be at most the highest weight {quoted(highest)}: otherwise no error would be dangerous"
        yield Problem(("dangerous",), f"{rule}, but got {quoted(dangerous)}")


def _off_diagonal(weights: object) -> Iterator[tuple[int, int, float]]:
    """Yield row, column and value of the numbers off the diagonal, whatever else is there."""
    for i, row in enumerate(weights if _is_list(weights) else []):
        for j, weight in enumerate(row if _is_list(row) else []):
            if i != j and is_number(weight):
                yield i, j, weight


def _refer_problems(refer: object, names: tuple[str, ...] | None) -> Iterator[Problem]:
    if not _is_list(refer):
        if not is_number(refer) or refer < 0:
            yield Problem(("refer",), f"must be a finite cost >= 0, or one for each class, but got {quoted(refer)}")
        return
    if names is not None and len(refer) != len(names):
        yield Problem(("refer",), f"must be one cost, or {len(names)} costs, one per class, but got {len(refer)}")
    for i, cost in enumerate(refer):
        if not is_number(cost) or cost < 0:
            yield Problem(("refer", i), f"must be a finite cost >= 0, but got {quoted(cost)}")


def _answer_problems(spec: ConcernSpec, names: tuple[str, ...] | None) -> Iterator[Problem]:
    answers: object = spec.answers
    if not isinstance(answers, Mapping):
        rule = f"must be a mapping such as {{'red{OR}yellow': 0.3}}"
        yield Problem(("answers",), f"{rule}, but got {quoted(answers)}")
        return
    if spec.refer is None:
        yield Problem(("answers",), "must come with the cost of a referral (refer), which is the coarsest answer")
    ambiguous = [name for name in names or () if OR in name]
    if ambiguous:
        yield Problem(("answers",), f"must not be given where a class name has {OR!r} in it, as {quoted(ambiguous[0])}")
    before = set[frozenset[str]]()
    for answer, cost in answers.items():
        members = str(answer).split(OR)
        if len(set(members)) < max(2, len(members)):
            rule = f"must name different classes with {OR!r} between"
            yield Problem(("answers",), f"{rule}, but got {quoted(answer)}")
        elif names is not None and not ambiguous and not set(members) <= set(names):
            unknown = next(member for member in members if member not in names)
            yield Problem(("answers",), f"must name classes, but {quoted(answer)} names {quoted(unknown)}")
        elif len(members) == len(names or ()):
            yield Problem(("answers",), f"must leave out a class: {quoted(answer)} is a referral")
        if frozenset(members) in before:
            yield Problem(("answers",), f"must differ, but {quoted(answer)} has the classes of another")
        before.add(frozenset(members))
        if not is_number(cost) or cost < 0:
            yield Problem(("answers",), f"must have a finite cost >= 0, but {quoted(answer)} has {quoted(cost)}")


def _is_list(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite int or float; bools are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


LARGEST_DENSE = 1024
"""Up to this number of classes, MPCS takes a dense matrix (8 MB)."""
MOST_SHOWN = 30
"""Up to this number of classes, a notebook shows the matrix."""
OR = " or "
"""Stands between the classes of a coarse answer."""
Pairs = Sequence[Sequence[str | int]]
"""Lists ``[true, predicted, ...]`` of class names or indices."""


@dataclass(frozen=True, init=False)
class ConcernSpec:
    """Describe what each error costs and which errors are dangerous.

    Args:
        classes: The class names in index order, or the number of classes (which are then named "0", "1", ...).
        releases: Lists ``[true, predicted, ...]`` of class names or indices: mistaking the first class for any of the
            others is released, which means tolerable. Pairs are ordered: the opposite confusion is not released.
        factor: The concern of a released pair, ``0 < factor <= 1``; every other pair has concern 1.
        weights: The concern of each pair, instead of releases and factor: C rows (true classes) of C columns (predicted
            classes), finite and >= 0. The diagonal is ignored. Costs in any unit will do.
        dangerous: Which errors are dangerous: lists ``[true, predicted, ...]``, or a number, the weight from which on
            an error is dangerous. Every other error is released, and without ``weights`` it has the concern ``factor``.
            Default: every error that is not in ``releases`` and has a weight above 0.
        refer: The cost of referring a sample to somebody else instead of deciding, on the scale of the concern and
            >= 0: one number, or one for each true class. Default: decisions refer no sample.
        answers: Coarse answers, such as ``{"red or yellow": 0.3}``: sets of classes, by their names with " or "
            between, and the cost of each if the true class is in the set. Otherwise it costs as much as the worst of
            its classes. They are finer than a referral, whose cost must be given too. Default: none.
        concession: How far a confidence may fall short of certainty without being punished by MPCS, from 2e-9 to below
            1/2. Default: MPCS uses 200 intervals, which is a concession of just below 0.005.

    Raises:
        ConcernError: If the arguments break rules; the message lists each of them with its place.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 8 (release list and factor) and Section II
        (concession). Deviation: a separate weight for each pair, which the introduction of the paper mentions and its
        equations leave out.

    Example:
        >>> spec = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]], factor=0.5)
        >>> spec.matrix()
        tensor([[1.0000, 0.5000, 1.0000],
                [1.0000, 1.0000, 1.0000],
                [1.0000, 1.0000, 1.0000]], dtype=torch.float64)
        >>> costs = ConcernSpec(["healthy", "ill"], weights=[[0, 10], [50, 0]], dangerous=50, refer=2)
        >>> costs.dangerous_pairs()
        tensor([[False, False],
                [ True, False]])
    """

    classes: tuple[str, ...]
    """The names of the classes in index order."""
    releases: tuple[tuple[int, ...], ...]
    factor: float
    weights: tuple[tuple[float, ...], ...] | None
    dangerous: tuple[tuple[int, ...], ...] | float | None
    refer: tuple[float, ...] | float | None
    concession: float | None
    answers: tuple[tuple[str, float], ...]
    """The coarse answers by name, with their costs."""

    def __init__(
        self,
        classes: Sequence[str] | int,
        releases: Pairs = (),
        factor: float = 0.5,
        weights: Sequence[Sequence[float]] | None = None,
        dangerous: Pairs | float | None = None,
        refer: Sequence[float] | float | None = None,
        concession: float | None = None,
        answers: Mapping[str, float] | tuple[tuple[str, float], ...] = (),
    ) -> None:
        answers = dict(answers) if isinstance(answers, tuple) else answers  # as the field, for dataclasses.replace
        given = {name: value for name, value in locals().items() if name != "self"}
        self._set(given)
        problems = list(islice(find_problems(self), MAX_PROBLEMS + 1))
        if problems:
            raise ConcernError(problems)
        names = names_of(classes)
        self._set(
            {
                "classes": names,
                "releases": indices_of(releases, names),
                "weights": None if weights is None else tuple(tuple(map(float, row)) for row in weights),
                "dangerous": indices_of(dangerous, names) if isinstance(dangerous, Sequence) else dangerous,
                "refer": tuple(map(float, refer)) if isinstance(refer, Sequence) else refer,
                "answers": tuple((answer, float(cost)) for answer, cost in answers.items()),
            }
        )

    def _set(self, fields: Mapping[str, object]) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def matrix(self) -> Tensor:
        """Return the concern of each true class (row) predicted as each class (column), float64 (C, C), diagonal 1."""
        import torch

        return torch.from_numpy(self.matrix_array())

    def matrix_array(self) -> NDArray[np.float64]:
        """Return the `matrix` as an array of NumPy."""
        if self.weights is None:
            return np.where(self.released_array(), self.factor, 1.0)
        matrix = np.array(self.weights, dtype=np.float64)
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def sparse_matrix(self) -> Tensor:
        """Return the concern of released pairs, for MPCS with many classes.

        Returns:
            A coalesced sparse tensor, float64 (C, C), whose elements are concerns of pairs, 1 for those it leaves out.

        Raises:
            ValueError: If the spec does not list its releases.
        """
        if self.weights is not None or self.dangerous is not None:
            raise ValueError("sparse_matrix needs a spec with releases, but this one has weights or dangerous pairs.")
        import torch

        size = (len(self.classes),) * 2
        places = torch.unique(torch.from_numpy(np.stack(_places(self.releases))), dim=1)
        factors = torch.full(places.shape[1:], self.factor, dtype=torch.float64)
        # torch 2.11 warns where the argument check_invariants alone says it.
        with torch.sparse.check_sparse_tensor_invariants(True):  # type: ignore[no-untyped-call]
            return torch.sparse_coo_tensor(places, factors, size, is_coalesced=True)

    def compact_matrix(self) -> Tensor:
        """Return the `matrix`, or the `sparse_matrix` of more than 1024 classes whose releases are listed."""
        lists_releases = self.weights is None and self.dangerous is None
        return self.sparse_matrix() if lists_releases and len(self.classes) > LARGEST_DENSE else self.matrix()

    def costs(self) -> Tensor:
        """Return the cost of each decision (column) for each true class (row), for decisions with the minimum cost.

        Returns:
            float64 (C, C), the `matrix` with a diagonal of 0. If ``refer`` is set, (C, C + A + 1): the costs of the
            coarse answers follow, and that of a referral in the last column.
        """
        import torch

        errors = self.matrix().fill_diagonal_(0)
        if self.refer is None:
            return errors
        referral = torch.as_tensor(self.refer, dtype=torch.float64).expand(len(errors))
        return torch.cat([self.with_answers(errors), referral.unsqueeze(1)], dim=1)

    def with_answers(self, errors: Tensor, *, scale: float = 1.0) -> Tensor:
        """Return costs of errors (C, C) with those of coarse answers, whose prices are scaled: (C, C + A)."""
        import torch

        members, prices = self.members(), torch.tensor([cost for _, cost in self.answers], dtype=torch.float64)
        costs = self.over_answers(errors)
        return torch.cat([errors, torch.where(members.T, scale * prices, costs[:, len(errors) :])], dim=1)

    def members(self) -> Tensor:
        """Return which classes each coarse answer holds: bool (A, C)."""
        import torch

        answers = [answer.split(OR) for answer, _ in self.answers]
        rows = [[name in answer for name in self.classes] for answer in answers]
        return torch.tensor(rows, dtype=torch.bool).reshape(len(rows), len(self.classes))

    def over_answers(self, pairs: Tensor) -> Tensor:
        """Return values of errors (C, C), at least 0 with a diagonal of 0, for coarse answers, too: (C, C + A).

        A coarse answer without the true class has the highest value of its classes, and one with it has 0.
        """
        import torch

        columns = [
            torch.where(member, torch.zeros_like(pairs[:, 0]), pairs[:, member].amax(dim=1))
            for member in self.members()
        ]
        return torch.cat([pairs, *(column.unsqueeze(1) for column in columns)], dim=1) if columns else pairs

    def dangerous_pairs(self) -> Tensor:
        """Return the dangerous confusions, bool (C, C): rows true classes, columns predicted ones, diagonal False."""
        import torch

        return torch.from_numpy(self.dangerous_array())

    def dangerous_array(self) -> NDArray[np.bool_]:
        """Return the `dangerous_pairs` as an array of NumPy."""
        if isinstance(self.dangerous, Sequence):
            dangerous = self._mask(self.dangerous)
        elif self.weights is None:
            dangerous = ~self._mask(self.releases)
        else:
            weights = self.matrix_array()
            dangerous = weights > 0 if self.dangerous is None else weights >= self.dangerous
        np.fill_diagonal(dangerous, False)
        return dangerous

    def released(self) -> Tensor:
        """Return the confusions that are not dangerous, bool (C, C), diagonal False."""
        import torch

        return torch.from_numpy(self.released_array())

    def released_array(self) -> NDArray[np.bool_]:
        """Return what is `released` as an array of NumPy."""
        released = ~self.dangerous_array()
        np.fill_diagonal(released, False)
        return released

    def _repr_html_(self) -> str:
        """Return the concern of each pair as an HTML table, which a notebook shows; dangerous pairs are in bold."""
        names = self.classes
        if len(names) > MOST_SHOWN:
            return f"<pre>{escape(repr(self))}</pre>"
        weights, dangerous = self.matrix_array().tolist(), self.dangerous_array().tolist()
        cells = [["" if i == j else f"{weights[i][j]:g}" for j in range(len(names))] for i in range(len(names))]
        rows = [
            [f'<th scope="row">{escape(name)}</th>']
            + [f"<td>{f'<b>{cell}</b>' if dangerous[i][j] else cell}</td>" for j, cell in enumerate(cells[i])]
            for i, name in enumerate(names)
        ]
        header = ["<th>true \\ predicted</th>", *(f'<th scope="col">{escape(name)}</th>' for name in names)]
        return html_table(header, rows, "Concern of each error; dangerous ones in bold")

    def _mask(self, pairs: Pairs) -> NDArray[np.bool_]:
        classes = len(self.classes)
        if classes > MAX_MATRIX_CLASSES:
            raise ValueError(
                f"classes must be at most {MAX_MATRIX_CLASSES} for a matrix of all pairs, but got {classes}: "
                "MetaPatternConcernScore takes the spec, or its sparse_matrix()."
            )
        mask = np.zeros((classes, classes), dtype=np.bool_)
        mask[_places(pairs)] = True
        return mask


def _places(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and the columns of pairs of class indices."""
    places = [(int(true), int(other)) for true, *others in pairs for other in others]
    rows, columns = np.array(places, dtype=np.int64).reshape(-1, 2).T
    return rows, columns
