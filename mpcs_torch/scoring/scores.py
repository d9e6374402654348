"""The values of a file of predictions, and the tables that show them."""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from torch import Tensor

from mpcs_torch.functional.probability.generalized import ProbabilityMeans
from mpcs_torch.functional.probability.measured import MeasuredProbabilities
from mpcs_torch.functional.quality.class_rates import class_rates
from mpcs_torch.scoring.undefined import undefined_values
from mpcs_torch.tables import Table

Interval = tuple[float, float]
ClassIntervals = Mapping[str, Mapping[str, Interval]]
"""By class, and by rate as in `Scores.per_class`."""
MOST_CLASSES = 30
"""With more classes, they are not listed one by one."""


class Scores(NamedTuple):
    """The values of a file of predictions."""

    rows: int
    class_names: list[str]
    values: dict[str, float]
    """By metric."""
    confusion: Tensor | None
    """int64 (C, C), rows true classes; None for soft labels."""
    reported: ProbabilityMeans | None
    measured: MeasuredProbabilities | None
    notes: Sequence[str] = ()
    """Metrics that were left out, and the reasons."""
    intervals: Mapping[str, Interval] = MappingProxyType({})
    """By metric: 95 % intervals, of those that have one."""
    class_intervals: ClassIntervals = MappingProxyType({})
    """The 95 % intervals of the rates of classes."""
    has_concern: bool = False
    """Whether a concern says which errors matter."""
    file_notes: Sequence[str] = ()
    """Remarks on how the file was read: columns that were left out, rounded probabilities."""

    def table(self, names: Sequence[str] | None = None) -> Table:
        """Return a row for each metric, or for some; with a column of intervals if there are any."""
        rows = [[name, f"{self.values[name]:.6g}"] for name in (self.values if names is None else names)]
        if not self.intervals:
            return Table(["metric", "value"], rows)
        return Table(["metric", "value", "95 %"], [[*row, self.interval(row[0])] for row in rows])

    def interval(self, name: str) -> str:
        """Return the interval of a metric as text, empty if it has none."""
        found = self.intervals.get(name)
        return "" if found is None else f"{found[0]:.4g} to {found[1]:.4g}"

    def undefined(self) -> dict[str, str]:
        """Return why metrics are NaN or infinite, by metric."""
        return undefined_values(self.values, self.confusion, self.class_names)

    def remarks(self) -> list[str]:
        """Return how the file was read, and why metrics have no value, in sentences."""
        by_reason: dict[str, list[str]] = {}
        for name, reason in self.undefined().items():
            by_reason.setdefault(reason, []).append(f"{name} is {self.values[name]:g}")
        return [*self.file_notes, *(f"{', '.join(names)}: {reason}." for reason, names in by_reason.items())]

    def per_class(self) -> dict[str, dict[str, float]]:
        """Return samples, precision, recall and error rate of each class; empty for soft labels."""
        if self.confusion is None:
            return {}
        columns = {"samples": self.confusion.sum(dim=1), **class_rates(self.confusion)._asdict()}
        return {
            name: {column: values[label].item() for column, values in columns.items()}
            for label, name in enumerate(self.class_names)
        }

    def warnings(self) -> list[str]:
        """Return what the values say against using the predictions as they are, and what was left out."""
        told = list(self.notes)
        least, most = (self.values.get(name, math.nan) for name in ("least_concern_cost", "expected_concern"))
        if least > most:
            told.append(
                f"decisions with the minimum expected concern cost more ({least:.6g}) than deciding for the most "
                f"probable class ({most:.6g}), probably because the probabilities are not calibrated (mpcs calibrate)"
            )
        return told

    def class_table(self) -> Table | None:
        """Return a row for each class; None for soft labels, and where there are more than `MOST_CLASSES`."""
        rows = self.per_class()
        if not rows or len(rows) > MOST_CLASSES:
            return None
        header = ["class", "samples", "precision", "recall", "error rate"]
        found = self.class_intervals
        cells = [
            [name, *(_cell(value, found.get(name, {}).get(rate)) for rate, value in row.items())]
            for name, row in rows.items()
        ]
        return Table(header, cells)


def _cell(value: float, interval: Interval | None) -> str:
    if interval is None:
        return f"{value:.6g}"
    return f"{value:.4g} ({interval[0]:.3g} to {interval[1]:.3g})"
