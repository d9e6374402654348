"""The sums of the rows of one model, in bins."""

from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import Any, cast

import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.bins import BUDGET, BinnedSums, in_bits
from mpcs_torch.evaluation.chosen import ChosenMetrics, Given
from mpcs_torch.evaluation.intervals import Reason, Units
from mpcs_torch.evaluation.left_out import LeftOut, interval_of_left_out
from mpcs_torch.evaluation.metric_states import BITS, MIN_BITS, BinnedStates
from mpcs_torch.evaluation.outcomes import OutcomeCounter, Outcomes
from mpcs_torch.evaluation.over_costs import RangeSums
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.metrics.additive import AdditiveMetric
from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy

PENDING, PENDING_ROWS, PENDING_IN_PARTS = 2**17, 2048, 2**21
"""Pending scores, or rows of up to 16 MiB, are measured together: small batches, or small parts, would take long.
"""
BUDGET_OF_GROUPS = 8 * BUDGET
"""The maximum number of values in the bins of all groups of a column: 128 MiB."""
MAX_NUMBERS = 2**27
"""The maximum number of values (1 GiB) of all groups of a column."""
OF_ROWS = 4
"""The numbers of a bin that are no sums of metrics. Models with other labels have other rows."""
ALL = ""
"""Stands for no column: all rows are one group."""


class SumLayout:
    """The order of the sums of a bin: rows, errors, the sums of labels and of weights, then those of each metric."""

    def __init__(self, chosen: ChosenMetrics) -> None:
        self.chosen, self.metrics, self.others = chosen, chosen.make(additive=True), chosen.make(additive=False)
        counts_classes = chosen.has_shares or not chosen.is_soft
        self.outcomes = (
            OutcomeCounter(chosen.class_names, chosen.concern, refers=chosen.refers) if counts_classes else None
        )
        self._kernels = [cast("AdditiveMetric", group.first) for group in self.metrics.groups]
        """One for each group of metrics with the same sums."""
        self.pending = max(PENDING, min(PENDING_ROWS * chosen.num_classes, PENDING_IN_PARTS))
        """The number of scores that are measured together."""

    def sums_of(self, given: Given, bins: Bins) -> Tensor:
        """Return the numbers of each bin of some rows: (B, K), float64."""
        rows, ones = given.rows, torch.ones(len(given.rows.ids), dtype=torch.float64)
        classes = 1 + torch.arange(self.chosen.num_classes, dtype=torch.float64)
        labels = rows.target.double() if rows.target.ndim == 1 else rows.target @ classes
        of_rows = [ones, self._wrong(given).double(), labels, ones if rows.weights is None else rows.weights]
        numbers = [bins.sum(torch.stack(of_rows, dim=1))]
        for group, kernel in zip(self.metrics.groups, self._kernels, strict=True):
            places, preds, target, weights = given.of(group.takes)
            numbers.append(kernel.packed(kernel.binned_sums(preds, target, bins.at(places), weights)).double())
        if self.outcomes is not None:
            places, decisions, target, weights = given.of("decisions")
            counts = self.outcomes.flags(decisions, target)
            numbers.append(bins.at(places).sum(counts if weights is None else counts * weights.unsqueeze(1)))
        return torch.cat(numbers, dim=1)

    def _wrong(self, given: Given) -> Tensor:
        """Return whether decisions are wrong, (n,), or the share of annotators who say so; NaN for degrees of truth."""
        target = given.rows.target
        if target.ndim == 2 and not self.chosen.has_shares:
            return torch.full((len(target),), nan)
        decisions = given.decisions
        if target.ndim == 2:
            return 1 - target.gather(1, decisions.unsqueeze(1)).squeeze(1)
        return (decisions != target) & (decisions >= 0) & (decisions < self.chosen.num_classes)

    def scores_in(self, rows: Rows) -> int:
        """Return how many scores metrics are given; a row with shares of several classes has its scores for each."""
        return rows.probs.shape[1] * int(rows.target.count_nonzero() if self.chosen.has_shares else len(rows.ids))

    def of_metrics(self, numbers: Tensor) -> Iterator[tuple[str, AdditiveMetric, Any]]:
        """Yield each metric by name with its sums in bins: ``sums_type`` of tensors (B, ...)."""
        place = OF_ROWS
        for group, kernel in zip(self.metrics.groups, self._kernels, strict=True):
            width = sum(summed.numel() for summed in kernel.sums())
            sums = kernel.unpacked(numbers[:, place : place + width])
            place += width
            for name, metric in group.metrics.items():
                yield name, cast("AdditiveMetric", metric), sums

    def outcomes_of(self, numbers: Tensor) -> Mapping[str, Outcomes]:
        """Return the outcomes of classes and groups of classes in bins, tensors (B,), by name."""
        if self.outcomes is None or not self.outcomes.width:
            return {}
        return self.outcomes.of(numbers[:, -self.outcomes.width :])

    def units(self, numbers: Tensor, cluster: str | None) -> Units:
        """Return the sizes, errors and weights of bins."""
        rows, errors, _, weights = numbers[:, :OF_ROWS].unbind(1)
        has_weights = self.chosen.has_shares or (self.chosen.weighs and not weights.equal(rows))
        return Units(rows, errors, torch.ones_like(rows), cluster, weights if has_weights else None)


class ModelSums:
    """The sums of the rows of one model, in bins, of all and of each group; intervals need that it ``keeps_bins``."""

    def __init__(self, layout: SumLayout, columns: Sequence[str], *, keeps_bins: bool) -> None:
        self.layout, self._others, self._keeps_bins = layout, layout.others, keeps_bins
        self.tables = {ALL: BinnedSums(), **{column: BinnedSums(BUDGET_OF_GROUPS) for column in columns}}
        """By column; the first is of all rows."""
        self._states = {column: dict[int, list[BinnedStates]]() for column in self.tables}
        """Of the metrics that no sums determine: of each group of them, by column and code."""
        self._pending: list[Rows] = []
        self._pending_in_parts: list[Rows] = []
        self._left_out = dict[tuple[str, str, int], LeftOut | tuple[float, Reason]]()
        self.rows = 0
        classes = layout.chosen.num_classes
        chosen = layout.chosen
        has_decisions = any(entry.takes == "decisions" for entry in chosen.entries)
        decisions = classes + chosen.further
        self.confusion = torch.zeros(classes, decisions, dtype=torch.int64) if has_decisions else None
        """(C, C), rows true classes, with weights float64; None if no metric counts decisions.

        Of decisions that may be referrals, (C, C + A + 1), with coarse answers and referrals in the last columns.
        """
        self.class_rows = torch.zeros(classes, dtype=torch.int64)
        """(C,): the number of rows of each class."""
        self.weight_squares: float | None = None
        """The sum of the squares of weights; None if all rows count alike."""
        self.over_costs = None if chosen.ranges is None else RangeSums(chosen)
        """Of the decisions, where ranges of costs are known."""

    def add(self, rows: Rows) -> None:
        """Add rows; raise a ValueError if there are too many groups."""
        self.rows += len(rows.probs)
        self._pending.append(rows)
        if self._scores_in(self._pending) >= self.layout.pending:
            self._measure_sums()
        if self._scores_in(self._pending_in_parts) >= PENDING_IN_PARTS:
            self._measure_others()

    def _scores_in(self, parts: Sequence[Rows]) -> int:
        return sum(map(self.layout.scores_in, parts))

    def measure(self) -> None:
        """Measure the pending rows."""
        self._measure_sums()
        self._measure_others()

    def _measure_sums(self) -> None:
        if not self._pending:
            return
        pending, self._pending = self._pending, []
        rows = Rows.joined(pending)
        given = Given(rows, self.layout.metrics.takes | {"decisions"})
        if self.confusion is not None:
            (classes, columns), (_, decisions, target, weights) = self.confusion.shape, given.of("decisions")
            pairs = (target * columns + decisions % columns).bincount(weights, classes * columns)
            self.confusion = self.confusion + pairs.view(classes, columns)
            self.class_rows += target.bincount(minlength=classes)
        if rows.weights is not None:
            self.weight_squares = (self.weight_squares or 0) + rows.weights.square().sum().item()
        if self.over_costs is not None:
            self.over_costs.add(rows.probs, rows.target)
        self._add_sums(given)
        if self._others.groups:
            self._pending_in_parts.append(rows)
        for column in rows.groups:
            numbers = sum(states.numbers for of_group in self._states[column].values() for states in of_group)
            if numbers > MAX_NUMBERS or self.tables[column].exceeds(MAX_NUMBERS):
                most = f"{8 * MAX_NUMBERS >> 30} GiB"
                raise ValueError(f"column {quoted(column)} must have fewer groups: their sums take more than {most}")

    def merge(self, other: "ModelSums", codes: Mapping[str, Tensor], *, first: int) -> None:
        """Add what another process or part has measured by the same metrics.

        ``codes`` are, for each column, the codes here of its groups there; ``first`` is added to its numbers of rows.
        """
        self.measure()
        other.measure()
        self.rows += other.rows
        if self.confusion is not None and other.confusion is not None:
            self.confusion = self.confusion + other.confusion
            self.class_rows += other.class_rows
        if other.weight_squares is not None:
            self.weight_squares = (self.weight_squares or 0) + other.weight_squares
        if self.over_costs is not None and other.over_costs is not None:
            self.over_costs.merge(other.over_costs)
        for column, table in other.tables.items():
            self.tables[column].merge(table, codes.get(column), first=first)
        for column, by_code in other._states.items():
            for code, added in by_code.items():
                here = int(codes[column][code]) if column in codes else code
                for states, others in zip(self._states_of(column, here), added, strict=True):
                    states.merge(others, first=first)

    @property
    def effective_rows(self) -> float:
        """The effective sample size of the weighted rows (Kish)."""
        [(_, _, numbers)] = self.tables[ALL].by_group()
        return (numbers[:, OF_ROWS - 1].sum().square() / (self.weight_squares or 1)).item()

    def others(self, column: str, code: int, cluster: str | None) -> dict[str, tuple[float, Interval | Reason]]:
        """Return the values of the metrics of a group that no sums determine, with intervals or why there is none."""
        unit = "rows" if cluster is None else "clusters"
        found = dict[str, tuple[float, Interval | Reason]]()
        for entry in self._others.entries:
            left, metric = self.left_out(entry.name, column, code), self._others.metrics()[entry.name]
            if isinstance(left, LeftOut) and getattr(metric, "interval_rule", "") == "ranks":
                states = self._states_named(entry.name, column, code)
                found[entry.name] = left.whole.item(), states.interval_of_ranks(cluster)
            elif isinstance(left, LeftOut):
                limits = getattr(metric, "plot_lower_bound", None), getattr(metric, "plot_upper_bound", None)
                found[entry.name] = left.whole.item(), interval_of_left_out(left, limits, unit)
            else:
                found[entry.name] = left
        return found

    def left_out(self, name: str, column: str = ALL, code: int = 0) -> LeftOut | tuple[float, Reason]:
        """Return the values of a metric without parts of the rows of a group; or its value, and why there are none."""
        if (key := (name, column, code)) not in self._left_out:
            entry = next(each for each in self._others.entries if each.name == name)
            group = next(each for each in self._others.groups if name in each.metrics)
            states = self._states_named(name, column, code)

            def value_of(metric: Metric) -> Tensor:
                metric = metric if len(group.metrics) == 1 else self._others.metrics()[name]
                return torch.tensor(entry.value(metric), dtype=torch.float64)

            whole = value_of(states.loaded())
            reason = entry.no_interval or states.reason
            self._left_out[key] = (whole.item(), reason) if reason else states.leave_out(value_of, whole)
        return self._left_out[key]

    def _states_named(self, name: str, column: str, code: int) -> BinnedStates:
        place = next(place for place, group in enumerate(self._others.groups) if name in group.metrics)
        return self._states[column][code][place]

    def probability_means(self) -> dict[str, Any]:
        """Return the reported and the measured means of all rows by name, if they are measured."""
        for states in self._states[ALL].get(0, ()):
            if isinstance(metric := states.loaded(), ProbabilityAccuracy):
                return {"reported": metric.reported(), "measured": metric.bins()}
        return {}

    def _add_sums(self, given: Given) -> None:
        tables, rows = self.tables.values(), given.rows
        bits = None if any(table.bits is None for table in tables) else max(table.bits or 0 for table in tables)
        bins = in_bits(rows.ids, None, bits) if self._keeps_bins else torch.zeros_like(rows.ids)
        codes, places = _joint([bins, *rows.groups.values()])
        numbers = self.layout.sums_of(given, Bins(codes, len(places)))
        for column, table in self.tables.items():
            groups = rows.groups.get(column, torch.zeros_like(rows.ids))
            table.add(groups[places], in_bits(bins[places], bits, table.bits), numbers)

    def _measure_others(self) -> None:
        if not self._pending_in_parts:
            return
        pending, self._pending_in_parts = self._pending_in_parts, []
        rows = Rows.joined(pending)
        self._left_out.clear()
        for column in self._states:
            groups = rows.groups.get(column, torch.zeros_like(rows.ids))
            for code in groups.unique().tolist():  # type: ignore[no-untyped-call]
                part = rows.at(groups == code) if column else rows
                given = Given(part, self._others.takes)
                for group, states in zip(self._others.groups, self._states_of(column, code), strict=True):
                    kept, *inputs, weights = given.of(group.takes)
                    try:
                        states.add(part.ids[kept], *inputs, weights=weights)
                    except Exception as error:
                        error.add_note(f"This was raised by the metrics: {', '.join(group.metrics)}.")
                        raise

    def _states_of(self, column: str, code: int) -> list[BinnedStates]:
        """Return the states of each group of metrics of a group of rows, which may be new."""
        if code not in self._states[column]:
            no_intervals = {entry.name for entry in self._others.entries if entry.no_interval}
            bits = 0 if not self._keeps_bins else MIN_BITS if column else BITS
            self._states[column][code] = [
                BinnedStates(group.first, bits=0 if no_intervals.issuperset(group.metrics) else bits)
                for group in self._others.groups
            ]
        return self._states[column][code]


def _joint(keys: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Return a code for each different combination of keys, (n,), and a place where each code occurs."""
    codes = torch.zeros_like(keys[0])
    for key in keys:
        places_of_key = key.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        codes = (codes * (int(places_of_key.max()) + 1) + places_of_key).unique(return_inverse=True)[1]
    places = torch.empty(int(codes.max()) + 1, dtype=torch.int64)
    places[codes] = torch.arange(len(codes))
    return codes, places
