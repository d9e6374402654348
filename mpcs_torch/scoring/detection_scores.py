"""The metrics of a detector as a table and as named numbers."""

from collections.abc import Sequence
from typing import NamedTuple

from mpcs_torch.functional import DetectionCost, DetectionSummary, OperatingPoint, meets_rule_of_30
from mpcs_torch.scoring.bootstrap import EQUAL_ERROR
from mpcs_torch.tables import Table

Interval = tuple[float, float]
CONFIDENCE = 0.95


class Value(NamedTuple):
    """A metric of a detector and its value."""

    name: str
    value: float
    interval: Interval | None = None
    cost: DetectionCost | None = None
    """The error rates and threshold behind the value; for the equal error rate, those where the rates differ least."""
    rates: tuple[Interval, Interval] | None = None
    """The intervals of the miss rate and of the false-alarm rate; None if the threshold was chosen on these trials."""


class DetectionScores(NamedTuple):
    """The metrics of a detector."""

    points: Sequence[OperatingPoint]
    is_llr: bool
    summary: DetectionSummary
    values: list[Value]

    def named(self) -> dict[str, float]:
        """Return all numbers by name: values, ends of intervals, thresholds and error rates."""
        named: dict[str, float] = {}
        for name, value, interval, cost, rates in self.values:
            named[name] = value
            if interval is not None:
                named |= {f"{name}, low": interval[0], f"{name}, high": interval[1]}
            if cost is not None:
                details = {"threshold": cost.threshold, "miss rate": cost.p_miss, "false-alarm rate": cost.p_fa}
                named |= {f"{name}, {key}": number.item() for key, number in details.items()}
            for rate, ends in zip(("miss rate", "false-alarm rate"), rates or (), strict=False):
                named |= {f"{name}, {rate}, {end}": number for end, number in zip(("low", "high"), ends, strict=True)}
        return named

    def value(self, name: str) -> float | None:
        """Return the value of a name; None if there is none."""
        return next((found.value for found in self.values if found.name == name), None)

    def table(self) -> Table:
        """Return a table with a row for each metric; an asterisk marks rates based on fewer than 30 errors."""
        header = ["metric", "value", f"{100 * CONFIDENCE:g} %", "threshold", "miss rate, %", "false-alarm rate, %"]
        rows = []
        for value in self.values:
            interval = "" if value.interval is None else f"{value.interval[0]:.4g} to {value.interval[1]:.4g}"
            rows.append([value.name, f"{value.value:.5g}", interval, *self._cost_cells(value)])
        return Table(header, rows)

    def _cost_cells(self, value: Value) -> list[str]:
        if value.cost is None:
            return ["", "", ""]
        counts = self.summary.counts
        trials, rates = (int(counts.targets), int(counts.nontargets)), (value.cost.p_miss, value.cost.p_fa)
        cells = [_rate(rate.item(), number) for rate, number in zip(rates, trials, strict=True)]
        if value.rates is not None:
            cells = [
                f"{cell} ({100 * low:.3g} to {100 * high:.3g})"
                for cell, (low, high) in zip(cells, value.rates, strict=True)
            ]
        return [f"{value.cost.threshold.item():.5g}", *cells]


def _rate(rate: float, trials: int) -> str:
    """Format a rate in percent."""
    return f"{100 * rate:.3g}{'' if meets_rule_of_30(round(rate * trials)) else '*'}"


def _is_off_the_steps(value: Value) -> bool:
    """Return whether no threshold has the equal error rate that is shown."""
    if value.name != EQUAL_ERROR or value.cost is None:
        return False
    rates = value.cost.p_miss.item(), value.cost.p_fa.item()
    return any(f"{100 * rate:.3g}" != f"{100 * value.value:.3g}" for rate in rates)


def notes(scores: Sequence[DetectionScores], cluster: str | None) -> list[str]:
    """Return what a reader of the table must know: what costs are divided by, and what the intervals assume."""
    told = ["Costs are divided by that of the better constant decision (accept all or reject all)."]
    # Tables of several detectors do not show the rates.
    if len(scores) == 1 and any(_is_off_the_steps(value) for value in scores[0].values):
        told.append(
            "The equal error rate is read off the convex hull of the ROC (ROCCH), whose points mix two thresholds at "
            "random; the rates beside it are those of one actual threshold, the one where they differ least."
        )
    has_interval = {value.name for each in scores for value in each.values if value.interval is not None}
    if cluster is not None:
        told.append(f"95 % intervals: bootstrap of whole clusters ({cluster}).")
    elif has_interval:
        told.append(
            "95 % intervals assume independent trials: bootstrap for the equal error rate (interpolated between "
            "thresholds), the area and Cllr; Clopper-Pearson for error rates, and for costs combined from them."
        )
    told.append(
        "Metrics whose threshold is the best on these trials have no interval, because none is known to hold; "
        "--development learns thresholds on others."
    )
    if len(scores) == 1 and any("*" in cell for row in scores[0].table().rows for cell in row):
        told.append("* fewer than 30 errors: may be off by more than 30 %.")
    return told
