"""Combine the rows of each unit of decision, such as a patient, into one row."""

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, Self

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.errors import InvalidValueError, quoted
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.unit_sums import places_by_code
from mpcs_torch.functional.inputs.arrays import as_tensor
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.functional.inputs.groups import Groups, group_codes
from mpcs_torch.functional.inputs.sum_tolerance import SUM_TOLERANCE, sums_to_1

Combine = Literal["mean", "worst"] | Callable[[Tensor], Tensor]
"""The rule that combines the rows of a unit of decision, such as a patient; see ``combine`` of `mpcs_torch.evaluate`.

With ``"worst"``, each row has a probability of "this class or a worse one" for each class. The unit gets the highest
probability of its rows. Differences between successive classes are the probabilities of the unit's classes.
"""


def order_of_severity(
    concern: ConcernSpec | ConcernRange | None, num_classes: int
) -> Tensor:
    """Return the classes from the least to the most severe: (C,), int64.

    Class A is worse than B if mistaking A for B costs more than the reverse. If both cost the same, or without a
    concern, the later class is worse.

    Raises:
        ValueError: If these comparisons form a cycle.
    """
    places = torch.arange(num_classes)
    if concern is None:
        return places
    known = concern.middle if isinstance(concern, ConcernRange) else concern
    costs = known.mpcs_weights()
    is_later = places.unsqueeze(1) > places
    is_worse = torch.where(costs == costs.T, is_later, costs > costs.T)
    severity = is_worse.sum(1).argsort()
    # Without a cycle, the least severe class is worse than no other class, the next one than one class, and so on.
    if not is_worse.sum(1)[severity].equal(places):
        raise InvalidValueError("order_of_severity", "combine='worst'")
    return severity


class DecisionUnits(NamedTuple):
    """The unit of decision of each row, such as the patient, and the rule that combines the rows of a unit."""

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
        """Create units from ``units``, the name of each row's unit; raise a ValueError if ``combine`` is unknown."""
        if not callable(combine) and combine not in ("mean", "worst"):
            raise InvalidValueError("combination", "combine", combine)
        severity = order_of_severity(concern, num_classes) if combine == "worst" else None
        return cls(group_codes("unit", units, rows), combine, severity, column)

    def note(self, class_names: Sequence[str]) -> str:
        """Return a sentence with the numbers of rows and units, and the rule that combines rows."""
        how = str(self.combine) if isinstance(self.combine, str) else "a function"
        if self.severity is not None:
            order = self.severity.tolist()
            if len(order) > 10:
                order = [*order[:3], *order[-3:]]
            names = ", ".join(class_names[label] for label in order)
            how += f" (from the least severe: {names})"
        kind = f" ({self.column})" if self.column else ""
        number = len(self.units.names)
        rows = len(self.units.codes)
        return f"{number} units of decision{kind} of {rows} rows, combined by {how}: what follows calls a unit a row."

    def combined(self, rows: Rows, num_classes: int, *, is_clustered: bool) -> Rows:
        """Return one row for each unit. Its identifier is that of its cluster; without clusters, the unit's number.

        Raises:
            ValueError: If rows of a unit differ in groups, clusters, weights, costs or frequencies, or if the rule
                cannot combine their labels or decisions.
        """
        if rows.probs.is_floating_point():
            probs = self.probabilities(rows.probs)
        else:
            probs = self.classes(rows.probs[:, 0], num_classes, "decisions").unsqueeze(1)
        is_soft = rows.target.ndim == 2
        target = (
            self.probabilities(rows.target)
            if is_soft
            else self.classes(rows.target, num_classes)
        )
        ids = torch.arange(len(self.units.names))
        if is_clustered:
            ids = self.same(rows.ids, "clusters")
        groups = dict[str, Tensor]()
        for column, codes in rows.groups.items():
            groups[column] = self.same(codes, f"groups[{column!r}]")
        others = dict[str, Any]()
        for name in ("weights", "costs", "frequencies"):
            values = getattr(rows, name)
            if values is not None:
                others[name] = self.same(values, name)
        return Rows(probs, target, ids, groups, **others)

    def probabilities(self, probs: Tensor) -> Tensor:
        """Combine the probabilities or degrees of truth of N rows, (N, C), into those of U units, (U, C)."""
        if self.combine == "mean":
            return self.mean(probs)
        if self.severity is not None:
            worst_first = self.severity.flip(0)
            # The probability of each class or a worse one, and what a class adds to that of the next worse class.
            reached = self.highest(probs[:, worst_first].cumsum(1))
            nothing = torch.zeros_like(reached[:, :1])
            by_class = torch.empty_like(reached)
            by_class[:, worst_first] = reached.diff(dim=1, prepend=nothing)
            return by_class
        places = places_by_code(self.units.codes)
        combined = [
            self._by_function(probs[places[code]], name)
            for code, name in enumerate(self.units.names)
        ]
        return torch.stack(combined)

    def classes(self, labels: Tensor, num_classes: int, what: str = "labels") -> Tensor:
        """Combine the classes of rows, (N,), into one class for each unit, (U,).

        If classes differ within a unit, they are combined as one-hot probabilities, and the most probable class is
        taken. With ``"mean"``, or if one of them is a referral or a set of classes, a ValueError is raised instead.
        """
        low, high = self._reduced(labels, "amin"), self._reduced(labels, "amax")
        differs = low != high
        if not differs.any():
            return low
        if self.combine == "mean":
            self._refuse(differs, what)
        are_classes = (low >= 0) & (high < num_classes)
        self._refuse(differs & ~are_classes, what)
        # A referral is left only in units whose rows all are referred, and which keep this: any class may stand for it.
        classes = labels.clamp(0, num_classes - 1)
        one_hot = torch.nn.functional.one_hot(classes, num_classes).double()
        by_class = self.probabilities(one_hot)
        is_highest = by_class == by_class.amax(1, keepdim=True)
        self._refuse(differs & (is_highest.sum(1) > 1), what)
        return torch.where(differs, highest_class(by_class)[1], low)

    def same(self, values: Tensor, what: str) -> Tensor:
        """Return the value of each unit, (U, ...); the ``values`` of rows, (N, ...), must be equal within a unit."""
        low, high = self._reduced(values, "amin"), self._reduced(values, "amax")
        self._refuse(low != high, what)
        return low

    def trials(self, scores: Tensor, is_target: Tensor) -> tuple[Tensor, Tensor]:
        """Return each unit's mean score (with ``"worst"``, the highest), and whether it is a target: (U,) each."""
        if callable(self.combine):
            raise InvalidValueError("combination_of_scores", "combine")
        reduced = self.mean if self.combine == "mean" else self.highest
        return reduced(scores), self.classes(is_target.long(), 2) == 1

    def combined_groups(self, groups: Groups, what: str) -> Groups:
        """Return the group of each unit; the rows' ``groups`` must be equal within a unit."""
        return Groups(groups.names, self.same(groups.codes, what))

    def mean(self, values: Tensor) -> Tensor:
        """Return the mean of values (N, ...) over the rows of each unit: (U, ...), float64."""
        return self._reduced(values.double(), "mean")

    def highest(self, values: Tensor) -> Tensor:
        """Return the highest of values (N, ...) over the rows of each unit: (U, ...)."""
        return self._reduced(values, "amax")

    def _reduced(self, values: Tensor, how: Literal["amin", "amax", "mean"]) -> Tensor:
        codes = self.units.codes.view(-1, *[1] * (values.ndim - 1)).expand_as(values)
        reduced = values.new_zeros(len(self.units.names), *values.shape[1:])
        return reduced.scatter_reduce(0, codes, values, how, include_self=False)

    def _refuse(self, is_wrong: Tensor, what: str) -> None:
        if is_wrong.any():
            name = quoted(self.units.names[int(is_wrong.nonzero()[0, 0])])
            codes = {"decisions": "same_decisions_in_unit", "costs": "same_costs_in_unit"}
            raise InvalidValueError(codes.get(what, "same_in_unit"), what, unit=name)

    def _by_function(self, rows: Tensor, name: str) -> Tensor:
        assert callable(self.combine)
        values = as_tensor(self.combine(rows), "combine").detach().double().cpu()
        is_valid = (values >= 0) & (values <= 1 + SUM_TOLERANCE)
        is_fit = values.shape == rows.shape[1:] and bool(is_valid.all())
        # Degrees of truth need not sum to 1, but what is combined from probabilities must.
        if not is_fit or (sums_to_1(rows) and not sums_to_1(values)):
            raise InvalidValueError(
                "combined", "combine", values.tolist(), number=rows.shape[1], unit=name
            )
        return values
