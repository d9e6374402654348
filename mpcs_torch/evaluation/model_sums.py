"""Keep the sums of one model's rows in units, from which values and intervals are computed."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, quoted
from mpcs_torch.evaluation.chosen import MetricInputs
from mpcs_torch.evaluation.outcomes import decisions_by_way
from mpcs_torch.evaluation.parts import ValueOfParts, limits_of
from mpcs_torch.evaluation.ranks import KeptRanks, RankedUnits
from mpcs_torch.evaluation.rows import Rows
from mpcs_torch.evaluation.sum_layout import SumLayout
from mpcs_torch.evaluation.unit_sums import (
    BUDGET,
    LEADING,
    UnitSums,
    in_bits,
    places_by_code,
)
from mpcs_torch.evaluation.unit_values import UnitValues
from mpcs_torch.functional.inputs.labels import Bins
from mpcs_torch.metrics.metric_entry import MetricEntry, Takes
from mpcs_torch.metrics.shared_sums import SharedSums

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.evaluation.metric_states import PartStates

PENDING = 2**17
"""The number of scores that rows must have before they are summed."""
PENDING_ROWS = 2048
"""The number of rows that are summed together if there are so many classes that fewer rows have ``PENDING`` scores."""
PENDING_STATES = 2**21
"""The number of scores (16 MiB) that rows must have before the states of other metrics are updated."""
BUDGET_OF_GROUPS = 8 * BUDGET
"""The maximum number of sums of the units of all groups of a column (128 MiB)."""
MAX_SUM_NUMBERS = 2**27
"""The maximum number of values (1 GiB) for all groups of a column; if there are more, rows are refused."""
ALL = ""
"""The key for all rows, in dictionaries whose other keys are columns of groups."""
CONFUSION = "confusion"
"""The name of a total: the confusion matrix."""
CLASS_ROWS = "class rows"
"""The name of a total: the number of rows of each class, (C,)."""
WEIGHT_SQUARES = "squares of weights"
"""The name of a total: the sum of squared weights."""


class ModelSums:
    """The sums of the units of one model's rows, in total and by group.

    Without ``keeps_units``, all rows are one unit, so there are no intervals.
    """

    def __init__(
        self, layout: SumLayout, columns: Sequence[str], *, keeps_units: bool
    ) -> None:
        self.layout = layout
        self._keeps_units = keeps_units
        chosen = layout.chosen
        self.tables = {
            ALL: UnitSums(),
            **{column: UnitSums(BUDGET_OF_GROUPS) for column in columns},
        }
        """The sums of units, by column of groups; the first key, ``ALL``, is for all rows."""
        # A histogram of the rows of a group must be asked for.
        wide_columns = [ALL] if chosen.is_default else list(self.tables)
        self._wide = {
            column: UnitSums(2 * MAX_SUM_NUMBERS) for column in wide_columns if layout.wide
        }
        """The sums of wide measures, by column; each group is one unit."""
        self._states = {column: dict[int, "list[PartStates]"]() for column in self.tables}
        """The states of metrics that are not functions of sums, by column, then by code of the group of rows."""
        self._ranks = {name: KeptRanks(measure) for name, measure in layout.ranks.items()}
        self._pending: list[Rows] = []
        self._pending_states: list[Rows] = []
        self._has_decisions = any(entry.takes == "decisions" for entry in chosen.entries)
        self._max_pending = max(
            PENDING, min(PENDING_ROWS * chosen.num_classes, PENDING_STATES)
        )
        """The number of scores that are collected before they are summed."""
        self.rows = 0
        self.totals = dict[str, Tensor]()
        """Sums over all rows, by `CONFUSION` and the other names."""
        self.decided = dict[str, Tensor]()
        """The counts of decisions, as in `OverCosts.models`, by decision rule; empty if costs are not ranges."""

    @property
    def confusion(self) -> Tensor | None:
        """The confusion matrix, (C, C), with a row for each true class; float64 with weights; None if it is not needed.

        If rows may be referred, it is (C, C + A + 1): the last columns are A sets of classes, then referrals.
        """
        return self.totals.get(CONFUSION)

    def add(self, rows: Rows) -> None:
        """Add rows; raise a ValueError if there are too many groups."""
        step = max(1, self._max_pending * len(rows.ids) // max(1, self._scores_in([rows])))
        for start in range(0, len(rows.ids), step):
            part = rows.at(slice(start, start + step))
            self.rows += len(part.ids)
            self._pending.append(part)
            if self._scores_in(self._pending) >= self._max_pending:
                self._flush_sums()
            if self._scores_in(self._pending_states) >= PENDING_STATES:
                self._flush_states()

    def _scores_in(self, parts: Sequence[Rows]) -> int:
        """Return the number of scores in some rows. A row of which k classes have shares counts as k rows."""
        scores = 0
        for part in parts:
            rows = len(part.ids)
            if self.layout.chosen.has_shares:
                rows = int(part.target.count_nonzero())
            scores += rows * part.probs.shape[1]
        return scores

    def flush(self) -> None:
        """Add the pending rows to sums and states."""
        self._flush_sums()
        self._flush_states()

    def _flush_sums(self) -> None:
        if not self._pending:
            return
        rows = Rows.joined(self._pending)
        self._pending = []
        groups_of_sums = [*self.layout.measures, *self.layout.wide]
        takes: set[Takes] = {"decisions", "probabilities"}
        takes |= {group.takes for group in groups_of_sums}
        inputs = MetricInputs(rows, takes)
        self._add_totals(inputs)
        self._add_sums(inputs)
        for kept in self._ranks.values():
            places, preds, target, weights = inputs.arguments("probabilities")
            groups = {column: codes[places] for column, codes in rows.groups.items()}
            kept.add(kept.measure.rows(preds, target, weights), rows.ids[places], groups)
        if self.layout.others:
            self._pending_states.append(rows)
        for column in rows.groups:
            numbers = 0
            for of_group in self._states[column].values():
                numbers += sum(states.numbers for states in of_group)
            tables = [each[column] for each in (self.tables, self._wide) if column in each]
            if numbers > MAX_SUM_NUMBERS or any(
                table.exceeds(MAX_SUM_NUMBERS) for table in tables
            ):
                limit = 8 * MAX_SUM_NUMBERS // 2**30  # in GiB of float64
                raise InvalidValueError(
                    "fewer_groups", f"column {quoted(column)}", limit=limit
                )

    def merge(self, other: "ModelSums", codes: Mapping[str, Tensor], *, first: int) -> None:
        """Add the sums and states of other rows, for the same metrics.

        ``codes[column]`` translates codes of groups of rows: the group with the code c in ``other`` has the code
        ``codes[column][c]`` here. If identifiers of rows are positions, ``first`` is added to those of ``other``.
        """
        self.flush()
        other.flush()
        self.rows += other.rows
        for mine, theirs in ((self.totals, other.totals), (self.decided, other.decided)):
            for name, number in theirs.items():
                _add(mine, name, number)
        for column, table in other.tables.items():
            self.tables[column].merge(table, codes.get(column), first=first)
        for column, table in other._wide.items():
            self._wide[column].merge(table, codes.get(column))
        for name, kept in other._ranks.items():
            self._ranks[name].merge(kept, codes, first=first)
        for column, by_code in other._states.items():
            for code, added in by_code.items():
                code_here = int(codes[column][code]) if column in codes else code
                here = self._group_states(column, code_here)
                for states, others in zip(here, added, strict=True):
                    states.merge(others, first=first)

    @property
    def effective_rows(self) -> float:
        """The effective sample size of the weighted rows (Kish)."""
        weights = self.tables[ALL].sums[:, LEADING - 1]
        return (weights.sum().square() / self.totals[WEIGHT_SQUARES]).item()

    def values(self, column: str, cluster: str | None) -> dict[int, UnitValues]:
        """Return the units of each group of a column by its code; those of all rows, with the code 0, for `ALL`.

        ``cluster`` is the column of clusters; None if rows are independent. Call `flush` of all models first: models
        share the Metrics that compute the values of their states.
        """
        wide = dict[int, Tensor]()
        if column in self._wide:
            for code, _, sums in self._wide[column].by_group():
                wide[code] = sums[0]  # all rows of a group are one unit
        ranks = {name: kept.by_group(column, cluster) for name, kept in self._ranks.items()}
        values = dict[int, UnitValues]()
        for code, _, sums in self.tables[column].by_group():
            units = self.layout.units(sums, cluster)
            of_all = wide.get(code)
            others: dict[str, RankedUnits | ValueOfParts] = {
                name: by_code[code] for name, by_code in ranks.items()
            }
            if of_all is not None:
                others |= self.layout.wide_values(of_all, units.name)
            others |= self._values_of_parts(column, code, units.name)
            values[code] = UnitValues(self.layout, sums, units, others, of_all)
        return values

    def _values_of_parts(
        self, column: str, code: int, unit: str
    ) -> dict[str, ValueOfParts]:
        """Return the values of the metrics that are not functions of sums, for a group of rows."""
        values = dict[str, ValueOfParts]()
        of_groups = self._group_states(column, code)
        for group, states in zip(self.layout.others, of_groups, strict=True):
            computed = states.loaded().compute()
            # All at once, because a metric that gives several of them keeps what it has computed.
            numbers = {entry.name: entry.number(computed) for entry in group.entries}
            for entry in group.entries:
                value = numbers[entry.name]
                reason = self.layout.no_methods.get(entry.name) or states.reason
                if reason is not None:
                    values[entry.name] = ValueOfParts(value, reason, unit)
                    continue
                whole = torch.tensor(value, dtype=torch.float64)
                left_out = states.leave_out(partial(_number_of, entry), whole)
                limits = limits_of(group.first)
                values[entry.name] = ValueOfParts(value, left_out, unit, limits)
        return values

    def _add_totals(self, inputs: MetricInputs) -> None:
        rows = inputs.rows
        chosen = self.layout.chosen
        if self._has_decisions:
            _, decisions, target, weights = inputs.arguments("decisions")
            shape = chosen.num_classes, chosen.num_classes + chosen.further
            _add(self.totals, CONFUSION, _counted_pairs(target, decisions, shape, weights))
            _add(self.totals, CLASS_ROWS, target.bincount(minlength=chosen.num_classes))
        if rows.weights is not None:
            _add(self.totals, WEIGHT_SQUARES, rows.weights.square().sum())
        if chosen.ranges is not None:
            costs = chosen.ranges.middle.costs()
            for way, decisions in decisions_by_way(rows.probs, costs).items():
                _add(self.decided, way, _counted_pairs(rows.target, decisions, costs.shape))

    def _add_sums(self, inputs: MetricInputs) -> None:
        rows = inputs.rows
        none = torch.zeros_like(inputs.rows.ids)
        # Identifiers have as many bits as the table that needs most of them; None means all.
        bits: int | None = 0
        for table in self.tables.values():
            bits = None if bits is None or table.bits is None else max(bits, table.bits)
        ids = in_bits(rows.ids, None, bits) if self._keeps_units else none
        codes, places = _joint([ids, *rows.groups.values()])
        numbers = self.layout.sums(inputs, Bins(codes, len(places)))
        for column, table in self.tables.items():
            groups = rows.groups.get(column, none)
            table.add(groups[places], in_bits(ids[places], bits, table.bits), numbers)
        for column, table in self._wide.items():
            codes, places = rows.groups.get(column, none).unique(return_inverse=True)  # type: ignore[no-untyped-call]
            table.add(
                codes,
                torch.zeros_like(codes),
                self.layout.wide_sums(inputs, Bins(places, len(codes))),
            )

    def _flush_states(self) -> None:
        if not self._pending_states:
            return
        rows = Rows.joined(self._pending_states)
        self._pending_states = []
        for column in self._states:
            groups = rows.groups.get(column, torch.zeros_like(rows.ids))
            for code, places_of_group in places_by_code(groups).items():
                part = rows.at(places_of_group) if column else rows
                inputs = MetricInputs(part, {group.takes for group in self.layout.others})
                of_group = self._group_states(column, code)
                for group, states in zip(self.layout.others, of_group, strict=True):
                    places, *arguments, weights = inputs.arguments(group.takes)
                    try:
                        states.add(part.ids[places], *arguments, weights=weights)
                    except Exception as error:
                        names = ", ".join(entry.name for entry in group.entries)
                        error.add_note(f"This was raised by the metrics: {names}.")
                        raise

    def _group_states(self, column: str, code: int) -> "list[PartStates]":
        """Return a group's states, one for each set of metrics that share them; create empty states for a new group."""
        if code not in self._states[column]:
            self._states[column][code] = [
                self._new_states(group, column) for group in self.layout.others
            ]
        return self._states[column][code]

    def _new_states(self, group: SharedSums, column: str) -> "PartStates":
        from mpcs_torch.evaluation.metric_states import BITS, MIN_BITS, PartStates

        bits = MIN_BITS if column else BITS
        if not self._keeps_units or all(entry.no_interval for entry in group.entries):
            bits = 0
        return PartStates(group.first, bits=bits)


def _number_of(entry: MetricEntry, metric: Any) -> Tensor:
    return torch.tensor(entry.number(metric.compute()), dtype=torch.float64)


def _add(totals: dict[str, Tensor], name: str, added: Tensor) -> None:
    totals[name] = totals.get(name, 0) + added


def _counted_pairs(
    target: Tensor, decisions: Tensor, shape: Sequence[int], weights: Tensor | None = None
) -> Tensor:
    """Count rows, or add ``weights``, by true class and decision: a matrix of ``shape``; -1 is the last column."""
    rows, columns = shape
    cells = target * columns + decisions % columns  # -1 % columns is the last column
    return cells.bincount(weights, rows * columns).view(rows, columns)


def _joint(keys: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Number the combinations of ``keys``; return each row's number, (n,), and for each number, the index of a row."""
    codes = torch.zeros_like(keys[0])
    for key in keys:
        # Numbered anew for each key, so that combinations of many keys are still small numbers.
        places_of_key = key.unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
        combined = codes * (int(places_of_key.max()) + 1) + places_of_key
        codes = combined.unique(return_inverse=True)[1]
    places = torch.empty(int(codes.max()) + 1, dtype=torch.int64)
    places[codes] = torch.arange(len(codes))
    return codes, places
