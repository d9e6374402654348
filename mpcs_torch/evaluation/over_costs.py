"""Bound the mean cost of decisions if costs are known as ranges."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernRange
from mpcs_torch.functional import mean_cost_range
from mpcs_torch.functional.concern.decision import least_risk
from mpcs_torch.functional.inputs.decisions import highest_class
from mpcs_torch.tables import Table, in_digits

LEAST_COST = "least cost"
"""The decision with the lowest risk at the middle costs."""


def decisions_by_way(probs: Tensor, costs: Tensor) -> dict[str, Tensor]:
    """Return the decisions, (n,), by each way to decide, the default first; ``probs`` may also be decisions, (n, 1)."""
    if not probs.is_floating_point():
        return {"as decided": probs[:, 0]}
    return {"most probable class": highest_class(probs)[1], LEAST_COST: least_risk(probs, costs)}


@dataclass(frozen=True)
class OverCosts:
    """Bounds of the mean costs of models' decisions, if costs are known as ranges.

    The bounds hold for the evaluated rows alone. New rows may differ by chance, even if a difference has the same sign
    at all costs.
    """

    costs: ConcernRange
    models: Mapping[str, Mapping[str, Tensor]]
    """For each model and way to decide: the number of rows with each pair of true class and decision, (C, K), int64.

    All other metrics use the first way to decide.
    """

    def ranges(self) -> dict[str, tuple[float, float, float]]:
        """Return the mean cost per row, by name: at the middle costs, and its minimum and maximum over all costs.

        There is an entry for each model and way to decide, and one for the difference between each pair of models. If
        the whole range of "B minus A" is below 0, B is cheaper than A at all costs.
        """
        shares = {name: {kind: n.double() / n.sum() for kind, n in by.items()} for name, by in self.models.items()}
        named = {self._name(name, kind): each for name, by in shares.items() for kind, each in by.items()}
        for (a, first), (b, second) in combinations(shares.items(), 2):
            named |= {self._name(f"{b} minus {a}", kind): second[kind] - first[kind] for kind in first}
        middle, bounds = self.costs.middle.costs(), self.costs.bounds()
        ends = {name: mean_cost_range(each, *bounds).tolist() for name, each in named.items()}
        return {name: ((each * middle).sum().item(), *ends[name]) for name, each in named.items()}

    def table(self) -> Table:
        """Return the table of `ranges`."""
        rows = [[name, *(in_digits(value, 5) for value in ends)] for name, ends in self.ranges().items()]
        return Table(["mean cost by decisions", "middle", "lowest", "highest"], rows)

    def sentences(self) -> list[str]:
        """Return a sentence for each model that names the uncertain cost with the largest effect on its mean cost."""
        sentences = list[str]()
        for model, counted in self.models.items():
            kind = LEAST_COST if LEAST_COST in counted else next(iter(counted))
            shares = counted[kind].double() / counted[kind].sum()
            costs = self.costs.uncertain(shares != 0)
            widths = [(cost.high - cost.low) * sum(shares[cell].item() for cell in cost.cells) for cost in costs]
            if widths:
                cost, width = costs[widths.index(max(widths))], max(widths)
                depends = f"depends most on what {cost.name} costs ({cost.low:g} to {cost.high:g})"
                sentences.append(
                    f"The mean cost of {self._name(model, kind)} {depends}: by {in_digits(width, 3)} per row."
                )
        return sentences

    def to_dict(self) -> dict[str, Any]:
        """Return ranges and sentences as dictionaries, lists, texts and numbers."""
        ranges = {name: dict(zip(("middle", "low", "high"), ends, strict=True)) for name, ends in self.ranges().items()}
        return {"mean_cost": ranges, "sentences": self.sentences()}

    def _name(self, model: str, kind: str) -> str:
        return kind if len(self.models) == 1 else f"{model}, {kind}"
