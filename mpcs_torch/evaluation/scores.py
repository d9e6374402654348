"""The values of the rows of a model, or of a group of them, with their intervals."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from torch import Tensor

from mpcs_torch.errors import shown
from mpcs_torch.functional.probability.generalized import ProbabilityMeans
from mpcs_torch.functional.probability.measured import MeasuredProbabilities
from mpcs_torch.functional.quality.class_counts import class_counts
from mpcs_torch.functional.quality.class_rates import class_rates
from mpcs_torch.tables import Table

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.by_name import MetricEntry

Interval = tuple[float, float]
MOST_CLASSES = 30
"""With more classes, they are not listed one by one."""
NAMED = 3
"""The most classes that a reason names."""


class Scores(NamedTuple):
    """The values of some rows."""

    rows: int
    class_names: list[str]
    entries: "tuple[MetricEntry, ...]"
    """The metrics, in the order in which they are shown."""
    values: Mapping[str, float]
    """By metric."""
    intervals: Mapping[str, Interval] = MappingProxyType({})
    """By metric: 95 % intervals, of those that have one."""
    without_interval: Mapping[str, str] = MappingProxyType({})
    """Why other metrics have none, by metric; empty if none were asked for."""
    confusion: Tensor | None = None
    """int64 (C, C), rows true classes; None for soft labels and for groups."""
    class_intervals: Mapping[str, Mapping[str, Interval]] = MappingProxyType({})
    """The 95 % intervals of the rates of classes, by class and rate."""
    reported: ProbabilityMeans | None = None
    measured: MeasuredProbabilities | None = None
    notes: Sequence[str] = ()
    """Metrics that were left out, and the reasons."""
    file_notes: Sequence[str] = ()
    """Remarks on how a file was read: columns that were left out, rounded probabilities."""

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a row for each metric, or for some; with a column of intervals if there are any."""
        rows = [[name, f"{self.values[name]:.6g}"] for name in (self.values if names is None else names)]
        if not self.intervals:
            return Table(["metric", "value"], rows)
        return Table(["metric", "value", "95 %"], [[*row, self.interval(row[0])] for row in rows])

    def interval(self, name: str) -> str:
        """Return the interval of a metric as text, empty if it has none."""
        low, high = self.intervals.get(name, (math.nan, math.nan))
        return "" if math.isnan(low) else f"{low:.4g} to {high:.4g}"

    def undefined(self) -> dict[str, str]:
        """Return why metrics are NaN or infinite, by metric."""
        unfit = [entry for entry in self.entries if not math.isfinite(self.values[entry.name])]
        unpredicted = absent = ""
        if unfit and self.confusion is not None:
            unpredicted = self._named(self.confusion.sum(dim=0), "never predicted")
            absent = self._named(self.confusion.sum(dim=1), "without samples")
        return {entry.name: _reason(entry, self.values[entry.name], unpredicted, absent) for entry in unfit}

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

    def per_class(self) -> dict[str, dict[str, float]]:
        """Return samples, precision, recall and error rate of each class; empty for soft labels."""
        if self.confusion is None:
            return {}
        columns = {"samples": self.confusion.sum(dim=1), **class_rates(class_counts(self.confusion))._asdict()}
        return {
            name: {column: values[label].item() for column, values in columns.items()}
            for label, name in enumerate(self.class_names)
        }

    def warnings(self) -> list[str]:
        """Return reasons not to use the predictions as they are, and what was left out."""
        notes = list(self.notes)
        least, most = (self.values.get(name, math.nan) for name in ("least_concern_cost", "expected_concern"))
        if least > most:
            notes.append(
                f"decisions with the minimum expected concern cost more ({least:.6g}) than deciding for the most "
                f"probable class ({most:.6g}), probably because the probabilities are not calibrated (mpcs calibrate)"
            )
        return notes

    def class_table(self) -> Table | None:
        """Return a row for each class; None for soft labels, and where there are more than `MOST_CLASSES`."""
        rows = self.per_class()
        if not rows or len(rows) > MOST_CLASSES:
            return None
        cells = [
            [name, *(_cell(value, self.class_intervals.get(name, {}).get(rate)) for rate, value in row.items())]
            for name, row in rows.items()
        ]
        return Table(["class", "samples", "precision", "recall", "error rate"], cells)

    def _named(self, counts: Tensor, what: str) -> str:
        """Return a sentence about the classes with a count of 0; empty if there is none."""
        empty = [self.class_names[label] for label in (counts == 0).nonzero().flatten().tolist()]
        if not empty:
            return ""
        named = ", ".join(f"'{shown(name)}'" for name in empty[:NAMED])
        more = f" and {len(empty) - NAMED} more" if len(empty) > NAMED else ""
        return f"class {named} is {what}" if len(empty) == 1 else f"classes {named}{more} are {what}"


def _reason(entry: "MetricEntry", value: float, unpredicted: str, absent: str) -> str:
    match entry.undefined:
        case "unpredicted" if unpredicted:
            return unpredicted
        case "absent" if absent:
            return absent
        case "either":
            return "; ".join(filter(None, (unpredicted, absent))) or "precision and recall are 0"
        case "constant":
            return "a decision that is always the same would cost nothing"
        case "probability 0" if math.isinf(value):
            return "the probability of a label is 0"
    return "it is infinite on these rows" if math.isinf(value) else "it is 0 / 0 on these rows"


def _cell(value: float, interval: Interval | None) -> str:
    if interval is None:
        return f"{value:.6g}"
    return f"{value:.4g} ({interval[0]:.3g} to {interval[1]:.3g})"
