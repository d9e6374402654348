"""Costs of decisions where costs are known as ranges: the range of their mean, and what is the same at all costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernRange
from mpcs_torch.concern.ranges import UncertainCost
from mpcs_torch.functional import mean_cost_range
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.evaluation.chosen import ChosenMetrics

LEAST_COST = "least cost"
"""Decides by the middle costs."""
ROUNDING = 1e-12
"""As a share of the highest cost: means that differ less are equal."""


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
            decided = [probs.argmax(1), least_risk(probs, self._middle)]
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

    Statements for all costs are about the rows that were evaluated: other rows may differ by chance.
    """

    costs: ConcernRange
    models: Mapping[str, Decided]
    """By model."""

    def range_of(self, model: str, kind: str) -> tuple[float, float, float]:
        """Return the mean cost per row at the middle costs, and at the lowest and the highest that it may be."""
        counts = self.models[model][kind]
        return self._range(counts.double() / counts.sum())

    def table(self) -> Table:
        """Return a row for each way of deciding of each model."""
        rows = list[list[str]]()
        for model, counted in self.models.items():
            for kind in counted:
                name = kind if len(self.models) == 1 else f"{model}, {kind}"
                rows.append([name, *(f"{value:.5g}" for value in self.range_of(model, kind))])
        return Table(["mean cost by decisions", "middle", "lowest", "highest"], rows)

    def sentences(self) -> list[str]:
        """Say which model costs less at all costs, and which cost matters most."""
        said, kinds = list[str](), list(next(iter(self.models.values())))
        for model, counted in self.models.items():
            kind = LEAST_COST if LEAST_COST in kinds else kinds[0]
            counts, about = counted[kind], f"{model}: " if len(self.models) > 1 else ""
            influences = self._influences(counts.double() / counts.sum())
            if influences and influences[0][0] > 0:
                width, cost = influences[0]
                ends = f"{cost.low:g} to {cost.high:g}"
                depends = f"the mean cost ({kind}) depends most on what {cost.name} costs ({ends})"
                said.append(f"{about}{depends}: by {width:.3g} per row.")
        if len(self.models) == 1:
            return [f"{sentence[0].upper()}{sentence[1:]}" for sentence in said]
        return said + [
            f"{kind[0].upper()}{kind[1:]}: {sentence}" for kind in kinds for sentence in self._comparisons(kind)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as dictionaries, lists, texts and numbers."""
        models = {
            model: {
                "mean_cost": {
                    kind: dict(zip(("middle", "low", "high"), self.range_of(model, kind), strict=True))
                    for kind in counted
                },
            }
            for model, counted in self.models.items()
        }
        return {"models": models, "verdicts": self.sentences()}

    def _range(self, shares: Tensor) -> tuple[float, float, float]:
        lowest, highest = mean_cost_range(shares, *self.costs.bounds()).tolist()
        return (shares * self.costs.middle.costs()).sum().item(), lowest, highest

    def _influences(self, shares: Tensor) -> list[tuple[float, UncertainCost]]:
        """Return by how much each cost alone can change a mean cost, or a difference of two, the most first."""
        costs = [
            ((cost.high - cost.low) * shares[cost.cells].sum().abs().item(), cost)
            for cost in self.costs.uncertain(shares != 0)
        ]
        return sorted(costs, key=lambda each: -each[0])

    def _comparisons(self, kind: str) -> list[str]:
        """Compare the model that costs least at the middle costs, in a way of deciding, with each other one."""
        by_model = {name: counted[kind] for name, counted in self.models.items()}
        shares = {name: counts.double() / counts.sum() for name, counts in by_model.items()}
        best = min(shares, key=lambda name: self._range(shares[name])[0])
        return [self._comparison(best, other, shares[other] - shares[best]) for other in shares if other != best]

    def _comparison(self, best: str, other: str, difference: Tensor) -> str:
        """Say whether a model costs less than another, whose mean cost is higher at the middle costs."""
        middle, lowest, highest = self._range(difference)
        rounding = ROUNDING * self.costs.bounds()[1].max().item()
        if max(-lowest, highest) <= rounding:
            return f"{best} and {other} cost the same at all these costs."
        by = f"{max(lowest, 0):.3g} to {highest:.3g} per row"
        if lowest > rounding:
            return f"{best} costs less than {other} at all these costs: by {by}."
        if lowest >= -rounding:
            return f"{best} costs no more than {other} at any of these costs: less by {by}."
        said = f"{best} costs less than {other} at the middle costs, by {middle:.3g} per row"
        if middle <= rounding:
            said = f"{best} and {other} cost the same at the middle costs"
        said += f", but not at all these costs: {other} may cost {-lowest:.3g} less to {highest:.3g} more."
        costs = self.costs.middle.costs()
        for _, cost in self._influences(difference):
            slope = difference[cost.cells].sum().item()
            now = costs[cost.cells][0].item()
            turn = now - middle / slope if slope else cost.low
            if cost.low < turn < cost.high:
                where = f"{'more' if slope < 0 else 'less'} than {turn:.3g}"
                return f"{said} With the other costs in the middle, {other} costs less where {cost.name} costs {where}."
        return f"{said} No cost alone turns it, with the others in the middle."
