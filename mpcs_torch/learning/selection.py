"""Which epoch to keep: one metric, its direction, and what the others must not fall below."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from torchmetrics import Metric

from mpcs_torch.tables import Table

Direction = Literal["min", "max"]
Ties = Literal["first", "last"]


@dataclass(frozen=True)
class Epoch:
    """The metrics of an epoch."""

    number: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class SelectionRule:
    """The best epoch by one metric among those that keep to limits.

    Args:
        by: The metric that decides.
        directions: For each metric, ``"min"`` or ``"max"``, or a torchmetrics `Metric` (or its class) that says which
            way is better. Never guessed from a name.
        within: How far a metric may be from its own best over all epochs, such as ``{"accuracy": 0.001}``.
        at_most: Highest allowed values, such as ``{"dangerous_rate": 0.02}``.
        at_least: Lowest allowed values.
        ties: Which of equally good epochs is the better one.

    Raises:
        ValueError: If a metric has no direction, or a limit is on a metric that has none.
    """

    by: str
    directions: Mapping[str, "Direction | Metric | type[Metric]"]
    within: Mapping[str, float] = field(default_factory=dict)
    at_most: Mapping[str, float] = field(default_factory=dict)
    at_least: Mapping[str, float] = field(default_factory=dict)
    ties: Ties = "first"

    def __post_init__(self) -> None:
        resolved = {name: _direction(name, given) for name, given in self.directions.items()}
        object.__setattr__(self, "directions", resolved)
        if self.by not in resolved:
            raise ValueError(f"directions must say which way is better for {self.by!r}, but has {list(resolved)}.")
        without = [name for name in self.within if name not in resolved]
        if without:
            raise ValueError(
                f"within needs the direction of {', '.join(without)}, but directions has {list(resolved)}."
            )
        negative = {name: slack for name, slack in self.within.items() if not slack >= 0}
        if negative:
            raise ValueError(f"within must hold distances >= 0, but got {negative}.")
        if self.ties not in get_args(Ties):
            raise ValueError(f"ties must be 'first' or 'last', but got {self.ties!r}.")

    @property
    def metrics(self) -> tuple[str, ...]:
        """All metrics that the rule reads."""
        return tuple(dict.fromkeys([self.by, *self.directions, *self.at_most, *self.at_least]))

    def ranking(self, epochs: Sequence[Epoch]) -> list[Epoch]:
        """The epochs that keep to the limits, best first; an epoch whose deciding metric is NaN is never among them."""
        best = {name: self._best(epochs, name) for name in self.within}
        allowed = [epoch for epoch in epochs if self._keeps_limits(epoch, best)]
        ordered = allowed if self.ties == "first" else allowed[::-1]
        return sorted(ordered, key=lambda epoch: self._loss(epoch, self.by))  # stable, so ties stay in order

    def could_win(self, epochs: Sequence[Epoch], places: int, *, among: Sequence[Epoch] | None = None) -> list[Epoch]:
        """The epochs that are, or may yet come, among the first places, whatever epochs follow.

        Only those ``among`` compete (default: all), but limits come from all epochs.
        A later best can put epochs outside ``within``. So an epoch is out only when so many others are ranked before
        it that will stay within as long as it does.
        """
        ranking = [epoch for epoch in self.ranking(epochs) if among is None or epoch in among]
        return [
            epoch
            for i, epoch in enumerate(ranking)
            if sum(all(self._loss(other, m) <= self._loss(epoch, m) for m in self.within) for other in ranking[:i])
            < places
        ]

    def picked_by_each(self, epochs: Sequence[Epoch]) -> dict[str, Epoch]:
        """What each metric with a direction would pick on its own."""
        alone = {name: SelectionRule(name, self.directions, ties=self.ties) for name in self.directions}
        return {name: ranking[0] for name, rule in alone.items() if (ranking := rule.ranking(epochs))}

    def _loss(self, epoch: Epoch, name: str) -> float:
        """The value, turned so that lower is better."""
        return epoch.values[name] if self.directions[name] == "min" else -epoch.values[name]

    def _best(self, epochs: Sequence[Epoch], name: str) -> float:
        losses = [self._loss(epoch, name) for epoch in epochs]
        return min((loss for loss in losses if loss == loss), default=float("nan"))

    def _keeps_limits(self, epoch: Epoch, best: Mapping[str, float]) -> bool:
        # Comparisons with NaN are false, so NaN keeps no limit.
        return (
            epoch.values[self.by] == epoch.values[self.by]
            and all(self._loss(epoch, name) - best[name] <= slack for name, slack in self.within.items())
            and all(epoch.values[name] <= limit for name, limit in self.at_most.items())
            and all(epoch.values[name] >= limit for name, limit in self.at_least.items())
        )


def explain(rule: SelectionRule, epochs: Sequence[Epoch]) -> Table:
    """The pick of the rule, and of each metric alone, with what it gains or costs beside the rule's pick."""
    picked = {"the rule": ranking[0]} if (ranking := rule.ranking(epochs)) else {}
    picked |= rule.picked_by_each(epochs)
    names = list(dict.fromkeys(name for epoch in epochs for name in epoch.values))
    reference = picked.get("the rule")
    rows = [
        [picker, str(epoch.number), *(_beside(epoch, reference, name) for name in names)]
        for picker, epoch in picked.items()
    ]
    return Table(["picked by", "epoch", *names], rows)


def _beside(epoch: Epoch, reference: Epoch | None, name: str) -> str:
    if name not in epoch.values:
        return ""
    value = f"{epoch.values[name]:.6g}"
    if reference is None or reference is epoch or name not in reference.values:
        return value
    return f"{value} ({epoch.values[name] - reference.values[name]:+.3g})"


def _direction(name: str, given: "Direction | Metric | type[Metric]") -> Direction:
    if isinstance(given, str):  # a Metric turns every comparison into a Metric, which is true
        higher_is_better = {"min": False, "max": True}.get(given)
    else:
        higher_is_better = getattr(given, "higher_is_better", None)
    if not isinstance(higher_is_better, bool):
        raise ValueError(f"the direction of {name} must be 'min', 'max' or a Metric that knows, but got {given!r}.")
    return "max" if higher_is_better else "min"
