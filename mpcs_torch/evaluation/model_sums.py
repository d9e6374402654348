"""The sums of the rows of one model, in bins."""

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any, cast

import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.bins import BUDGET, BinnedSums, in_bits
from mpcs_torch.evaluation.chosen import ChosenMetrics, inputs_of
from mpcs_torch.evaluation.intervals import Units
from mpcs_torch.evaluation.ranges import RangeSums
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.metrics.additive import AdditiveMetric
from mpcs_torch.metrics.by_name import Takes
from mpcs_torch.metrics.metric_set import States, numbers_in
from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy

WAITING = 2**17
"""Scores that wait until they are measured (1 MiB): few rows at a time would take long."""
BUDGET_OF_GROUPS = 8 * BUDGET
"""The most numbers that the bins of all groups of a column hold: 128 MiB."""
MOST_NUMBERS = 2**27
"""The most numbers (1 GiB) that all groups of a column may hold."""
OF_ROWS = 3
"""The numbers of a bin that are no sums of metrics. Models with other labels have other rows."""
ALL = ""
"""Stands for no column: all rows are one group."""


class SumLayout:
    """The order of the sums of a bin: the numbers of rows and of errors, the sum of the labels, then each metric's."""

    def __init__(self, chosen: ChosenMetrics) -> None:
        self.chosen, self.metrics, self.others = chosen, chosen.make(additive=True), chosen.make(additive=False)
        self._kernels = [cast("AdditiveMetric", group.first) for group in self.metrics.groups]
        """One for each group of metrics with the same sums."""

    def sums_of(self, inputs: Mapping[Takes, Tensor], target: Tensor, wrong: Tensor, bins: Bins) -> Tensor:
        """Return the numbers of each bin: (B, K), float64.

        Args:
            inputs: The predictions in each form that a metric takes.
            target: ``(n,)``, or ``(n, C)`` soft labels.
            wrong: ``(n,)`` whether decisions are wrong; NaN for soft labels.
            bins: Of the n rows.
        """
        labels = (target.sum(1) if target.ndim == 2 else target).double()
        numbers = [bins.sum(torch.stack([torch.ones_like(labels), wrong.double(), labels], dim=1))]
        for group, kernel in zip(self.metrics.groups, self._kernels, strict=True):
            numbers.append(kernel.packed(kernel.binned_sums(inputs[group.takes], target, bins)).double())
        return torch.cat(numbers, dim=1)

    def of_metrics(self, numbers: Tensor) -> Iterator[tuple[str, AdditiveMetric, Any]]:
        """Yield each metric by name with its sums in bins: ``sums_type`` of tensors (B, ...)."""
        place = OF_ROWS
        for group, kernel in zip(self.metrics.groups, self._kernels, strict=True):
            width = sum(summed.numel() for summed in kernel.sums())
            sums = kernel.unpacked(numbers[:, place : place + width])
            place += width
            for name, metric in group.metrics.items():
                yield name, cast("AdditiveMetric", metric), sums

    @staticmethod
    def units(numbers: Tensor, cluster: str | None) -> Units:
        """Return the sizes and errors of bins."""
        return Units(numbers[:, 0], numbers[:, 1], torch.ones(len(numbers), dtype=torch.float64), cluster)


class ModelSums:
    """The sums of the rows of one model, in bins, of all and of each group; intervals need that it ``keeps_bins``."""

    def __init__(self, layout: SumLayout, columns: Sequence[str], *, keeps_bins: bool) -> None:
        self.layout, self._others, self._keeps_bins = layout, layout.others, keeps_bins
        self.tables = {ALL: BinnedSums(), **{column: BinnedSums(BUDGET_OF_GROUPS) for column in columns}}
        """By column; the first holds all rows."""
        self._states = {column: dict[int, States]() for column in self.tables}
        self._waiting: list[Rows] = []
        self.rows = 0
        classes = layout.chosen.num_classes
        chosen = layout.chosen
        has_decisions = not chosen.refers and any(entry.takes == "decisions" for entry in chosen.entries)
        self.confusion = torch.zeros(classes, classes, dtype=torch.int64) if has_decisions else None
        """(C, C), rows true classes; None if no metric counts decisions."""
        self.over_costs = None if chosen.ranges is None else RangeSums(chosen)
        """Of the decisions, where ranges of costs are known."""

    def add(self, rows: Rows) -> None:
        """Add rows; raise a ValueError if there are too many groups."""
        self.rows += len(rows.probs)
        self._waiting.append(rows)
        if sum(each.probs.numel() for each in self._waiting) >= WAITING:
            self.measure()

    def measure(self) -> None:
        """Measure the rows that wait."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        rows = Rows.joined(waiting)
        inputs = inputs_of(rows.probs, self.layout.metrics.takes | {"decisions"})
        if self.confusion is not None:
            classes = len(self.confusion)
            pairs = rows.target * classes + inputs["decisions"]
            self.confusion += pairs.bincount(minlength=classes**2).view(classes, classes)
        if self.over_costs is not None:
            self.over_costs.add(rows.probs, rows.target)
        self._add_sums(rows, inputs)
        if self._others.groups:
            self._add_others(rows)
        for column in rows.groups:
            numbers = sum(map(numbers_in, self._states[column].values()))
            if numbers > MOST_NUMBERS or self.tables[column].exceeds(MOST_NUMBERS):
                most = f"{8 * MOST_NUMBERS >> 30} GiB"
                raise ValueError(f"column {quoted(column)} must have fewer groups: their sums take more than {most}")

    def merge(self, other: "ModelSums", codes: Mapping[str, Tensor], *, first: int) -> None:
        """Add what another process or part has measured by the same metrics.

        ``codes`` are, for each column, the codes here of its groups there; ``first`` is added to its numbers of rows.
        """
        self.measure()
        other.measure()
        self.rows += other.rows
        if self.confusion is not None and other.confusion is not None:
            self.confusion += other.confusion
        if self.over_costs is not None and other.over_costs is not None:
            self.over_costs.merge(other.over_costs)
        for column, table in other.tables.items():
            self.tables[column].merge(table, codes.get(column), first=first)
        for column, states in other._states.items():
            for code, added in states.items():
                here = int(codes[column][code]) if column in codes else code
                self._others.load(self._states[column].get(here))
                self._others.merge(added)
                self._states[column][here] = self._others.states()

    def values_of_others(self, column: str, code: int) -> dict[str, float]:
        """Return the values of the metrics of a group that no sums determine."""
        if not self._others.groups:
            return {}
        self._others.load(self._states[column][code])
        metrics = self._others.metrics()
        return {entry.name: entry.value(metrics[entry.name]) for entry in self._others.entries}

    def probability_means(self) -> dict[str, Any]:
        """Return the reported and the measured means of all rows by name, if they are measured."""
        if self._others.groups:
            self._others.load(self._states[ALL][0])
            for metric in self._others.metrics().values():
                if isinstance(metric, ProbabilityAccuracy):
                    return {"reported": metric.reported(), "measured": metric.bins()}
        return {}

    def _add_sums(self, rows: Rows, inputs: Mapping[Takes, Tensor]) -> None:
        tables = self.tables.values()
        bits = None if any(table.bits is None for table in tables) else max(table.bits or 0 for table in tables)
        bins = in_bits(rows.ids, None, bits) if self._keeps_bins else torch.zeros_like(rows.ids)
        codes, places = _joint([bins, *rows.groups.values()])
        wrong = torch.full((len(codes),), nan)
        if rows.target.ndim == 1:
            decisions = inputs["decisions"]
            wrong = (decisions != rows.target) & (decisions >= 0) & (decisions < self.layout.chosen.num_classes)
        numbers = self.layout.sums_of(inputs, rows.target, wrong, Bins(codes, len(places)))
        for column, table in self.tables.items():
            groups = rows.groups.get(column, torch.zeros_like(rows.ids))
            table.add(groups[places], in_bits(bins[places], bits, table.bits), numbers)

    def _add_others(self, rows: Rows) -> None:
        for column, states in self._states.items():
            groups = rows.groups.get(column, torch.zeros_like(rows.ids))
            for code in groups.unique().tolist():  # type: ignore[no-untyped-call]
                in_group = groups == code if column else slice(None)
                self._others.load(states.get(code))
                self._others.update(inputs_of(rows.probs[in_group], self._others.takes), rows.target[in_group])
                states[code] = self._others.states()


def _joint(keys: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return a code for each different combination of keys, (n,), and a place where each code occurs."""
    codes = torch.zeros_like(keys[0])
    for key in keys:
        places_of_key = key.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        codes = (codes * (int(places_of_key.max()) + 1) + places_of_key).unique(return_inverse=True)[1]
    places = torch.empty(int(codes.max()) + 1, dtype=torch.int64)
    places[codes] = torch.arange(len(codes))
    return codes, places
