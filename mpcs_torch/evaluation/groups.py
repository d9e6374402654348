"""The metrics of a model for each group of rows: which is the worst, and how far apart they are."""

from collections.abc import Mapping, Sequence
from math import inf, isfinite, isnan, nan
from typing import NamedTuple

from mpcs_torch.errors import shown
from mpcs_torch.evaluation.scores import Direction, Scores
from mpcs_torch.tables import Table

MOST_SHOWN = 40
"""The number of groups above which a table shows only the worst ones."""
MOST_COLUMNS = 6
"""The number of metrics above which a table, for a terminal, shows only the main ones."""


class GroupScores(NamedTuple):
    """The metrics of a model for each group of a column."""

    model: str
    column: str
    pooled: Scores
    """Of all rows."""
    groups: Mapping[str, Scores]
    """By group."""

    @property
    def directions(self) -> dict[str, Direction | None]:
        """By metric: which values are better. Counts, which grow with a group, are left out, unless all are counts."""
        entries = [entry for entry in self.pooled.entries if not entry.is_count] or self.pooled.entries
        return {entry.name: entry.direction for entry in entries}

    @property
    def has_intervals(self) -> bool:
        """Whether a group has any."""
        return any(scores.intervals for scores in self.groups.values())

    @property
    def ranked_by(self) -> str:
        """The metric by which groups are ranked."""
        ranks = [(entry.group_rank, entry.name) for entry in self.pooled.entries if entry.group_rank is not None]
        directed = (name for name, direction in self.directions.items() if direction is not None)
        return min(ranks)[1] if ranks else next(directed, next(iter(self.directions)))

    def order(self) -> str:
        """Say how the groups are ordered."""
        return f"the worst {self.ranked_by} first"

    def worst_first(self) -> list[str]:
        """Return the groups in the order of `ranked_by`, those without a value last."""
        name = self.ranked_by
        sign = 1 if self.directions[name] == "max" else -1

        def key(group: str) -> float:
            value = self.groups[group].values[name]
            return inf if isnan(value) else sign * value

        return sorted(self.groups, key=key)

    def summaries(self) -> dict[str, dict[str, float]]:
        """Return the worst value, the mean and the spread (highest minus lowest) of each metric over the groups.

        Groups without a value are left out, such as those without samples of a class. Counts, which grow with a group,
        have no summaries, and metrics of which neither high nor low values are better have no worst value.
        """
        summary: dict[str, dict[str, float]] = {"worst": {}, "mean of groups": {}, "spread": {}}
        for name, direction in self.directions.items():
            values = (scores.values[name] for scores in self.groups.values())
            finite = [value for value in values if isfinite(value)] or [nan]
            worst = {"min": max(finite), "max": min(finite), None: nan}[direction]
            spread = max(finite) - min(finite)
            for title, value in zip(summary, (worst, sum(finite) / len(finite), spread), strict=True):
                summary[title][name] = value
        return summary

    def main_metrics(self) -> list[str]:
        """Return the metrics of tables: all if they are few."""
        metrics = list(self.directions)
        if len(metrics) > MOST_COLUMNS:
            metrics = [entry.name for entry in self.pooled.entries if entry.in_group_tables]
        return metrics or list(self.directions)[:MOST_COLUMNS]

    def table(self, metrics: Sequence[str] | None = None) -> Table:
        """Return a row for each group, the worst first, then the worst values, the mean, the spread, and all rows.

        Groups and all rows have their intervals.

        Args:
            metrics: A column for each. Default: the main ones.
        """
        metrics = self.main_metrics() if metrics is None else metrics
        groups, sizes = self.worst_first(), self.pooled.sizes()
        rows = [
            [shown(name, 40), *map(str, self.groups[name].sizes().values()), *_cells(self.groups[name], metrics)]
            for name in groups[:MOST_SHOWN]
        ]
        if len(groups) > MOST_SHOWN:
            rows.append([f"and {len(groups) - MOST_SHOWN} others", *[""] * (len(sizes) + len(metrics))])
        for title, summary in self.summaries().items():
            rows.append([title, *[""] * len(sizes), *(_cell(summary[metric]) for metric in metrics)])
        rows.append(["pooled", *map(str, sizes.values()), *_cells(self.pooled, metrics)])
        return Table([shown(self.column, 40), *sizes, *metrics], rows)


def _cells(scores: Scores, metrics: Sequence[str]) -> list[str]:
    """Return the value of each metric with its interval, such as ``0.0475 (0.029 to 0.073)``."""
    cells = []
    for metric in metrics:
        low, high = scores.intervals.get(metric, (nan, nan))
        cells.append(_cell(scores.values[metric]) + ("" if isnan(low) else f" ({low:.3g} to {high:.3g})"))
    return cells


def _cell(value: float) -> str:
    return "" if isnan(value) else f"{value:.4g}"
