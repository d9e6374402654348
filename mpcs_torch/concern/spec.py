"""`ConcernSpec`: the cost of each confusion of two classes; its description in text, and likely oversights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from html import escape
from itertools import islice
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from mpcs_torch.concern.checks import (
    MAX_MATRIX_CLASSES,
    MAX_PROBLEMS,
    MAX_READABLE_CLASSES,
    OR,
    ConcernError,
    Pairs,
    class_indices,
    class_names,
    find_problems,
    without_arrays,
)
from mpcs_torch.errors import InvalidValueError, require, shown
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # torch is slow to import
    from numpy.typing import NDArray
    from torch import Tensor

MAX_ROWS = 40
"""The maximum number of rows in a table of released errors."""
MAX_PAIRS = 10
"""The maximum number of class pairs in warnings."""
MAX_NAMED_ERRORS = 4
"""The maximum number of kinds of errors in a sentence."""
LARGEST_DENSE = 1024
"""The maximum number of classes for which MPCS (Meta Pattern Concern Score) uses a dense matrix (8 MB)."""


@dataclass(frozen=True, init=False)
class ConcernSpec:
    """Describe the cost of each error, and which errors are dangerous.

    NumPy arrays, NumPy numbers and tensors are accepted instead of lists and numbers.

    Args:
        classes: The class names in index order, or the number of classes (which are then named "0", "1", ...).
        releases: Lists ``[true, predicted, ...]`` of class names or indices: mistaking the first class for any of the
            others is released, that is, tolerable. The opposite confusion is not released.
        factor: The concern (cost) of a released pair, ``0 < factor <= 1``; every other pair has concern 1.
        weights: The concern of each pair, instead of releases and factor: C rows (true classes) of C columns (predicted
            classes), finite and >= 0, in any unit. The diagonal is not read, but its numbers must be equal, such as 0:
            they differ if a row is shifted by a place.
        dangerous: The dangerous errors: lists ``[true, predicted, ...]``, or a number, the minimum weight of a
            dangerous error. Every other error is released, and has the concern ``factor`` if there are no ``weights``.
            Default: every error with a weight above 0 or, without ``weights``, every error not in ``releases``.
        refer: The cost of referring a sample to a person, in the unit of the concern and >= 0: one number, or a number
            for each true class. Default: no sample is referred.
        answers: Coarse answers (decisions for a set of classes) with their costs, ``{"red or yellow": 0.3}`` for
            example. An answer with the true class has this cost. Any other answer costs as much as the worst decision
            for one of its classes. ``refer`` must be given, too. Default: none.
        class_groups: Groups of classes that are also reported together, by class names or indices:
            ``{"referable": ["moderate", "severe"]}`` for example. Default: none.
        concession: A margin c, from 2e-9 to below 1/2: in MPCS, a probability of at least 1 - c for the true class, or
            of at most c for another class, costs nothing. Default: just below 0.005 (200 intervals).

    Raises:
        ConcernError: If an argument breaks its rule above; the message lists each problem with its place.

    References:
        Wang, Du, Liu: Meta Pattern Concern Score, arXiv:2209.06408v3, Eq. 8 (release list and factor) and Section II
        (concession). Deviation: a separate weight for each pair, which only the introduction mentions.

    Example:
        >>> spec = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]], factor=0.5)
        >>> spec.mpcs_weights()
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
    """The name and the cost of each coarse answer (a decision for a set of classes)."""
    class_groups: tuple[tuple[str, tuple[int, ...]], ...]
    """The name and the class indices of each group of classes."""

    def __init__(
        self,
        classes: Sequence[str] | int,
        releases: Pairs = (),
        factor: float = 0.5,
        weights: Sequence[Sequence[float]] | NDArray[Any] | None = None,
        dangerous: Pairs | NDArray[Any] | float | None = None,
        refer: Sequence[float] | NDArray[Any] | float | None = None,
        concession: float | None = None,
        answers: Mapping[str, float] | tuple[tuple[str, float], ...] = (),
        class_groups: Mapping[str, Sequence[str | int]]
        | tuple[tuple[str, tuple[int, ...]], ...] = (),
    ) -> None:
        # Until ``plain`` is made, the only local variables are the arguments: `locals` gives these by name.
        # dataclasses.replace passes fields, which are tuples.
        if isinstance(answers, tuple):
            answers = dict(answers)
        if isinstance(class_groups, tuple):
            class_groups = dict(class_groups)
        plain = {
            name: without_arrays(value)
            for name, value in locals().items()
            if name != "self"
        }
        problems = list(islice(find_problems(**plain), MAX_PROBLEMS + 1))
        if problems:
            raise ConcernError(problems)
        names = class_names(plain["classes"])
        values = {**plain, "classes": names}
        values["releases"] = class_indices(plain["releases"], names)
        if weights is not None:
            values["weights"] = tuple(tuple(map(float, row)) for row in plain["weights"])
        if isinstance(plain["dangerous"], Sequence):
            values["dangerous"] = class_indices(plain["dangerous"], names)
        if isinstance(plain["refer"], Sequence):
            values["refer"] = tuple(map(float, plain["refer"]))
        prices = plain["answers"].items()
        values["answers"] = tuple((answer, float(cost)) for answer, cost in prices)
        groups = plain["class_groups"]
        members = class_indices(list(groups.values()), names)
        values["class_groups"] = tuple(zip(groups, members, strict=True))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how to make this spec again: by its constructor, so that a changed pickle gives no invalid spec."""
        return spec_from_fields, tuple(getattr(self, field.name) for field in fields(self))

    def __copy__(self) -> Self:
        """Return the spec itself, because it never changes."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Return the spec itself, because it never changes."""
        return self

    def mpcs_weights(self) -> Tensor:
        """Return the weights by which MPCS divides, by true (row) and predicted class: float64 (C, C), diagonal 1.

        They are the `costs` of errors, but for the diagonal: for decisions, use `costs`.
        """
        import torch

        return torch.from_numpy(self.mpcs_weights_array())

    def mpcs_weights_array(self) -> NDArray[np.float64]:
        """Return the `mpcs_weights` as a NumPy array."""
        if self.weights is None:
            return np.where(self.released_array(), self.factor, 1.0)
        matrix = np.array(self.weights, dtype=np.float64)
        np.fill_diagonal(matrix, 1.0)
        return matrix

    def sparse_matrix(self) -> Tensor:
        """Return the concern (cost) of released pairs as a sparse matrix, for MPCS with many classes.

        Returns:
            A coalesced sparse tensor, float64 (C, C); missing elements mean a concern of 1.

        Raises:
            ValueError: If the spec has ``weights`` or ``dangerous`` instead of ``releases``.
        """
        if not self.lists_releases:
            raise InvalidValueError("only_releases", "sparse_matrix")
        import torch

        size = (len(self.classes), len(self.classes))
        places = torch.from_numpy(np.stack(_places(self.releases)))
        places = torch.unique(places, dim=1)  # (2, P), in order, and each pair once
        factors = torch.full(places.shape[1:], self.factor, dtype=torch.float64)
        # torch 2.11 warns if only the argument check_invariants is used.
        with torch.sparse.check_sparse_tensor_invariants(True):  # type: ignore[no-untyped-call]
            return torch.sparse_coo_tensor(places, factors, size, is_coalesced=True)

    def compact_matrix(self) -> Tensor:
        """Return the `sparse_matrix` if there are ``releases`` and more than 1024 classes, else the `mpcs_weights`."""
        if self.lists_releases and len(self.classes) > LARGEST_DENSE:
            return self.sparse_matrix()
        return self.mpcs_weights()

    @property
    def lists_releases(self) -> bool:
        """Whether only ``releases`` say what errors cost, and which are dangerous."""
        return self.weights is None and self.dangerous is None

    @property
    def dangerous_weight(self) -> float | None:
        """The minimum weight of a dangerous error; None if dangerous errors are not defined by their weights."""
        return self.dangerous if isinstance(self.dangerous, int | float) else None

    def costs(self) -> Tensor:
        """Return the cost of each decision (column) for each true class (row).

        Returns:
            float64 (C, C), the `mpcs_weights` with a diagonal of 0. If ``refer`` is set, the shape is (C, C + A + 1):
            after the C classes, there are columns for A coarse answers, and a last column for the referral.
        """
        import torch

        errors = self.mpcs_weights().fill_diagonal_(0)
        if self.refer is None:
            return errors
        classes = len(errors)
        refer = torch.as_tensor(self.refer, dtype=torch.float64)
        referral = refer.expand(classes).unsqueeze(1)
        prices = torch.tensor([cost for _, cost in self.answers], dtype=torch.float64)
        if_wrong = self.over_answers(errors)[:, classes:]
        answers = torch.where(self.members().T, prices, if_wrong)
        return torch.cat([errors, answers, referral], dim=1)

    def members(self) -> Tensor:
        """Return bool (A, C): whether each coarse answer (row) contains each class (column)."""
        import torch

        answers = [answer.split(OR) for answer, _ in self.answers]
        rows = [[name in answer for name in self.classes] for answer in answers]
        return torch.tensor(rows, dtype=torch.bool).reshape(len(rows), len(self.classes))

    def over_answers(self, pairs: Tensor) -> Tensor:
        """Append columns for A coarse answers to ``pairs`` (C, C); return (C, C + A).

        The value of an answer is 0 if it contains the true class, otherwise the largest of the values of its classes.
        ``pairs`` must be >= 0, with a diagonal of 0.
        """
        import torch

        columns = [pairs]
        for is_member in self.members():
            worst = pairs[:, is_member].amax(dim=1)
            columns.append(torch.where(is_member, 0, worst).unsqueeze(1))
        return torch.cat(columns, dim=1)

    def dangerous_pairs(self) -> Tensor:
        """Return True for each dangerous error, else False, by true and predicted class: bool (C, C)."""
        import torch

        return torch.from_numpy(self.dangerous_array())

    def dangerous_array(self) -> NDArray[np.bool_]:
        """Return the `dangerous_pairs` as a NumPy array."""
        if isinstance(self.dangerous, Sequence):
            dangerous = self._mask(self.dangerous)
        elif self.weights is None:
            dangerous = ~self._mask(self.releases)
        else:
            weights = self.mpcs_weights_array()
            least = self.dangerous_weight
            dangerous = weights > 0 if least is None else weights >= least
        np.fill_diagonal(dangerous, False)
        return dangerous

    def released(self) -> Tensor:
        """Return True for each error that is not dangerous, else False, by true and predicted class: bool (C, C)."""
        import torch

        return torch.from_numpy(self.released_array())

    def released_array(self) -> NDArray[np.bool_]:
        """Return the `released` errors as a NumPy array."""
        released = ~self.dangerous_array()
        np.fill_diagonal(released, False)
        return released

    def _repr_html_(self) -> str:
        """Return the `table` as HTML for notebooks; with more than 30 classes, the repr."""
        if len(self.classes) > MAX_READABLE_CLASSES:
            return f"<pre>{escape(repr(self))}</pre>"
        return self.table()._repr_html_()

    def table(self) -> Table:
        """Return a table of costs: rows are true classes, columns predicted classes, and ! marks dangerous errors."""
        dangerous = self.dangerous_array()
        weights = self.mpcs_weights_array()
        rows = list[list[str]]()
        for true, name in enumerate(self.classes):
            cells = [name]
            for other in range(len(self.classes)):
                mark = " !" if dangerous[true, other] else ""
                cost = f"{weights[true, other]:g}{mark}"
                cells.append("-" if other == true else cost)
            rows.append(cells)
        return Table(["true \\ predicted", *self.classes], rows)

    def _mask(self, pairs: Pairs) -> NDArray[np.bool_]:
        classes = len(self.classes)
        require(
            classes <= MAX_MATRIX_CLASSES,
            "dense_classes",
            "classes",
            classes,
            maximum=MAX_MATRIX_CLASSES,
        )
        mask = np.zeros((classes, classes), dtype=np.bool_)
        mask[_places(pairs)] = True
        return mask


def spec_from_fields(*arguments: Any) -> ConcernSpec:
    """Make a spec from the values of its fields, in their order, as a pickle stores them.

    The module `mpcs_torch.concern.weights_only` allows this function, not the class: an unpickler may create an object
    of an allowed class without its constructor.
    """
    return ConcernSpec(*arguments)


def _places(pairs: Pairs) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the true and the predicted class of each pair, int64 (P,) each; ``pairs`` has class indices."""
    places = [(int(true), int(other)) for true, *others in pairs for other in others]
    rows, columns = np.array(places, dtype=np.int64).reshape(-1, 2).T
    return rows, columns


def described(spec: ConcernSpec) -> tuple[str, Table, str]:
    """Return error counts as text, a table (of costs; of released errors for over 30 classes), and settings as text."""
    size = len(spec.classes)
    errors = size * (size - 1)
    released = int(spec.released_array().sum())
    kind = "are released" if spec.weights is None else "are not dangerous"
    counts = f"{size} classes; of {errors} errors, {errors - released} are dangerous, and {released} {kind}"
    table = spec.table() if size <= MAX_READABLE_CLASSES else _released_table(spec)
    return counts, table, "\n".join(_facts(spec))


def about_dangerous(spec: ConcernSpec) -> str:
    """Return a sentence that says which errors are dangerous, as true and decided class, or how many.

    Example:
        >>> about_dangerous(ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]]))
        'Dangerous: all errors but red as yellow.'
    """
    released = spec.released_array()
    if not released.any():
        return "Dangerous: all errors."
    dangerous = spec.dangerous_array()
    if 0 < dangerous.sum() <= MAX_NAMED_ERRORS:
        return f"Dangerous: {_named_errors(spec, dangerous)}."
    if released.sum() <= MAX_NAMED_ERRORS:
        return f"Dangerous: all errors but {_named_errors(spec, released)}."
    return f"Dangerous: {dangerous.sum()} of {dangerous.sum() + released.sum()} kinds of errors."


def _named_errors(spec: ConcernSpec, errors: NDArray[np.bool_]) -> str:
    """Return the errors that are True in ``errors`` (C, C) as text, such as "red as green, red as yellow"."""
    names = [shown(name) for name in spec.classes]
    pairs = np.argwhere(errors).tolist()
    return ", ".join(f"{names[true]} as {names[decided]}" for true, decided in pairs)


def _released_table(spec: ConcernSpec) -> Table:
    """Return a table with a row for each class of which an error is released."""
    rows = list[list[str]]()
    for name, row in zip(spec.classes, spec.released_array(), strict=True):
        others = [spec.classes[other] for other in np.flatnonzero(row)]
        if others:
            rows.append([name, str(len(others)), ", ".join(others)])
    if len(rows) > MAX_ROWS:
        rows = [*rows[:MAX_ROWS], [f"and {len(rows) - MAX_ROWS} others", "", ""]]
    return Table(["true class", "released", "predicted as"], rows)


def _facts(spec: ConcernSpec) -> list[str]:
    """Return the settings of a spec as sentences."""
    facts: list[str] = []
    if len(spec.classes) <= MAX_READABLE_CLASSES:
        others = "; all others are released" if spec.weights is None else ""
        facts.append(f"The cost of each error; ! marks dangerous errors{others}.")
    if spec.weights is None:
        facts.append(f"Factor: a released error costs {spec.factor:g}, a dangerous one 1.")
    elif spec.dangerous_weight is not None:
        least = spec.dangerous_weight
        facts.append(f"Dangerous: errors with a weight of at least {least:g}.")
    refer = "none, every sample is decided"
    if isinstance(spec.refer, tuple):
        costs = ", ".join(f"{cost:g}" for cost in spec.refer)
        refer = f"{costs}, by true class"
    elif spec.refer is not None:
        refer = f"{spec.refer:g}"
    facts.append(f"Referral: {refer}.")
    if spec.answers:
        answers = "; ".join(f"{name} costs {cost:g}" for name, cost in spec.answers)
        facts.append(f"Coarse answers: {answers}, if the true class is in it.")
    for group, members in spec.class_groups:
        names = ", ".join(spec.classes[member] for member in members)
        facts.append(f"Group {group}: {names}.")
    concession = "default of MPCS, just below 0.005"
    if spec.concession is not None:
        concession = f"{spec.concession:g}"
    facts.append(f"Concession: {concession}.")
    return facts


def oversights(spec: ConcernSpec) -> Iterator[str]:
    """Yield a sentence for each setting that is valid but rarely intended, such as a pair released in one direction.

    Example:
        >>> list(oversights(ConcernSpec(["red", "green"], releases=[["red", "green"]])))
        ['red for green is tolerable, green for red is dangerous: one direction of a pair is released']
    """
    pairs = len(spec.classes) * (len(spec.classes) - 1)
    count = int(spec.released_array().sum())
    if count == 0:
        yield "no error is released, so every error is dangerous"
    if count == pairs:
        yield "every error is released, so no error is dangerous"
    if spec.weights is None and spec.factor == 1 and count:
        yield "the factor is 1, so a released error costs as much as a dangerous one"
    # By a minimum weight, a direction of a pair is often released on purpose.
    if spec.dangerous_weight is None:
        yield from _one_way_releases(spec)
    if spec.refer is not None:
        yield from _oversights_of_referral(spec)


def _one_way_releases(spec: ConcernSpec) -> Iterator[str]:
    """Yield a sentence for each pair of classes of which only one direction is released, and the number of others."""
    names = spec.classes
    released = spec.released_array()
    free = released
    kind = "is tolerable"
    if spec.weights is not None:
        # Costs often differ by direction on purpose, unless one of them is 0.
        free = released & (spec.mpcs_weights_array() == 0)
        kind = "costs nothing"
    one_way = np.argwhere(free & ~released.T).tolist()
    for true, other in one_way[:MAX_PAIRS]:
        yield (
            f"{names[true]} for {names[other]} {kind}, {names[other]} for {names[true]} is dangerous: "
            "one direction of a pair is released"
        )
    if len(one_way) > MAX_PAIRS:
        yield f"... and {len(one_way) - MAX_PAIRS} more pairs are released in one direction only"


def _oversights_of_referral(spec: ConcernSpec) -> Iterator[str]:
    """Yield a sentence if no sample, or every doubtful one, is referred to save costs."""
    *decisions, referral = spec.costs().T
    names = [*spec.classes, *(answer for answer, _ in spec.answers)]
    for name, costs in zip(names, decisions, strict=True):
        if bool((costs <= referral).all()):
            yield f"deciding {name} never costs more than a referral, so no sample is referred to save costs"
            break  # one such decision is enough
    if not referral.any():
        yield "a referral costs nothing, so every sample that could be an error is referred"
