"""The values of a model on some rows, with intervals, for all rows and for groups of rows."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import hypot, inf, isfinite, isinf, isnan, nan
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

from mpcs_torch.errors import shown
from mpcs_torch.evaluation.first_screen import DetectorMetric
from mpcs_torch.evaluation.intervals_and_bounds import End
from mpcs_torch.evaluation.reasons import NO_VALUE, NOT_REQUESTED, ONE_LOOK, Reason
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, CONFIDENCE_TEXT, LEVEL
from mpcs_torch.functional.measure import Direction
from mpcs_torch.tables import Table, in_digits, in_table

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.evaluation.unit_values import UnitValues
    from mpcs_torch.metrics.metric_entry import MetricEntry


class Measured(NamedTuple):
    """The value of a metric on some rows."""

    value: float
    interval: Interval | None
    reason: Reason
    """The reason for no interval; without meaning if there is one."""


NOT_MEASURED = Measured(nan, None, NOT_REQUESTED)
"""The entry of a metric that was not measured, of which tables show nothing."""


def measured_as(metric: str) -> str:
    """Return the name by which units know a rate of a class: sensitivity is another word for recall."""
    rate, bracket, of_class = metric.partition("[")
    if rate == "sensitivity" and bracket:
        return f"recall[{of_class}"
    return metric


@dataclass(frozen=True)
class Scores:
    """The values of a model on some rows."""

    rows: int
    entries: "Sequence[MetricEntry | DetectorMetric]"
    """The metrics, in the order of tables."""
    values: Mapping[str, float]
    """The value of each metric."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """The 95 % interval of each metric that has one."""
    without_interval: Mapping[str, Reason] = field(default_factory=dict)
    """The reason for each metric that has no interval; empty if intervals were not requested."""
    notes: Sequence[str] = ()
    """Sentences on metrics that were left out, with the reasons."""
    file_notes: Sequence[str] = ()
    """Notes on how a file was read, such as on columns that were left out and on rounded probabilities."""
    units: "UnitValues | None" = None
    """Computes the bounds of values and differences for requirements; None for detectors, for crossed clusters, and if
    intervals were not requested."""

    def by_class(self) -> dict[str, Measured]:
        """Return the rates of classes, such as ``recall[malignant]``; empty for detectors."""
        return {}

    @property
    def is_weighted(self) -> bool:
        """Whether the numbers of rows of classes are sums of weights."""
        return False

    @property
    def class_group_rates(self) -> dict[str, Direction]:
        """The rates of groups of classes that tables show, by name, each with its better direction, "min" or "max"."""
        return {}

    def find(self, metric: str) -> Measured | None:
        """Return the value of a metric, or of the rate of a class, with its interval; None if it was not measured."""
        if metric not in self.values:
            return self.by_class().get(metric)
        without_interval = self.without_interval.get(metric, NOT_REQUESTED)
        reason = self.undefined().get(metric, without_interval)
        return Measured(self.values[metric], self.intervals.get(metric), reason)

    def bound(self, metric: str, end: End) -> float | Reason:
        """Return the bound of a value for requirements, or the reason why it has none.

        Without units, it is the end of the interval. ``metric`` must be measured: see `find`.
        """
        if self.units is not None:
            bound = self.units.bound(measured_as(metric), end)
            if bound != NO_VALUE:
                return bound
        measured = self.find(metric)  # may say why there is no value
        assert measured is not None
        return end_of_interval(measured.interval, measured.reason, end)

    def value_range(self, metric: str) -> tuple[float, float] | None:  # noqa: ARG002  # for classifiers
        """Return the lowest and the highest possible value of a metric; None if unbounded or unknown."""
        return None

    def headline(self) -> str:
        """Return the number of rows as text."""
        return f"{self.rows} rows"

    def sizes(self) -> dict[str, int]:
        """Return the numbers of rows by kind, such as ``{"rows": 100}``."""
        return {"rows": self.rows}

    def about(self) -> dict[str, Any]:
        """Return the facts that are the same for all models, such as the number of rows, as plain types."""
        return dict(self.sizes())

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a table with a row for each metric in ``names`` (default: all), with intervals if there are any."""
        if names is None:
            names = list(self.values)
        rows = [[name, self.value_text(name)] for name in names]
        if not self.intervals:
            return Table(["metric", "value"], rows)
        return Table(
            ["metric", "value", CONFIDENCE_TEXT],
            [[*row, self.interval(row[0])] for row in rows],
        )

    def value_text(self, name: str) -> str:
        """Return a value as text, with the digits of intervals."""
        value = self.values[name]
        counts = [entry.name for entry in self.entries if entry.is_count]
        if name in counts or not isfinite(value):
            return in_table(value)
        return in_digits(value, 4)

    def class_parts(self, title: str) -> list[Table | str]:  # noqa: ARG002  # for classifiers
        """Return an empty list; for classifiers, return tables and sentences by class."""
        return []

    def interval(self, name: str) -> str:
        """Return the interval of a metric as text; empty if it has none."""
        return interval_text(self.intervals[name]) if name in self.intervals else ""

    def undefined(self) -> dict[str, Reason]:
        """Return the reason why a value is NaN or infinite, for each metric with such a value."""
        return {
            name: undefined_reason(value)
            for name, value in self.values.items()
            if not isfinite(value)
        }

    def remarks(self, only: Collection[str] | None) -> list[str]:
        """Return sentences on how the file was read, and on why metrics have no value or no interval.

        If given, ``only`` are the names of the metrics that are shown.
        """
        undefined = defaultdict[Reason, list[str]](list)
        for name, reason in self.undefined().items():
            if only is None or name in only:
                undefined[reason].append(f"{name} is {self.values[name]:g}")
        unsure = defaultdict[Reason, list[str]](list)
        for name, reason in self.without_interval.items():
            if only is None or name in only:
                unsure[reason].append(name)
        remarks = list(self.file_notes)
        for reason, values in undefined.items():
            remarks.append(f"{', '.join(values)}: {reason}.")
        for reason, names in unsure.items():
            remarks.append(f"No interval for {', '.join(names)}: {reason}.")
        return remarks

    def table_remarks(self) -> list[str]:
        """Return sentences that explain the table of values."""
        return []

    def to_dict(self) -> dict[str, Any]:
        """Return values and intervals as dictionaries, lists, strings and numbers."""
        plain: dict[str, Any] = {"metrics": dict(self.values)}
        if self.intervals:
            plain |= {
                "intervals": dict(self.intervals),
                "without_interval": self._reasons(self.without_interval),
            }
        return plain

    def _reasons(self, reasons: Mapping[str, Reason]) -> dict[str, str]:
        return {name: str(reason) for name, reason in reasons.items()}


def with_reasons(measured: Mapping[str, tuple[float, Interval | Reason]]) -> dict[str, Any]:
    """Return the fields of `Scores` with the values, their intervals, and the reasons why some have none.

    Values that are NaN, and those for which no intervals were requested, need no reason.
    """
    values = {name: value for name, (value, _) in measured.items()}
    intervals = dict[str, Interval]()
    reasons = dict[str, Reason]()
    for name, (value, ends) in measured.items():
        if not isinstance(ends, Reason):
            intervals[name] = ends
        elif ends != NOT_REQUESTED and not isnan(value):
            reasons[name] = ends
    return {"values": values, "intervals": intervals, "without_interval": reasons}


def end_of_interval(ends: Interval | None, reason: Reason, end: End) -> float | Reason:
    """Return the end of an interval as a bound; without an interval, the ``reason``."""
    if ends is None:
        return reason
    if end.confidence != CONFIDENCE:
        return ONE_LOOK
    low, high = ends
    return high if end.is_upper else low


def undefined_reason(value: float) -> Reason:
    """Return the general reason why a value is infinite or NaN."""
    text = "it is infinite on these rows" if isinf(value) else "it is 0 / 0 on these rows"
    return Reason("undefined", text=text)


def interval_text(interval: Interval, digits: int = 4) -> str:
    """Format an interval, such as "0.1941 to 0.9937"."""
    return f"{in_digits(interval[0], digits)} to {in_digits(interval[1], digits)}"


def with_ends(text: str, ends: Interval | None, digits: int = 4) -> str:
    """Add the interval of a value to its ``text``, such as "0.75 (0.1941 to 0.9937)"."""
    return text if ends is None else f"{text} ({interval_text(ends, digits)})"


MAX_SHOWN = 40
"""The maximum number of groups in a table; if there are more, only the worst are shown."""
MAX_NAMED = 5
"""The maximum number of groups that a sentence names."""
MAX_COLUMNS = 6
"""The maximum number of metrics in a table of groups; if there are more, only the main metrics are shown."""


class GroupScores(NamedTuple):
    """The scores of a model for each group of rows, by the values of a column such as ``site``."""

    model: str
    column: str
    pooled: Scores
    """The scores of all rows."""
    groups: Mapping[str, Scores]
    """The scores of each group."""

    @property
    def directions(self) -> dict[str, Direction | None]:
        """The better direction ("min", "max", None) of each metric. Counts are left out if there are other metrics."""
        without_counts = [entry for entry in self.pooled.entries if not entry.is_count]
        entries = without_counts or self.pooled.entries
        return {entry.name: entry.direction for entry in entries}

    @property
    def has_intervals(self) -> bool:
        """Whether any group has intervals."""
        return any(scores.intervals for scores in self.groups.values())

    @property
    def ranked_by(self) -> str:
        """The first metric by which groups are ranked."""
        return self._ranking[0]

    @property
    def _ranking(self) -> list[str]:
        """The metrics by which groups are ranked; each metric breaks the ties of the metrics before it."""
        ranks = [
            (entry.group_rank, entry.name)
            for entry in self.pooled.entries
            if entry.group_rank is not None
        ]
        if ranks:
            return [name for _, name in sorted(ranks)]
        names = list(self.directions)
        directed = [name for name in names if self.directions[name] is not None]
        return [(directed or names)[0]]

    def order(self) -> str:
        """Return the order of the groups as text, such as "the worst mpcs first"."""
        return f"the worst {self.ranked_by} first"

    def worst_first(self) -> list[str]:
        """Return the names of groups, the worst value of `ranked_by` first; groups without a value come last."""

        def goodness(group: str) -> list[float]:
            ranks = list[float]()
            for name in self._ranking:
                value = self.groups[group].values[name]
                is_better_high = self.directions.get(name) == "max"
                rank = value if is_better_high else -value
                ranks.append(inf if isnan(value) else rank)
            return ranks

        return sorted(self.groups, key=goodness)

    def may_be_worst(self) -> list[str]:
        """Return the groups that may be the worst by `ranked_by`, the worst value first.

        The truly worst group is one of them with 95 % confidence, although the first was chosen for its value. A group
        is left out if its value is better than that of the first by a one-sided test, at 5 % divided by the number of
        other groups. The interval of the difference comes from the intervals of both groups. A group without one is not
        left out. The result is empty if no group has an interval, if the metric has no better direction, or if fewer
        than two groups have a value.

        References:
            Gupta: On Some Multiple Decision (Selection and Ranking) Rules, Technometrics 7, 1965. Zou, Donner:
            Construction of Confidence Limits About Effect Measures, Statistics in Medicine 27, 2008, Eq. 6.
        """
        metric = self.ranked_by
        is_min = self.directions[metric] == "min"
        known = dict[str, tuple[float, Interval]]()
        for name in self.worst_first():
            measured = self.groups[name].find(metric)
            if measured is not None and isfinite(measured.value):
                known[name] = (measured.value, measured.interval or (-inf, inf))
        if self.directions[metric] is None or len(known) < 2 or not self.has_intervals:
            return []
        # The ends of 95 % intervals are moved to those of this test, as if they were of a normal distribution.
        quantile = NormalDist().inv_cdf
        ratio = quantile(1 - LEVEL / (len(known) - 1)) / quantile((1 + CONFIDENCE) / 2)
        # Of the two intervals, the ends count that face each other. If lower is better, the worst value is the highest.
        worst, (low_of_worst, high_of_worst) = next(iter(known.values()))
        to_end_of_worst = abs(worst - (low_of_worst if is_min else high_of_worst))
        names = list[str]()
        for name, (value, (low, high)) in known.items():
            to_end = abs(value - (high if is_min else low))
            if abs(worst - value) <= ratio * hypot(to_end_of_worst, to_end):
                names.append(name)
        return names

    def about_worst(self) -> list[str]:
        """Return a sentence on how sure the worst group is, which was chosen for its value; nothing if unknown."""
        names = [shown(name, 40) for name in self.may_be_worst()]
        if not names:
            return []
        listed = ", ".join(names[:MAX_NAMED])
        if len(names) > MAX_NAMED:
            listed += f" and {len(names) - MAX_NAMED} more"
        worst = listed if len(names) == 1 else f"one of {len(names)} groups: {listed}"
        start = f"{names[0]} has the worst {self.ranked_by}, but was chosen for it."
        return [f"{start} With {CONFIDENCE_TEXT} confidence, the worst is {worst}."]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores of the groups, the worst first, and their summaries, as plain types."""
        by_name = {
            name: {**self.groups[name].sizes(), **self.groups[name].to_dict()}
            for name in self.worst_first()
        }
        plain = {
            "model": self.model,
            "column": self.column,
            "groups": by_name,
            **self.summaries(),
        }
        if self.has_intervals:
            plain["may_be_worst"] = self.may_be_worst()
        return plain

    def summaries(self) -> dict[str, dict[str, float]]:
        """Return the worst value, the mean and the spread (highest minus lowest) of each metric over the groups.

        Groups without a value, such as those without samples of a class, are left out. Counts have no summaries, since
        larger groups have larger counts. The worst value is NaN for a metric without a better direction. If there is
        only one group, the result is empty.
        """
        if len(self.groups) < 2:
            return {}
        worst = dict[str, float]()
        mean = dict[str, float]()
        spread = dict[str, float]()
        for name, direction in (self.directions | self.pooled.class_group_rates).items():
            values = list[float]()
            for scores in self.groups.values():
                measured = scores.find(name)
                if measured is not None and not isnan(measured.value):
                    values.append(measured.value)
            if not values:
                values = [nan]
            worst[name] = nan
            if direction == "min":
                worst[name] = max(values)
            elif direction == "max":
                worst[name] = min(values)
            mean[name] = sum(values) / len(values)
            spread[name] = max(values) - min(values)
        return {"worst": worst, "mean of groups": mean, "spread": spread}

    def main_metrics(self) -> list[str]:
        """Return the metrics of tables: all metrics, or only the main ones if there are many."""
        metrics = list(self.directions)
        if len(metrics) > MAX_COLUMNS:
            metrics = [entry.name for entry in self.pooled.entries if entry.in_group_tables]
        if not metrics:
            metrics = list(self.directions)[:MAX_COLUMNS]
        return [*metrics, *self.pooled.class_group_rates]

    def table(self, metrics: Sequence[str] | None = None) -> Table:
        """Return a table of the groups, the worst first, followed by the `summaries`, and by the values of all rows.

        There is a column for each metric in ``metrics`` (default: `main_metrics`), with intervals.
        """
        metrics = self.main_metrics() if metrics is None else metrics
        groups = self.worst_first()
        sizes = self.pooled.sizes()
        rows = list[list[str]]()
        for name in groups[:MAX_SHOWN]:
            scores = self.groups[name]
            numbers = map(str, scores.sizes().values())
            rows.append([shown(name, 40), *numbers, *_cells(scores, metrics)])
        without_sizes = [""] * len(sizes)
        without_values = [""] * len(metrics)
        if len(groups) > MAX_SHOWN:
            title = f"and {len(groups) - MAX_SHOWN} others"
            rows.append([title, *without_sizes, *without_values])
        for title, summary in self.summaries().items():
            cells = [_cell(summary[metric]) for metric in metrics]
            rows.append([title, *without_sizes, *cells])
        rows.append(["pooled", *map(str, sizes.values()), *_cells(self.pooled, metrics)])
        return Table([shown(self.column, 40), *sizes, *metrics], rows)


def _cells(scores: Scores, metrics: Sequence[str]) -> list[str]:
    """Return a cell for each metric, with its value and interval; empty if it has no value."""
    cells = list[str]()
    for metric in metrics:
        measured = scores.find(metric) or NOT_MEASURED
        cells.append(with_ends(_cell(measured.value), measured.interval, 3))
    return cells


def _cell(value: float) -> str:
    return "" if isnan(value) else in_digits(value, 4)
