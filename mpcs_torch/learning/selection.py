"""Rank epochs by one metric, with limits on others."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import isclose
from operator import le
from typing import Literal

from torchmetrics import Metric

from mpcs_torch.errors import require
from mpcs_torch.functional.inputs.cautions import EvaluationWarning
from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.tables import Table

Direction = Literal["min", "max"]
Ties = Literal["first", "last"]
ROUNDING = 1e-6
"""The relative difference that counts as rounding, as of metrics in float32."""


@dataclass(frozen=True)
class Epoch:
    """An epoch and its metrics."""

    number: int
    values: Mapping[str, float]


@dataclass(frozen=True)
class SelectionRule:
    """Rank the epochs that are within limits by one metric.

    Args:
        by: The metric that ranks the epochs.
        directions: For each metric, ``"min"`` or ``"max"``, or a torchmetrics `Metric` (or its class) whose
            ``higher_is_better`` is set. A direction is never guessed from a name.
        within: The largest allowed distance of a metric from its best value over all epochs, such as
            ``{"accuracy": 0.001}``.
        at_most: The highest allowed values, such as ``{"dangerous_rate": 0.02}``.
        at_least: The lowest allowed values.
        ties: Whether the ``"first"`` or the ``"last"`` of equally good epochs ranks higher.

    Raises:
        ValueError: If ``by`` or a metric in ``within`` has no direction, a distance is negative or ``ties`` unknown.
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
        if without := ", ".join(name for name in self.within if name not in resolved):
            raise ValueError(f"within needs the direction of {without}, but directions has {list(resolved)}.")
        negative = {name: slack for name, slack in self.within.items() if not slack >= 0}
        require(not negative, "within must hold distances >= 0", negative)
        check_choice("ties", self.ties, Ties)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Return the names of all metrics that the rule reads."""
        return tuple(dict.fromkeys([self.by, *self.directions, *self.at_most, *self.at_least]))

    def ranking(self, epochs: Sequence[Epoch]) -> list[Epoch]:
        """Return the epochs within the limits, best first; an epoch whose ranking metric is NaN is left out."""
        best = {}
        for name in self.within:
            losses = [self._loss(epoch, name) for epoch in epochs]
            best[name] = min((loss for loss in losses if loss == loss), default=float("nan"))
        allowed = [epoch for epoch in epochs if self._keeps_limits(epoch, best)]
        ordered = allowed if self.ties == "first" else allowed[::-1]
        return sorted(ordered, key=lambda epoch: self._loss(epoch, self.by))  # stable, so ties stay in order

    def could_win(self, epochs: Sequence[Epoch], places: int, *, among: Sequence[Epoch] | None = None) -> list[Epoch]:
        """Return the epochs that are, or could still become, the best ``places`` epochs as more epochs follow.

        Only the epochs in ``among`` compete (default: all), but the limits come from all epochs. A later best value can
        move epochs outside ``within``. So an epoch is out only if at least ``places`` others rank before it and will
        stay within the limits at least as long.
        """
        ranking = [epoch for epoch in self.ranking(epochs) if among is None or epoch in among]
        losses = [[self._loss(epoch, name) for name in self.within] for epoch in ranking]

        def outranking(i: int) -> Iterator[int]:
            return (j for j in range(i) if all(map(le, losses[j], losses[i])))

        return [epoch for i, epoch in enumerate(ranking) if len(list(islice(outranking(i), places))) < places]

    def picked_by_each(self, epochs: Sequence[Epoch]) -> dict[str, Epoch]:
        """Return the epoch that each metric with a direction would pick on its own."""
        alone = {name: SelectionRule(name, self.directions, ties=self.ties) for name in self.directions}
        return {name: ranking[0] for name, rule in alone.items() if (ranking := rule.ranking(epochs))}

    def _loss(self, epoch: Epoch, name: str) -> float:
        """Return the value of a metric, negated if higher is better."""
        return epoch.values[name] if self.directions[name] == "min" else -epoch.values[name]

    def _keeps_limits(self, epoch: Epoch, best: Mapping[str, float]) -> bool:
        # Comparisons with NaN are false, so NaN is outside every limit.
        return (
            epoch.values[self.by] == epoch.values[self.by]
            and all(_is_at_most(self._loss(epoch, name), best[name] + slack) for name, slack in self.within.items())
            and all(_is_at_most(epoch.values[name], limit) for name, limit in self.at_most.items())
            and all(_is_at_most(-epoch.values[name], -limit) for name, limit in self.at_least.items())
        )


def _is_at_most(value: float, limit: float) -> bool:
    """Tell whether a value is at most a limit, or above it by rounding alone."""
    return value <= limit or isclose(value, limit, rel_tol=ROUNDING)


def explain(rule: SelectionRule, epochs: Sequence[Epoch]) -> Table:
    """Return a table of the picks of the rule and of each metric alone, with differences from the pick of the rule."""
    picked = {"the rule": ranking[0]} if (ranking := rule.ranking(epochs)) else {}
    picked |= rule.picked_by_each(epochs)
    names = list(dict.fromkeys(name for epoch in epochs for name in epoch.values))
    reference = picked.get("the rule")
    rows = []
    for picker, epoch in picked.items():
        cells = {name: f"{value:.6g}" for name, value in epoch.values.items()}
        if reference is not None and reference is not epoch:
            for name in cells.keys() & reference.values.keys():
                cells[name] += f" ({epoch.values[name] - reference.values[name]:+.3g})"
        rows.append([picker, str(epoch.number), *(cells.get(name, "") for name in names)])
    return Table(["picked by", "epoch", *names], rows)


def warn_of_pick(epochs: int, by: str, where: str) -> list[EvaluationWarning]:
    """Warn that the values of a picked epoch look better on the samples that it was picked by."""
    told = f"the epoch was picked of {epochs} by {by} on {where}: its values there look better than on new samples"
    return [EvaluationWarning("E5", told)] if epochs > 1 else []


def _direction(name: str, given: "Direction | Metric | type[Metric]") -> Direction:
    if isinstance(given, str):  # a Metric compared with a string is a Metric, which is true
        higher_is_better = {"min": False, "max": True}.get(given)
    else:
        higher_is_better = getattr(given, "higher_is_better", None)
    if not isinstance(higher_is_better, bool):
        rule = "must be 'min', 'max' or a Metric with higher_is_better"
        raise ValueError(f"the direction of {name} {rule}, but got {given!r}.")
    return "max" if higher_is_better else "min"
