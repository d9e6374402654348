"""The values of the rows of a model, with their intervals, and those of each group of rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, isinf, isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from mpcs_torch.errors import shown
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.comparison.significance import Direction
from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT
from mpcs_torch.tables import Table, in_table

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.register import MetricEntry


Measured = tuple[float, Interval | None, str]
"""A value, with its interval or the reason why it has none."""
ALL_IN_ONE = 12
"""Up to this number of metrics, such as those that were named, one table shows them in their order."""


class DetectorMetric(NamedTuple):
    """A metric of a detector, as tables show it; the fields mean what they mean in `MetricEntry`."""

    name: str
    title: str
    """As a sentence says it."""
    direction: Direction = "min"
    in_group_tables: bool = False
    group_rank: int | None = None
    compared_as: str = ""
    section: str = "main"
    is_count: bool = False


def sections_of(entries: "Sequence[MetricEntry | DetectorMetric]", *, has_concern: bool) -> list[list[str]]:
    """Return the names of metrics, in any order, in the sections that show them, none empty.

    Without a concern that says which errors matter, metrics of concern repeat the error rate, so only MPCS comes first.
    """
    if len(entries) <= ALL_IN_ONE:
        return [[entry.name for entry in entries]]
    leading = ("main", "concern") if has_concern else ("main",)
    first = [entry.name for entry in entries if entry.section in leading]
    others = [entry.name for entry in entries if entry.section not in leading]
    return [names for names in (first, others) if names]


@dataclass(frozen=True)
class Scores:
    """The values of some rows."""

    rows: int
    entries: "Sequence[MetricEntry | DetectorMetric]"
    """The metrics, in the order in which they are shown."""
    values: Mapping[str, float]
    """By metric."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """By metric: 95 % intervals, of those that have one."""
    without_interval: Mapping[str, str] = field(default_factory=dict)
    """Why other metrics have none, by metric; empty without intervals."""
    notes: Sequence[str] = ()
    """Metrics that were left out, and the reasons."""
    file_notes: Sequence[str] = ()
    """Remarks on how a file was read: columns that were left out, rounded probabilities."""

    def by_class(self) -> dict[str, Measured]:
        """Return the rates of classes, such as ``recall[malignant]``."""
        return {}

    @property
    def is_weighted(self) -> bool:
        """Whether rows of classifiers count by weights, in all that is counted by class."""
        return False

    @property
    def of_class_groups(self) -> dict[str, Direction]:
        """The rates of groups of classes in tables of metrics, and which values are better."""
        return {}

    def find(self, metric: str) -> Measured | None:
        """Return what is known of a metric, or of a rate by class; None if it was not measured."""
        if metric not in self.values:
            return self.by_class().get(metric)
        reason = self.undefined().get(metric) or self.without_interval.get(metric, "intervals were not requested")
        return self.values[metric], self.intervals.get(metric), reason

    def headline(self) -> str:
        """Say how many rows there are."""
        return f"{self.rows} rows"

    def sizes(self) -> dict[str, int]:
        """Return the numbers of rows, by what they are called."""
        return {"rows": self.rows}

    def about(self) -> dict[str, Any]:
        """Return what all models have in common, for `to_dict`."""
        return dict(self.sizes())

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a row for each metric, or for some; with a column of intervals if there are any."""
        rows = [[name, in_table(self.values[name])] for name in (self.values if names is None else names)]
        if not self.intervals:
            return Table(["metric", "value"], rows)
        return Table(["metric", "value", CONFIDENCE_TEXT], [[*row, self.interval(row[0])] for row in rows])

    def class_table(self) -> Table | None:
        """Return a row for each class; None if there are none to show."""
        return None

    def confusion_table(self) -> Table | None:
        """Return how classes were decided where rows may be referred; None elsewhere."""
        return None

    def remarks_of_referrals(self) -> list[str]:
        """Return the work that referrals make, in sentences."""
        return []

    def interval(self, name: str) -> str:
        """Return the interval of a metric as text, empty if it has none."""
        return interval_text(self.intervals[name]) if name in self.intervals else ""

    def undefined(self) -> dict[str, str]:
        """Return why metrics are NaN or infinite, by metric."""
        return {name: reason_of(value) for name, value in self.values.items() if not isfinite(value)}

    def remarks(self) -> list[str]:
        """Return how the file was read, and why metrics have no value or no interval, in sentences."""
        valueless, bare = dict[str, list[str]](), dict[str, list[str]]()
        for name, reason in self.undefined().items():
            valueless.setdefault(reason, []).append(f"{name} is {self.values[name]:g}")
        for name, reason in self.without_interval.items():
            bare.setdefault(reason, []).append(name)
        return [
            *self.file_notes,
            *(f"{', '.join(names)}: {reason}." for reason, names in valueless.items()),
            *(f"No interval for {', '.join(names)}: {reason}." for reason, names in bare.items()),
        ]

    def table_remarks(self) -> list[str]:
        """Return the notes for the table, in sentences."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return values and intervals as dictionaries, lists, texts and numbers."""
        plain: dict[str, Any] = {"metrics": dict(self.values)}
        if self.intervals:
            plain |= {"intervals": dict(self.intervals), "without_interval": dict(self.without_interval)}
        return plain


def reason_of(value: float) -> str:
    """Return why a value is infinite or NaN, if no more is known."""
    return "it is infinite on these rows" if isinf(value) else "it is 0 / 0 on these rows"


def interval_text(interval: Interval, digits: int = 4) -> str:
    """Return an interval as text."""
    return f"{interval[0]:.{digits}g} to {interval[1]:.{digits}g}"


SELECTED = " (selected as worst)"
"""Said of the group that is picked for its value, of at least `SELECTS`: its interval has less than its confidence."""
SELECTS = 5
MAX_SHOWN = 40
"""The number of groups above which a table shows only the worst ones."""
MAX_COLUMNS = 6
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
        return self._ranking[0]

    @property
    def _ranking(self) -> list[str]:
        """The metrics by which groups are ranked: each where those before are equal."""
        ranks = [(entry.group_rank, entry.name) for entry in self.pooled.entries if entry.group_rank is not None]
        directed = (name for name, direction in self.directions.items() if direction is not None)
        return [name for _, name in sorted(ranks)] or [next(directed, next(iter(self.directions)))]

    def order(self) -> str:
        """Say how the groups are ordered."""
        return f"the worst {self.ranked_by} first"

    def worst_first(self) -> list[str]:
        """Return the groups in the order of `ranked_by`, those without a value last."""
        signs = {name: 1 if self.directions.get(name) == "max" else -1 for name in self._ranking}

        def badness(group: str) -> list[float]:
            values = (sign * self.groups[group].values[name] for name, sign in signs.items())
            return [inf if isnan(value) else value for value in values]

        return sorted(self.groups, key=badness)

    def summaries(self) -> dict[str, dict[str, float]]:
        """Return the worst value, the mean and the spread (highest minus lowest) of each metric over the groups.

        Groups without a value are left out, such as those without samples of a class. Counts, which grow with a group,
        have no summaries, and metrics of which neither high nor low values are better have no worst value. A single
        group has none either.
        """
        if len(self.groups) < 2:
            return {}
        summary: dict[str, dict[str, float]] = {"worst": {}, "mean of groups": {}, "spread": {}}
        for name, direction in (self.directions | self.pooled.of_class_groups).items():
            values = (found[0] for scores in self.groups.values() if (found := scores.find(name)))
            finite = [value for value in values if isfinite(value)] or [nan]
            worst = {"min": max(finite), "max": min(finite), None: nan}[direction]
            spread = max(finite) - min(finite)
            for title, value in zip(summary, (worst, sum(finite) / len(finite), spread), strict=True):
                summary[title][name] = value
        return summary

    def main_metrics(self) -> list[str]:
        """Return the metrics of tables: all if they are few."""
        metrics = list(self.directions)
        if len(metrics) > MAX_COLUMNS:
            metrics = [entry.name for entry in self.pooled.entries if entry.in_group_tables]
        return [*(metrics or list(self.directions)[:MAX_COLUMNS]), *self.pooled.of_class_groups]

    def table(self, metrics: Sequence[str] | None = None) -> Table:
        """Return a row for each group, the worst first, then `summaries`, and all rows.

        There is a column for each of the metrics (default: the main ones), with the intervals of groups and all rows.
        """
        metrics = self.main_metrics() if metrics is None else metrics
        groups, sizes = self.worst_first(), self.pooled.sizes()
        rows = [
            [
                shown(name, 40) + (SELECTED if place == 0 and self.has_intervals and len(groups) >= SELECTS else ""),
                *map(str, self.groups[name].sizes().values()),
                *_cells(self.groups[name], metrics),
            ]
            for place, name in enumerate(groups[:MAX_SHOWN])
        ]
        if len(groups) > MAX_SHOWN:
            rows.append([f"and {len(groups) - MAX_SHOWN} others", *[""] * (len(sizes) + len(metrics))])
        for title, summary in self.summaries().items():
            rows.append([title, *[""] * len(sizes), *(_cell(summary[metric]) for metric in metrics)])
        rows.append(["pooled", *map(str, sizes.values()), *_cells(self.pooled, metrics)])
        return Table([shown(self.column, 40), *sizes, *metrics], rows)


def _cells(scores: Scores, metrics: Sequence[str]) -> list[str]:
    """Return the value of each metric with its interval, such as ``0.0475 (0.029 to 0.073)``."""
    known = (scores.find(metric) or (nan, None, "") for metric in metrics)
    return [_cell(value) + ("" if ends is None else f" ({interval_text(ends, 3)})") for value, ends, _ in known]


def _cell(value: float) -> str:
    return "" if isnan(value) else f"{value:.4g}"
