"""Costs of decisions where costs are known as ranges: the range of their mean, and what is the same at all costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange
from mpcs_torch.functional import mean_cost_range
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.functional.inputs.most_probable import highest_class
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.evaluation.chosen import ChosenMetrics

LEAST_COST = "least cost"
"""Decides by the middle costs."""
Decided = Mapping[str, Tensor]
"""The numbers of rows of each true class (row) with each decision (column): int64 (C, K) by the way of deciding of a
model, of which the first is that of the other metrics."""


class RangeSums:
    """Count decisions by their true class, for costs that are known as ranges."""

    def __init__(self, chosen: "ChosenMetrics") -> None:
        assert chosen.ranges is not None
        self._middle = chosen.ranges.middle.costs()
        kinds = ["as decided"] if chosen.is_decided else ["most probable class", LEAST_COST]
        self._decisions = {kind: torch.zeros(self._middle.shape, dtype=torch.int64) for kind in kinds}

    def add(self, probs: Tensor, target: Tensor) -> None:
        """Add rows: probabilities (n, C), or decisions (n, 1), and classes (n,)."""
        columns = self._middle.shape[1]
        if len(self._decisions) == 1:
            decided = [torch.where(probs[:, 0] < 0, columns - 1, probs[:, 0])]
        else:
            decided = [highest_class(probs)[1], least_risk(probs, self._middle)]
        for counts, decisions in zip(self._decisions.values(), decided, strict=True):
            pairs = target * columns + decisions
            counts += pairs.bincount(minlength=counts.numel()).view_as(counts)

    def merge(self, other: "RangeSums") -> None:
        """Add the counts of other rows."""
        for kind, counts in other._decisions.items():
            self._decisions[kind] += counts

    def counted(self) -> Decided:
        """Return the counts of all rows so far."""
        return {kind: counts.clone() for kind, counts in self._decisions.items()}


@dataclass(frozen=True)
class OverCosts:
    """Bound the costs of models' decisions, for costs that are known as ranges.

    All is about the rows that were evaluated: other rows may differ by chance, also where a difference has one sign.
    """

    costs: ConcernRange
    models: Mapping[str, Decided]
    """By model."""

    def ranges(self) -> dict[str, tuple[float, float, float]]:
        """Return mean costs per row: at the middle costs, and the lowest and the highest that each may be.

        By way of deciding, of each model and of the difference of two, whose range says which costs less at all costs.
        """
        shares = {name: {kind: n.double() / n.sum() for kind, n in by.items()} for name, by in self.models.items()}
        named = {self._name(name, kind): each for name, by in shares.items() for kind, each in by.items()}
        for (a, first), (b, second) in combinations(shares.items(), 2):
            named |= {self._name(f"{b} minus {a}", kind): second[kind] - first[kind] for kind in first}
        middle, bounds = self.costs.middle.costs(), self.costs.bounds()
        ends = {name: mean_cost_range(each, *bounds).tolist() for name, each in named.items()}
        return {name: ((each * middle).sum().item(), *ends[name]) for name, each in named.items()}

    def table(self) -> Table:
        """Return a row for each of `ranges`."""
        rows = [[name, *(f"{value:.5g}" for value in ends)] for name, ends in self.ranges().items()]
        return Table(["mean cost by decisions", "middle", "lowest", "highest"], rows)

    def sentences(self) -> list[str]:
        """Say which cost matters most to the decisions of each model."""
        said = list[str]()
        for model, counted in self.models.items():
            kind = LEAST_COST if LEAST_COST in counted else next(iter(counted))
            shares = counted[kind].double() / counted[kind].sum()
            widths = [
                ((cost.high - cost.low) * sum(shares[cell].item() for cell in cost.cells), cost)
                for cost in self.costs.uncertain(shares != 0)
            ]
            if widths:
                width, cost = max(widths, key=lambda each: each[0])
                depends = (
                    f"depends most on what {cost.name} costs ({cost.low:g} to {cost.high:g}): by {width:.3g} per row"
                )
                said.append(f"The mean cost of {self._name(model, kind)} {depends}.")
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, texts and numbers."""
        ranges = {name: dict(zip(("middle", "low", "high"), ends, strict=True)) for name, ends in self.ranges().items()}
        return {"mean_cost": ranges, "sentences": self.sentences()}

    def _name(self, model: str, kind: str) -> str:
        return kind if len(self.models) == 1 else f"{model}, {kind}"
