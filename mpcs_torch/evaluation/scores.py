"""The values of the rows of a model, or of a group of them, with their intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from mpcs_torch.tables import Table

Interval = tuple[float, float]
Direction = Literal["min", "max"]


class Described(Protocol):
    """The place of a metric in tables; entries of the register have one."""

    @property
    def name(self) -> str:
        """The name that tables show."""

    @property
    def direction(self) -> Direction | None:
        """Which values are better; None if neither high nor low ones are."""

    @property
    def section(self) -> str:
        """The part of a long table."""

    @property
    def is_count(self) -> bool:
        """Whether the value is a whole number that grows with the rows."""

    @property
    def group_rank(self) -> int | None:
        """Groups are ranked by the metric with the lowest rank."""

    @property
    def in_group_tables(self) -> bool:
        """Whether tables of groups show it where there are many metrics."""

    @property
    def compared_as(self) -> str:
        """Its name in sentences, if models are compared by it."""


@dataclass(frozen=True)
class Scores:
    """The values of some rows."""

    rows: int
    entries: Sequence[Described]
    """The metrics, in the order in which they are shown."""
    values: Mapping[str, float]
    """By metric."""
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    """By metric: 95 % intervals, of those that have one."""
    without_interval: Mapping[str, str] = field(default_factory=dict)
    """Why other metrics have none, by metric; empty if none were asked for."""
    notes: Sequence[str] = ()
    """Metrics that were left out, and the reasons."""
    file_notes: Sequence[str] = ()
    """Remarks on how a file was read: columns that were left out, rounded probabilities."""

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
        rows = [[name, f"{self.values[name]:.6g}"] for name in (self.values if names is None else names)]
        if not self.intervals:
            return Table(["metric", "value"], rows)
        return Table(["metric", "value", "95 %"], [[*row, self.interval(row[0])] for row in rows])

    def class_table(self) -> Table | None:
        """Return a row for each class; None if there are none to show."""
        return None

    def interval(self, name: str) -> str:
        """Return the interval of a metric as text, empty if it has none."""
        low, high = self.intervals.get(name, (math.nan, math.nan))
        return "" if math.isnan(low) else f"{low:.4g} to {high:.4g}"

    def undefined(self) -> dict[str, str]:
        """Return why metrics are NaN or infinite, by metric."""
        return {name: reason_of(value) for name, value in self.values.items() if not math.isfinite(value)}

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
        """Return what a reader of `table` must know beside, in sentences."""
        return []

    def warnings(self) -> list[str]:
        """Return reasons not to use the predictions as they are, and what was left out."""
        return list(self.notes)

    def to_dict(self) -> dict[str, Any]:
        """Return values and intervals as dictionaries, lists, texts and numbers."""
        plain: dict[str, Any] = {"metrics": dict(self.values)}
        if self.intervals:
            plain |= {"intervals": dict(self.intervals), "without_interval": dict(self.without_interval)}
        return plain


def reason_of(value: float) -> str:
    """Return why a value is infinite or NaN, if no more is known."""
    return "it is infinite on these rows" if math.isinf(value) else "it is 0 / 0 on these rows"
