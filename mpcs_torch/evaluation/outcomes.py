"""Count the outcomes of decisions by class (correct, missed, or referred), and bound costs that are known as ranges."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import nan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange, ConcernSpec
from mpcs_torch.concern.checks import MAX_MATRIX_CLASSES, MAX_READABLE_CLASSES
from mpcs_torch.functional import mean_cost_range
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.concern.dangerous import DANGEROUS, severity_matrix
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.tables import Table, in_digits, in_percent

EVERY = "\0every"
"""The name of the group of all classes. No class can have a name with such a character."""
AT_RISK = "\0at risk"
"""The name of the group of classes that are dangerous to miss."""
DANGEROUS_ERRORS = "dangerous errors"
MISSED = "missed"
REFERRALS = "referred"
FALSE_ALARMS = "false alarms"
PRECISION = "precision"
DECIDED_RIGHT = "accuracy of the decided"
LEAST_COST = "least cost"
"""The name of a decision rule: decide for the lowest expected cost, at the middle costs."""
COLUMNS = {
    DANGEROUS_ERRORS: "dangerous_rate",
    MISSED: "error_rate",
    REFERRALS: "referral_rate",
    FALSE_ALARMS: "",
    PRECISION: "precision",
    DECIDED_RIGHT: "selective_accuracy",
}
"""The rate that a column of a table shows, by title of the column; empty if the column shows only a count."""


class Share(NamedTuple):
    """A number of rows, or a sum of weights, as a share of a whole."""

    part: float
    whole: float
    ends: Interval | None = None
    """The 95 % interval of the share."""

    @property
    def value(self) -> float:
        """``part`` / ``whole``; NaN if ``whole`` is 0."""
        return self.part / self.whole if self.whole else nan

    @property
    def counts(self) -> str:
        """The counts as text, such as ``33 of 81``."""
        return f"{number_text(self.part)} of {number_text(self.whole)}"

    @property
    def percent(self) -> str:
        """The share and its interval as text, such as ``40.7 % [25.1, 58.8]``."""
        if self.ends is None:
            return in_percent(self.value)
        low, high = self.ends
        return f"{in_percent(self.value)} [{100 * low:.3g}, {100 * high:.3g}]"

    @property
    def phrase(self) -> str:
        """The share and its interval as text for a sentence; if the share is 0, the upper end of the interval alone."""
        if self.ends is not None and self.part == 0:
            return f"but up to {in_percent(self.ends[1])} may be"
        return self.percent

    def __str__(self) -> str:
        return f"{self.counts}: {self.percent}" if self.whole else "no rows"


def number_text(number: float) -> str:
    """Format a number of rows, or a sum of weights."""
    is_whole = number >= 1000 or float(number).is_integer()
    return f"{number:.0f}" if is_whole else f"{number:.4g}"


class Outcomes(NamedTuple):
    """Numbers of rows, or sums of their weights, for a class or a group of classes. Each field has the shape (...)."""

    true: Tensor
    """The number of rows of the class or the group."""
    right: Tensor
    """The number of rows of the class or the group that are decided as the class, or as a class of the group."""
    predicted: Tensor
    """The number of rows of any class that are decided as the class, or as a class of the group."""
    referred: Tensor
    """The number of rows of the class or the group that are referred instead of decided."""
    missed: Tensor
    """The number of rows of the class or the group that are decided as a class outside it, or a set of such classes."""
    dangerous: Tensor
    """The number of rows of the class or the group whose decision is a dangerous error."""

    def mapped(self, function: Callable[[Tensor], Tensor]) -> "Outcomes":
        """Apply ``function`` to each field, and return the results."""
        return Outcomes(*map(function, self))

    def clusters(self) -> "Outcomes":
        """Count the clusters that have rows with each outcome. The fields must be (B, ...), for B clusters."""
        return self.mapped(lambda numbers: (numbers > 0).sum(0).double())

    @property
    def false_alarms(self) -> Tensor:
        """The number of rows of other classes that are decided as the class, or as a class of the group."""
        return self.predicted - self.right

    def rates(self, rows: Tensor, *, refers: bool) -> dict[str, tuple[Tensor, Tensor]]:
        """Return the numerator and the denominator of each rate, by its name; ``rows`` is the number of all rows.

        If rows may be referred (``refers``), rates of referrals replace recall and specificity.
        """
        # Shares such as 1/3 and 2/3 leave a rounding error, which may be below 0.
        negatives = (rows - self.true).clamp(min=0)
        rejected = torch.minimum((negatives - self.false_alarms).clamp(min=0), negatives)
        rates = {"precision": (self.right, self.predicted)}
        if not refers:  # these count a referral as a miss, or as correct
            rates["recall"] = (self.right, self.true)
            rates["specificity"] = (rejected, negatives)
        rates["error_rate"] = (self.missed, self.true)
        rates["dangerous_rate"] = (self.dangerous, self.true)
        if refers:
            decided = self.true - self.referred
            rates["coverage"] = (decided, self.true)
            rates["referral_rate"] = (self.referred, self.true)
            rates["selective_accuracy"] = (self.right, decided)
            rates["selective_dangerous_rate"] = (self.dangerous, decided)
        return rates


class OutcomeCounter:
    """Count the outcomes of decisions: class indices below C, numbers from C for sets of classes, or -1 (referred)."""

    def __init__(
        self, class_names: Sequence[str], concern: ConcernSpec | None, *, refers: bool
    ) -> None:
        size = len(class_names)
        self._is_whole = refers or concern is not None
        """Whether all six fields of `Outcomes` are counted; without referrals and a concern, three are enough."""
        groups: list[tuple[str, tuple[int, ...]]] = []
        if size <= MAX_READABLE_CLASSES:
            groups += [(name, (label,)) for label, name in enumerate(class_names)]
        if concern is not None:
            groups += concern.class_groups
        members = dict[str, Tensor]()
        for name, labels in groups:
            members[name] = torch.isin(torch.arange(size), torch.tensor(labels))
        self._severity = (
            severity_matrix(concern, size) if size <= MAX_MATRIX_CLASSES else None
        )
        if self._severity is not None:
            every = torch.ones(size, dtype=torch.bool)
            members |= {EVERY: every, AT_RISK: (self._severity == DANGEROUS).any(1)}
        answers = (
            torch.zeros(0, size, dtype=torch.bool) if concern is None else concern.members()
        )
        self.decisions = size + len(answers) + 1
        at_risk = members.get(AT_RISK, torch.ones(size, dtype=torch.bool))
        self.without_danger = frozenset(
            name for name, member in members.items() if not (member & at_risk).any()
        )
        """The classes and groups of classes for which no error is dangerous."""
        none = torch.zeros(1, dtype=torch.bool)
        self._groups = {
            name: (
                member,
                torch.cat([member, (answers <= member).all(1), none]),
                torch.cat([member, (answers & member).any(1), none]),
            )
            for name, member in members.items()
        }
        """For each group of classes, three masks: the classes in the group, (C,); the decisions that allow only these
        classes, (C + A + 1,); and the decisions that allow at least one of these classes, (C + A + 1,)."""

    @property
    def width(self) -> int:
        """The number of columns that `flags` returns."""
        return len(self._groups) * (6 if self._is_whole else 3)

    def flags(self, decisions: Tensor, target: Tensor) -> Tensor:
        """Return 0 or 1 for each row and field of `Outcomes`, one group after the other: (n, `width`), float64."""
        decisions = decisions % self.decisions  # a referral becomes the last decision
        is_referred = decisions == self.decisions - 1
        if self._severity is None:
            is_wrong = decisions != target
            is_dangerous = is_wrong
        else:
            severity = self._severity[target, decisions]
            is_wrong = severity > 0
            is_dangerous = severity == DANGEROUS
        columns = list[Tensor]()
        for name, (member, within, touches) in self._groups.items():
            true = member[target]
            predicted = within[decisions]
            if name == EVERY:
                right = ~is_wrong & ~is_referred
                missed = is_wrong & ~is_referred
            else:
                right = true & predicted
                missed = true & ~touches[decisions] & ~is_referred
            columns += [true, right, predicted]
            if self._is_whole:
                columns += [true & is_referred, missed, true & is_dangerous]
        if not columns:
            return torch.zeros(len(target), 0, dtype=torch.float64)
        return torch.stack(columns, dim=1).double()

    def classes_of(self, name: str) -> Tensor:
        """Return whether each class belongs to a class or a group of classes with a ``name``: (C,), bool."""
        return self._groups[name][0]

    def named(self, counts: Tensor) -> Mapping[str, Outcomes]:
        """Return the outcomes by class or group of classes, given ``counts``, (..., `width`), sums of `flags`."""
        parts = counts.reshape(*counts.shape[:-1], len(self._groups), -1).unbind(-2)
        outcomes = dict[str, Outcomes]()
        for name, part in zip(self._groups, parts, strict=True):
            true, right, predicted, *further = part.unbind(-1)
            if not further:  # no row is referred, and each error is dangerous
                wrong = true - right
                further = [0 * true, wrong, wrong]
            outcomes[name] = Outcomes(true, right, predicted, *further)
        return outcomes


def group_rate(*, refers: bool) -> str:
    """Return the name of the rate for groups of classes: "recall", or "error_rate" if rows may be referred."""
    return "error_rate" if refers else "recall"


def decisions_by_way(probs: Tensor, costs: Tensor) -> dict[str, Tensor]:
    """Return the decisions of each rule, (n,), by its name, the default first; ``probs`` may be decisions (n, 1)."""
    if not probs.is_floating_point():
        return {"as decided": probs[:, 0]}
    return {
        "most probable class": highest_class(probs)[1],
        LEAST_COST: least_risk(probs, costs),
    }


@dataclass(frozen=True)
class OverCosts:
    """Bounds of models' mean costs if costs are known as ranges. They are valid for the evaluated rows alone."""

    costs: ConcernRange
    models: Mapping[str, Mapping[str, Tensor]]
    """By model, then by decision rule: the number of rows with each pair of true class and decision, (C, K), int64. All
    other metrics use the first rule."""

    def ranges(self) -> dict[str, tuple[float, float, float]]:
        """Return three mean costs per row: at the middle costs, and the minimum and maximum over the ranges of costs.

        The keys name each model with a decision rule, and the difference of each pair of models, "B minus A". If the
        maximum of "B minus A" is below 0, B is cheaper than A at all costs.
        """
        shares = dict[str, Tensor]()
        of_models = {name: _shares(by_rule) for name, by_rule in self.models.items()}
        for name, of_rules in of_models.items():
            for rule in of_rules:
                shares[self._name(name, rule)] = of_rules[rule]
        for (a, first), (b, second) in combinations(of_models.items(), 2):
            for rule in first:
                shares[self._name(f"{b} minus {a}", rule)] = second[rule] - first[rule]
        middle = self.costs.middle.costs()
        low, high = self.costs.bounds()
        ranges = dict[str, tuple[float, float, float]]()
        for name, of_rows in shares.items():
            lowest, highest = mean_cost_range(of_rows, low, high).tolist()
            ranges[name] = (of_rows * middle).sum().item(), lowest, highest
        return ranges

    def table(self) -> Table:
        """Return the table of `ranges`."""
        rows = [
            [name, *(in_digits(value, 5) for value in ends)]
            for name, ends in self.ranges().items()
        ]
        return Table(["mean cost by decisions", "middle", "lowest", "highest"], rows)

    def sentences(self) -> list[str]:
        """Return a sentence for each model that names the uncertain cost with the largest effect on its mean cost."""
        sentences = list[str]()
        for model, counted in self.models.items():
            kind = LEAST_COST if LEAST_COST in counted else next(iter(counted))
            shares = _shares(counted)[kind]
            widths = list[float]()
            costs = self.costs.uncertain(shares != 0)
            for cost in costs:
                widths.append(
                    (cost.high - cost.low) * sum(shares[cell].item() for cell in cost.cells)
                )
            if widths:
                width = max(widths)
                cost = costs[widths.index(width)]
                depends = f"depends most on what {cost.name} costs ({cost.low:g} to {cost.high:g})"
                sentences.append(
                    f"The mean cost of {self._name(model, kind)} {depends}: by {in_digits(width, 3)} per row."
                )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Return ranges and sentences as dictionaries, lists, texts and numbers."""
        ranges = {
            name: dict(zip(("middle", "low", "high"), ends, strict=True))
            for name, ends in self.ranges().items()
        }
        return {"mean_cost": ranges, "sentences": self.sentences()}

    def _name(self, model: str, kind: str) -> str:
        return kind if len(self.models) == 1 else f"{model}, {kind}"


def _shares(counts: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the shares of rows, given numbers of rows (C, K) by decision rule."""
    return {rule: numbers.double() / numbers.sum() for rule, numbers in counts.items()}
