"""Keep the sums of one model's rows in bins, from which values and intervals are computed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mpcs_torch.errors import quoted
from mpcs_torch.evaluation.bins import BUDGET, BinnedSums, in_bits
from mpcs_torch.evaluation.chosen import ChosenMetrics, MetricInputs
from mpcs_torch.evaluation.influence import Units
from mpcs_torch.evaluation.outcomes import OutcomeCounter, Outcomes, decisions_by_way
from mpcs_torch.evaluation.parts import LeftOut, parts_interval
from mpcs_torch.evaluation.ranks import KeptRanks
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.quality.roc_area import RocArea
from mpcs_torch.metrics.metric_groups import MetricGroup
from mpcs_torch.metrics.register import MetricEntry

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.evaluation.metric_states import BinnedStates

PENDING, PENDING_ROWS, PENDING_STATES = 2**17, 2048, 2**21
"""Rows are summed once they have ``PENDING`` scores or, if there are many classes, the scores of ``PENDING_ROWS`` rows.
The states of other metrics are updated once there are ``PENDING_STATES`` scores (16 MiB)."""
BUDGET_OF_GROUPS = 8 * BUDGET
"""The maximum number of values in the bins of all groups of a column (128 MiB)."""
MAX_NUMBERS = 2**27
"""The maximum number of values (1 GiB) for all groups of a column; if there are more, rows are refused."""
LEADING = 3
"""The number of columns before the sums of metrics: rows, the sum of labels, and the sum of weights."""
ALL = ""
"""The key for all rows, in dictionaries whose other keys are columns of groups."""


class SumLayout:
    """The order of the K sums of a bin: rows, labels, weights, then each metric's sums, then outcome counts."""

    def __init__(self, chosen: ChosenMetrics) -> None:
        self.chosen, groups = chosen, chosen.metric_groups()
        of_sums = [group for group in groups if isinstance(group.first, Measure)]
        of_ranks = [group for group in groups if isinstance(group.first, RocArea)]
        self.others = [group for group in groups if not isinstance(group.first, Measure | RocArea)]
        """Metrics that are no measures."""
        self.ranks = {name: measure for group in of_ranks for name, measure in group.members.items()}
        self.measures = [group for group in of_sums if not group.first.is_wide]
        self.wide = [group for group in of_sums if group.first.is_wide]
        """Measures whose sums are kept for all rows of a group together."""
        counts_classes = chosen.has_shares or not chosen.is_soft
        self.outcomes = (
            OutcomeCounter(chosen.class_names, chosen.concern, refers=chosen.refers) if counts_classes else None
        )
        self.pending = max(PENDING, min(PENDING_ROWS * chosen.num_classes, PENDING_STATES))
        """The number of scores that are collected before they are summed."""

    def bin_sums(self, inputs: MetricInputs, bins: Bins) -> Tensor:
        """Return the K sums of the rows in each of B ``bins``: (B, K), float64."""
        rows, ones = inputs.rows, torch.ones(len(inputs.rows.ids), dtype=torch.float64)
        classes = 1 + torch.arange(self.chosen.num_classes, dtype=torch.float64)
        labels = rows.target.double() if rows.target.ndim == 1 else rows.target @ classes
        of_rows = [ones, labels, ones if rows.weights is None else rows.weights]
        numbers = [bins.sum(torch.stack(of_rows, dim=1))]
        for group in self.measures:
            places, preds, target, weights = inputs.arguments(group.takes)
            numbers.append(group.first.sums(group.first.rows(preds, target, weights), bins.at(places)).double())
        if self.outcomes is not None:
            places, decisions, target, weights = inputs.arguments("decisions")
            counts = self.outcomes.flags(decisions, target)
            numbers.append(bins.at(places).sum(counts if weights is None else counts * weights.unsqueeze(1)))
        return torch.cat(numbers, dim=1)

    def scores_in(self, rows: Rows) -> int:
        """Return the number of scores in ``rows``. A row of which k classes have shares counts as k rows."""
        return rows.probs.shape[1] * int(rows.target.count_nonzero() if self.chosen.has_shares else len(rows.ids))

    def measure_sums(self, numbers: Tensor) -> Iterator[tuple[str, Measure[Any, Any], Any]]:
        """Yield the name of each measure, the measure, and its sums, a ``sums_type`` of (B, ...), given ``numbers``."""
        place = LEADING
        for group in self.measures:
            width = group.first.width
            sums = group.first.named(numbers[:, place : place + width])
            place += width
            for name, measure in group.members.items():
                yield name, measure, sums

    def binned_outcomes(self, numbers: Tensor) -> Mapping[str, Outcomes]:
        """Return the outcomes in each bin, as tensors (B,), by class or group of classes, from ``numbers`` (B, K)."""
        if self.outcomes is None or not self.outcomes.width:
            return {}
        return self.outcomes.named(numbers[:, -self.outcomes.width :])

    def units(self, numbers: Tensor, cluster: str | None) -> Units:
        """Return the sizes and weights of bins, given their sums ``numbers``, (B, K)."""
        rows, _, weights = numbers[:, :LEADING].unbind(1)
        has_weights = self.chosen.has_shares or (self.chosen.weighs and not weights.equal(rows))
        return Units(rows, torch.ones_like(rows), cluster, weights if has_weights else None)


class ModelSums:
    """The binned sums of the rows of one model, in total and by group.

    Without ``keeps_bins``, all rows are in one bin, so there are no intervals.
    """

    def __init__(self, layout: SumLayout, columns: Sequence[str], *, keeps_bins: bool) -> None:
        self.layout, self._others, self._keeps_bins = layout, layout.others, keeps_bins
        self.tables = {ALL: BinnedSums(), **{column: BinnedSums(BUDGET_OF_GROUPS) for column in columns}}
        """The sums of bins, by column of groups; the first key, ``ALL``, is for all rows."""
        self._states = {column: dict[int, "list[BinnedStates]"]() for column in self.tables}
        """The states of metrics that are not functions of sums, by column, then by code of the group of rows."""
        self.ranks = {name: KeptRanks(measure) for name, measure in layout.ranks.items()}
        """The rows that measures of ranks keep, by name."""
        has_groups = not layout.chosen.is_default  # a histogram of the rows of a group must be asked for
        self._wide = {column: dict[int, list[Tensor]]() for column in self.tables if column == ALL or has_groups}
        """The sums of each of the layout's wide measures, by column, then by code of the group of rows."""
        self._pending: list[Rows] = []
        self._pending_states: list[Rows] = []
        self._left_out = dict[tuple[str, str, int], LeftOut | tuple[float, Reason]]()
        self.rows = 0
        chosen = layout.chosen
        classes, decisions = chosen.num_classes, chosen.num_classes + chosen.further
        has_decisions = any(entry.takes == "decisions" for entry in chosen.entries)
        self.confusion = torch.zeros(classes, decisions, dtype=torch.int64) if has_decisions else None
        """The confusion matrix, (C, C), with a row for each true class; float64 with weights; None if it is not needed.
        If rows may be referred, it is (C, C + A + 1): the last columns are A sets of classes, then referrals."""
        self.class_rows = torch.zeros(classes, dtype=torch.int64)
        """(C,): the number of rows of each class."""
        self.weight_squares: float | None = None
        """The sum of the squares of weights; None if rows have no weights."""
        self.decided = dict[str, Tensor]()
        """The counts of decisions, as in `OverCosts.models`, by decision rule; empty if costs are not ranges."""

    def add(self, rows: Rows) -> None:
        """Add rows; raise a ValueError if there are too many groups."""
        self.rows += len(rows.probs)
        self._pending.append(rows)
        if self._scores_in(self._pending) >= self.layout.pending:
            self._flush_sums()
        if self._scores_in(self._pending_states) >= PENDING_STATES:
            self._flush_states()

    def _scores_in(self, parts: Sequence[Rows]) -> int:
        return sum(map(self.layout.scores_in, parts))

    def flush(self) -> None:
        """Add the pending rows to sums and states."""
        self._flush_sums()
        self._flush_states()

    def _flush_sums(self) -> None:
        if not self._pending:
            return
        rows, self._pending = Rows.joined(self._pending), []
        takes = {"decisions", "probabilities", *(group.takes for group in (*self.layout.measures, *self.layout.wide))}
        inputs, ranges = MetricInputs(rows, takes), self.layout.chosen.ranges
        if self.confusion is not None:
            _, decisions, target, weights = inputs.arguments("decisions")
            self.confusion = self.confusion + _counted_pairs(target, decisions, self.confusion.shape, weights)
            self.class_rows += target.bincount(minlength=len(self.class_rows))
        if rows.weights is not None:
            self.weight_squares = (self.weight_squares or 0) + rows.weights.square().sum().item()
        if ranges is not None:
            costs = ranges.middle.costs()
            self._add_decided(
                {
                    kind: _counted_pairs(rows.target, each, costs.shape)
                    for kind, each in decisions_by_way(rows.probs, costs).items()
                }
            )
        self._add_sums(inputs)
        self._add_wide(inputs)
        for kept in self.ranks.values():
            places, preds, target, weights = inputs.arguments("probabilities")
            groups = {column: codes[places] for column, codes in rows.groups.items()}
            kept.add(kept.measure.rows(preds, target, weights), rows.ids[places], groups)
        if self._others:
            self._pending_states.append(rows)
        for column in rows.groups:
            numbers = sum(states.numbers for of_group in self._states[column].values() for states in of_group)
            numbers += sum(sums.numel() for of_group in self._wide.get(column, {}).values() for sums in of_group)
            if numbers > MAX_NUMBERS or self.tables[column].exceeds(MAX_NUMBERS):
                most = f"{8 * MAX_NUMBERS >> 30} GiB"
                raise ValueError(f"column {quoted(column)} must have fewer groups: their sums take more than {most}")

    def merge(self, other: "ModelSums", codes: Mapping[str, Tensor], *, first: int) -> None:
        """Add the sums and states of other rows, for the same metrics.

        ``codes[column]`` translates codes of groups of rows: the group with the code c in ``other`` has the code
        ``codes[column][c]`` here. If identifiers of rows are positions, ``first`` is added to those of ``other``.
        """
        self.flush()
        other.flush()
        self.rows += other.rows
        if self.confusion is not None and other.confusion is not None:
            self.confusion = self.confusion + other.confusion
            self.class_rows += other.class_rows
        if other.weight_squares is not None:
            self.weight_squares = (self.weight_squares or 0) + other.weight_squares
        self._add_decided(other.decided)
        for column, table in other.tables.items():
            self.tables[column].merge(table, codes.get(column), first=first)
        for column, of_groups in other._wide.items():
            for code, sums in of_groups.items():
                self._add_to(column, int(codes[column][code]) if column in codes else code, sums)
        for name, kept in other.ranks.items():
            self.ranks[name].merge(kept, codes, first=first)
        for column, by_code in other._states.items():
            for code, added in by_code.items():
                here = int(codes[column][code]) if column in codes else code
                for states, others in zip(self._group_states(column, here), added, strict=True):
                    states.merge(others, first=first)

    def _add_decided(self, decided: Mapping[str, Tensor]) -> None:
        for kind, counts in decided.items():
            self.decided[kind] = self.decided.get(kind, 0) + counts

    def kept_ranks(self) -> dict[str, KeptRanks]:
        """Return the rows so far that measures of ranks keep; rows that are added later do not change them."""
        return {name: kept.so_far() for name, kept in self.ranks.items()}

    @property
    def effective_rows(self) -> float:
        """The effective sample size of the weighted rows (Kish)."""
        [(_, _, numbers)] = self.tables[ALL].by_group()
        return (numbers[:, LEADING - 1].sum().square() / (self.weight_squares or 1)).item()

    def without_sums(self, column: str, code: int, cluster: str | None) -> dict[str, tuple[float, Interval | Reason]]:
        """Return, by name, each metric that is not a function of sums: its value, and its interval or why it has none.

        Only the rows of one group count: the group with the code ``code`` in ``column``.
        """
        unit = "rows" if cluster is None else "clusters"
        values = dict[str, tuple[float, Interval | Reason]]()
        for name, computed in self._wide_values(column, code).items():
            entry = next(each for each in self.layout.chosen.entries if each.name == name)
            values[name] = entry.number(computed), Reason("no_method", text=entry.no_interval)
        for name, kept in self.ranks.items():
            clusters = cluster is not None if self._keeps_bins else None
            values[name] = kept.measured(column, code, clusters=clusters)
        for group in self._others:
            for entry in group.entries:
                left = self.left_out(entry.name, column, code)
                if not isinstance(left, LeftOut):
                    values[entry.name] = left
                else:
                    low, high = (getattr(group.first, f"plot_{end}_bound", None) for end in ("lower", "upper"))
                    values[entry.name] = left.whole.item(), parts_interval(left, (low, high), unit)
        return values

    def _wide_values(self, column: str, code: int) -> dict[str, Any]:
        values = dict[str, Any]()
        for group, sums in zip(self.layout.wide, self._wide.get(column, {}).get(code, ()), strict=False):
            values |= group.values(group.first.named(sums))
        return values

    def left_out(self, name: str, column: str = ALL, code: int = 0) -> LeftOut | tuple[float, Reason]:
        """Return a metric's values without parts of a group's rows; or its value, and why there are no others."""
        key = name, column, code
        if key not in self._left_out:
            group, states, entry = self._states_named(name, column, code)
            computed = states.loaded().compute()
            # All at once, because a metric that gives several of them keeps what it has computed.
            for other in group.entries:
                reason = Reason("no_method", text=other.no_interval) if other.no_interval else states.reason
                if reason is not None:
                    self._left_out[other.name, column, code] = other.number(computed), reason
            if key not in self._left_out:
                whole = torch.tensor(entry.number(computed), dtype=torch.float64)
                self._left_out[key] = states.leave_out(
                    lambda metric: torch.tensor(entry.number(metric.compute()), dtype=torch.float64), whole
                )
        return self._left_out[key]

    def _states_named(self, name: str, column: str, code: int) -> "tuple[MetricGroup, BinnedStates, MetricEntry]":
        for group, states in zip(self._others, self._states[column][code], strict=True):
            for entry in group.entries:
                if entry.name == name:
                    return group, states, entry
        raise KeyError(name)

    def probability_means(self) -> dict[str, Any]:
        """Return the "reported" and the "measured" probabilities of all rows; empty if no metric measures them."""
        for group, sums in zip(self.layout.wide, self._wide[ALL].get(0, ()), strict=False):
            measure: Any = group.first
            named = measure.named(sums)
            return {"reported": measure.reported(named), "measured": measure.measured(named)}
        return {}

    def _add_sums(self, inputs: MetricInputs) -> None:
        tables, rows = self.tables.values(), inputs.rows
        bits = None if any(table.bits is None for table in tables) else max(table.bits or 0 for table in tables)
        bins = in_bits(rows.ids, None, bits) if self._keeps_bins else torch.zeros_like(rows.ids)
        codes, places = _joint([bins, *rows.groups.values()])
        numbers = self.layout.bin_sums(inputs, Bins(codes, len(places)))
        for column, table in self.tables.items():
            groups = rows.groups.get(column, torch.zeros_like(rows.ids))
            table.add(groups[places], in_bits(bins[places], bits, table.bits), numbers)

    def _add_wide(self, inputs: MetricInputs) -> None:
        for column in self._wide if self.layout.wide else ():
            groups = inputs.rows.groups.get(column, torch.zeros_like(inputs.rows.ids))
            codes, places = groups.unique(return_inverse=True)  # type: ignore[no-untyped-call]
            of_groups = list[Tensor]()
            for group in self.layout.wide:
                at, preds, target, _ = inputs.arguments(group.takes)
                bins = Bins(places[at], len(codes))
                of_groups.append(group.first.sums(group.first.rows(preds, target), bins))
            for place, code in enumerate(codes.tolist()):
                self._add_to(column, code, [sums[place] for sums in of_groups])

    def _add_to(self, column: str, code: int, added: Sequence[Tensor]) -> None:
        known = self._wide[column].get(code)
        self._wide[column][code] = [*added] if known is None else [a + b for a, b in zip(known, added, strict=True)]

    def _flush_states(self) -> None:
        if not self._pending_states:
            return
        rows, self._pending_states = Rows.joined(self._pending_states), []
        self._left_out.clear()
        for column in self._states:
            groups = rows.groups.get(column, torch.zeros_like(rows.ids))
            for code in groups.unique().tolist():  # type: ignore[no-untyped-call]
                part = rows.at(groups == code) if column else rows
                inputs = MetricInputs(part, {group.takes for group in self._others})
                for group, states in zip(self._others, self._group_states(column, code), strict=True):
                    places, *arguments, weights = inputs.arguments(group.takes)
                    try:
                        states.add(part.ids[places], *arguments, weights=weights)
                    except Exception as error:
                        names = ", ".join(entry.name for entry in group.entries)
                        error.add_note(f"This was raised by the metrics: {names}.")
                        raise

    def _group_states(self, column: str, code: int) -> "list[BinnedStates]":
        """Return a group's states, one for each set of metrics that share them; create empty states for a new group."""
        if code not in self._states[column]:
            from mpcs_torch.evaluation.metric_states import BITS, MIN_BITS, BinnedStates

            bits = 0 if not self._keeps_bins else MIN_BITS if column else BITS
            self._states[column][code] = [
                BinnedStates(group.first, bits=0 if all(entry.no_interval for entry in group.entries) else bits)
                for group in self._others
            ]
        return self._states[column][code]


def _counted_pairs(target: Tensor, decisions: Tensor, shape: Sequence[int], weights: Tensor | None = None) -> Tensor:
    """Count rows, or add ``weights``, by true class and decision: a matrix of ``shape``; -1 is the last column."""
    rows, columns = shape
    return (target * columns + decisions % columns).bincount(weights, rows * columns).view(rows, columns)


def _joint(keys: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Number the combinations of ``keys``; return each row's number, (n,), and for each number, the index of a row."""
    codes = torch.zeros_like(keys[0])
    for key in keys:
        places_of_key = key.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        codes = (codes * (int(places_of_key.max()) + 1) + places_of_key).unique(return_inverse=True)[1]
    places = torch.empty(int(codes.max()) + 1, dtype=torch.int64)
    places[codes] = torch.arange(len(codes))
    return codes, places
