"""Rows of predictions and labels, and the units of decision, such as patients, into which they are combined."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.errors import quoted
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.groups import Groups, group_codes
from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1

REPEATED = 2**17
"""The number of scores in each part when rows are repeated."""


class Rows(NamedTuple):
    """The predictions of a model for some rows, and their labels."""

    probs: Tensor
    """(n, C): probabilities; or (n, 1), int64: decisions."""
    target: Tensor
    """(n,), int64: classes; or (n, C): soft labels, which are degrees of truth, or shares that sum to 1."""
    ids: Tensor
    """(n,), int64: identifiers of rows, or of their clusters if there are any; they pair the rows of two models."""
    groups: Mapping[str, Tensor] = MappingProxyType({})
    """For each column of groups: the code of each row's group, (n,), int64."""
    weights: Tensor | None = None
    """(n,), float64, at least 0: the weight of each row; None without weights."""
    costs: Tensor | None = None
    """(n, C), float64: the cost of each decision; None if no metric takes costs."""
    frequencies: Tensor | None = None
    """(n,), int64, at least 1: the number of independent rows that each row stands for; None if all are 1."""

    def at(self, places: Tensor | slice) -> "Rows":
        """Return the rows at ``places``: indices, a slice, or a mask (n,) that is True for these rows."""
        groups = {column: codes[places] for column, codes in self.groups.items()}
        numbers = (None if each is None else each[places] for each in self[4:])
        return Rows(self.probs[places], self.target[places], self.ids[places], groups, *numbers)

    def by_class(self) -> tuple[Tensor | slice, Tensor, Tensor | None]:
        """Split each row with shares of several classes into one weighted row for each of these classes.

        Returns:
            For each new row: the place of the original row, the class, and the weight, (m,) each.
        """
        if self.target.ndim == 1:
            return slice(None), self.target, self.weights
        places, classes = self.target.nonzero(as_tuple=True)
        shares = self.target[places, classes]
        return places, classes, shares if self.weights is None else shares * self.weights[places]

    def repeated(self, *, is_clustered: bool) -> "Iterator[Rows]":
        """Yield each row as often as its frequency says, in parts of `REPEATED` scores.

        The repeats of a row are independent, so they get successive identifiers, unless identifiers are of clusters.
        """
        if self.frequencies is None:
            yield self
            return
        ends = self.frequencies.cumsum(0)
        step = max(1, REPEATED // self.probs.shape[1])
        for start in range(0, int(ends[-1]), step):
            numbers = torch.arange(start, min(start + step, int(ends[-1])))
            places = torch.searchsorted(ends, numbers, right=True)
            part = self.at(places)._replace(frequencies=None)
            first = (ends - self.frequencies)[places]
            yield part if is_clustered else part._replace(ids=part.ids + numbers - first)

    def weighted_by(self, of_classes: Tensor) -> "Rows":
        """Multiply the weight of each row by the weight of its class, given ``of_classes`` (C,)."""
        weights = of_classes[self.target]
        return self._replace(weights=weights if self.weights is None else weights * self.weights)

    @staticmethod
    def joined(parts: "Sequence[Rows]") -> "Rows":
        """Concatenate one or more parts, which must have the same columns."""
        groups = {column: torch.cat([each.groups[column] for each in parts]) for column in parts[0].groups}
        probs, target, ids = (torch.cat(columns) for columns in zip(*(each[:3] for each in parts), strict=True))
        optional = zip(*(each[4:] for each in parts), strict=True)
        numbers = (None if column[0] is None else torch.cat(column) for column in optional)
        return Rows(probs, target, ids, groups, *numbers)


def names_in(values: Any) -> list[Any]:
    """Return labels or decisions as a list if they are names; an empty list if they are numbers."""
    values = values.to_numpy() if hasattr(values, "to_numpy") else values  # a pandas frame would list its columns
    plain = [] if isinstance(values, Tensor) else values.tolist() if hasattr(values, "tolist") else values
    return list(plain) if any(isinstance(each, str) for each in plain) else []


def as_numbers(argument: str, values: Any, numbers: Mapping[str, int]) -> Tensor:
    """Return labels or decisions as a tensor; each name is replaced by its number in ``numbers``."""
    if not (names := names_in(values)):
        return as_tensor(values, argument)
    if unknown := [name for name in names if name not in numbers]:
        rule = f"{argument} must be one of {quoted(list(numbers))} in each row"
        way = ": pass class_names, in the order of the columns of preds" if all(map(str.isdigit, numbers)) else ""
        raise ValueError(f"{rule}, but names {quoted(unknown[0])}{way}.")
    return torch.tensor([numbers[name] for name in names])


def column_names(values: Any) -> list[str]:
    """Return the names of the columns of a data frame; an empty list for arrays."""
    columns = list(getattr(values, "columns", ()))
    return [str(name) for name in columns] if all(isinstance(name, str | int) for name in columns) else []


def in_class_order(argument: str, values: Any, class_names: Sequence[str]) -> Any:
    """Return the columns of a data frame in the order of the classes; return arrays unchanged.

    Raises:
        ValueError: If the names of the columns are not those of the classes.
    """
    names = column_names(values)
    if not names or names == list(class_names):
        return values
    if sorted(names) != sorted(class_names):
        rule = f"{argument} must have a column for each class, {quoted(list(class_names))}"
        raise ValueError(f"{rule}, but has {quoted(names)}: rename the columns, or pass the array alone.")
    return values[[values.columns[names.index(name)] for name in class_names]]


def is_decisions(preds: Any) -> bool:
    """Return whether predictions are decisions: names, or integers (N,)."""
    if names_in(preds):
        return True
    numbers = as_tensor(preds, "preds")
    return numbers.ndim == 1 and not numbers.is_floating_point()


def check_order(preds: Any, target: Any) -> None:
    """Refuse arguments that are evidently in scikit-learn's order, the target before the predictions."""
    preds_first = "preds come first, evaluate(preds, target)"
    if isinstance(target, Mapping):
        raise ValueError(f"target must hold labels, but is a dictionary of {quoted(list(target))}: {preds_first}.")
    if not is_decisions(preds):
        scores = as_tensor(preds, "preds")
        if scores.ndim != 2 or not scores.is_floating_point():
            rule = "preds must be probabilities (N, C), also of two classes, or decisions (N,), as integers or names"
            of_one = "torch.stack([1 - p, p], 1) of the probability of class 1, or evaluate_detectors for other scores"
            way = of_one if scores.ndim == 1 and scores.is_floating_point() else preds_first
            raise ValueError(f"{rule}, but got {scores.dtype} {tuple(scores.shape)}: {way}.")
    elif not names_in(target) and ((labels := as_tensor(target, "target")).ndim > 1 or labels.is_floating_point()):
        rule = "target must hold one class for each row where preds are decisions"
        raise ValueError(f"{rule}, but is {labels.dtype} {tuple(labels.shape)}: {preds_first}.")


Prevalence = Mapping[str, float] | Sequence[float] | Tensor


def class_weights(rows: Iterable[Rows], prevalence: Prevalence, class_names: Sequence[str]) -> Tensor:
    """Return weights of classes, (C,), that give classes the requested shares; the mean weight of rows is 1.

    Args:
        rows: All rows, in parts, without frequencies. Weights that rows already have are taken into account.
        prevalence: The share of each class, ``(C,)`` or by class name; shares must sum to 1.
        class_names: The names of the C classes.

    Raises:
        ValueError: If the names differ from those of the classes, the shares do not sum to 1, or a class with a share
            has no rows.
    """
    names = class_names
    if isinstance(prevalence, Mapping):
        by_name = {str(name): share for name, share in prevalence.items()}
        if by_name.keys() != {*names}:
            raise ValueError(f"prevalence must name all classes, {quoted(names)}, but names {quoted(list(by_name))}.")
        prevalence = [by_name[name] for name in names]
    shares = as_tensor(prevalence, "prevalence").double()
    if shares.shape != (len(names),) or not (shares >= 0).all() or not sums_to_1(shares):
        rule = f"prevalence must be {len(names)} shares with the sum 1"
        raise ValueError(f"{rule}, but is {quoted(shares.tolist())}.")
    present, number = torch.zeros(len(names), dtype=torch.float64), 0
    for part in rows:
        if part.target.ndim != 1:
            raise ValueError("prevalence needs one class for each row, but target has soft labels.")
        present, number = present + part.target.bincount(part.weights, len(names)), number + len(part.ids)
    lacking = [name for name, share, rows in zip(names, shares, present, strict=True) if share > 0 and rows == 0]
    if lacking:
        raise ValueError(f"prevalence needs rows of each class that has a share, but {quoted(lacking)} has none.")
    return number * shares / present.clamp(min=1e-300)


Combine = Literal["mean", "worst"]
"""The rule that combines the rows of a unit; see ``combine`` of `mpcs_torch.evaluate`.

With ``"worst"``, each row has a probability of "this class or a worse one" for each class, and the unit gets the
highest of its rows. Differences between successive classes are then the probabilities of the unit.
"""


def order_of_severity(concern: ConcernSpec | ConcernRange | None, num_classes: int) -> Tensor:
    """Return the classes from the least to the most severe: (C,), int64.

    Class A is worse than B if mistaking A for B costs more than the reverse. If both cost the same, or without a
    concern, the later class is worse.

    Raises:
        ValueError: If these comparisons form a cycle.
    """
    places = torch.arange(num_classes)
    if concern is None:
        return places
    costs = (concern.middle if isinstance(concern, ConcernRange) else concern).matrix()
    is_worse = (costs > costs.T) | ((costs == costs.T) & (places.unsqueeze(1) > places))
    severity = is_worse.sum(1).argsort()
    if not is_worse.sum(1)[severity].equal(places):
        rule = "combine='worst' needs classes in an order of severity, but by the costs of concern some form a cycle"
        raise ValueError(f"{rule}: put the worst class last, or combine by 'mean'.")
    return severity


class DecisionUnits(NamedTuple):
    """The unit of decision of each row, and the rule that combines the rows of a unit."""

    units: Groups
    combine: Combine = "mean"
    severity: Tensor | None = None
    """(C,): the classes from the least to the most severe, for ``"worst"``."""
    column: str = ""
    """The column of units, such as patients; empty if unknown."""

    @classmethod
    def of(
        cls,
        units: Any,
        combine: Combine,
        concern: ConcernSpec | ConcernRange | None,
        num_classes: int,
        rows: int,
        column: str = "",
    ) -> Self:
        """Create units from ``units``, names (N,) or `Groups`; refuse unknown rules, and classes without an order."""
        if combine not in ("mean", "worst"):
            raise ValueError(f"combine must be 'mean' or 'worst', but got {quoted(combine)}.")
        severity = order_of_severity(concern, num_classes) if combine == "worst" else None
        return cls(group_codes("unit", units, rows), combine, severity, column)

    def note(self, class_names: Sequence[str]) -> str:
        """Return a sentence with the numbers of rows and units, and the rule that combines rows."""
        order = [] if self.severity is None else self.severity.tolist()
        names = [class_names[label] for label in (order if len(order) <= 10 else [*order[:3], *order[-3:]])]
        how = self.combine + (f" (from the least severe: {', '.join(names)})" if names else "")
        kind = f" ({self.column})" if self.column else ""
        number, rows = len(self.units.names), len(self.units.codes)
        return f"{number} units of decision{kind} of {rows} rows, combined by {how}: what follows calls a unit a row."

    def combined(self, rows: Rows, num_classes: int, *, is_clustered: bool) -> Rows:
        """Return one row for each unit. Its identifier is that of its cluster; without clusters, the unit's number.

        Raises:
            ValueError: If rows of a unit differ in groups, clusters, weights, costs or frequencies, or if the rule
                cannot combine their labels or decisions.
        """
        columns = {"weights": rows.weights, "costs": rows.costs, "frequencies": rows.frequencies}
        if rows.probs.is_floating_point():
            probs = self.probabilities(rows.probs)
        else:
            probs = self.classes(rows.probs[:, 0], num_classes, "decisions").unsqueeze(1)
        return Rows(
            probs,
            self.classes(rows.target, num_classes) if rows.target.ndim == 1 else self.probabilities(rows.target),
            self.same(rows.ids, "clusters") if is_clustered else torch.arange(len(self.units.names)),
            {column: self.same(codes, f"groups[{column!r}]") for column, codes in rows.groups.items()},
            **{name: None if each is None else self.same(each, name) for name, each in columns.items()},
        )

    def probabilities(self, probs: Tensor) -> Tensor:
        """Combine the probabilities or degrees of truth of N rows, (N, C), into those of U units, (U, C)."""
        if self.severity is None:
            return self.mean(probs)
        worst_first = self.severity.flip(0)
        reached = self.highest(probs[:, worst_first].cumsum(1))  # the probability of this class or a worse one
        by_class = torch.empty_like(reached)
        by_class[:, worst_first] = reached.diff(dim=1, prepend=torch.zeros_like(reached[:, :1]))
        return by_class

    def classes(self, labels: Tensor, num_classes: int, what: str = "labels") -> Tensor:
        """Return the worst class among the rows of each unit, (U,), given the class of each row, (N,).

        With ``"mean"``, the rows of a unit must agree. If one is a referral or coarse answer, they must always agree.
        """
        low, high = (self._reduced(labels, end) for end in ("amin", "amax"))
        if self.severity is None:
            self._refuse(low != high, what)
            return low
        is_class = self._reduced(((labels >= 0) & (labels < num_classes)).long(), "amin") == 1
        self._refuse((low != high) & ~is_class, what)
        ranks = self.severity.argsort()[labels.clamp(0, num_classes - 1)]
        return torch.where(low == high, low, self.severity[self.highest(ranks)])

    def same(self, values: Tensor, what: str) -> Tensor:
        """Return the value of each unit, (U, ...). ``values`` of the rows, (N, ...), must be equal within a unit."""
        low, high = (self._reduced(values, end) for end in ("amin", "amax"))
        self._refuse(low != high, what)
        return low

    def trials(self, scores: Tensor, is_target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean or highest score of each unit of trials, and whether the unit is a target: (U,) each."""
        reduced = self.mean if self.combine == "mean" else self.highest
        return reduced(scores), self.classes(is_target.long(), 2) == 1

    def combined_groups(self, groups: Groups, what: str) -> Groups:
        """Return the group of each unit. ``groups`` of the rows must be equal within a unit."""
        return Groups(groups.names, self.same(groups.codes, what))

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean of values (N, ...) over the rows of each unit: (U, ...), float64."""
        sums = torch.zeros(len(self.units.names), *values.shape[1:], dtype=torch.float64)
        sums.index_add_(0, self.units.codes, values.double())
        return sums / self.units.codes.bincount(minlength=len(sums)).view(-1, *[1] * (values.ndim - 1))

    def highest(self, values: Tensor) -> Tensor:
        """Return the highest of values (N, ...) over the rows of each unit: (U, ...)."""
        return self._reduced(values, "amax")

    def _reduced(self, values: Tensor, end: Literal["amin", "amax"]) -> Tensor:
        codes = self.units.codes.view(-1, *[1] * (values.ndim - 1)).expand_as(values)
        reduced = values.new_zeros(len(self.units.names), *values.shape[1:])
        return reduced.scatter_reduce(0, codes, values, end, include_self=False)

    def _refuse(self, is_wrong: Tensor, what: str) -> None:
        if is_wrong.any():
            name = quoted(self.units.names[int(is_wrong.nonzero()[0, 0])])
            ways = {"decisions": "; referrals have no order, so combine scores first (mpcs decide --unit)"}
            way = (ways | {"costs": "; combine them first"}).get(what, "")
            raise ValueError(f"{what} must be the same in all rows of a unit, but those of unit {name} differ{way}.")
