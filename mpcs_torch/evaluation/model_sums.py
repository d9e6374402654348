"""Keep the sums of one model's rows in units, from which values and intervals are computed."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

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
    WEIGHTS,
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


class WeightRange(NamedTuple):
    """The lowest and the highest weight of the rows of each class: (C,) each; infinite and 0 without rows."""

    lowest: Tensor
    highest: Tensor

    @classmethod
    def empty(cls, classes: int) -> "WeightRange":
        """Return the range of no rows."""
        none = torch.zeros(classes, dtype=torch.float64)
        return cls(none + inf, none)

    def add(self, target: Tensor, weights: Tensor) -> None:
        """Add rows with labels and weights, (n,) each."""
        self.lowest.scatter_reduce_(0, target, weights, "amin")
        self.highest.scatter_reduce_(0, target, weights, "amax")

    def add_to_all(self, weights: Tensor) -> None:
        """Add rows with soft labels, which are of any class, and weights (n,), of which there may be none."""
        if len(weights):
            self.lowest.clamp_(max=weights.min())
            self.highest.clamp_(min=weights.max())

    def merge(self, other: "WeightRange") -> None:
        """Add the rows of ``other``."""
        torch.minimum(self.lowest, other.lowest, out=self.lowest)
        torch.maximum(self.highest, other.highest, out=self.highest)

    def known(self) -> Tensor | None:
        """Return the weight of the rows of each class, (C,), or None if it differs within a class."""
        return self.highest if bool((self.lowest >= self.highest).all()) else None


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
        self._wide = {column: dict[int, Tensor]() for column in wide_columns if layout.wide}
        """The sums of wide measures, (W,), by column, then by code of the group of rows."""
        self._states = {column: dict[int, "list[PartStates]"]() for column in self.tables}
        """The states of metrics that are not functions of sums, by column, then by code of the group of rows."""
        self._ranks = {name: KeptRanks(measure) for name, measure in layout.ranks.items()}
        self._pending: list[Rows] = []
        self._has_decisions = any(entry.takes == "decisions" for entry in chosen.entries)
        self.rows = 0
        self.totals = dict[str, Tensor]()
        """Sums over all rows, by `CONFUSION` and the other names."""
        self._class_weights = WeightRange.empty(chosen.num_classes)
        self.decided = dict[str, Tensor]()
        """The counts of decisions, as in `OverCosts.models`, by decision rule; empty if costs are not ranges."""

    @property
    def columns(self) -> list[str]:
        """The columns of groups."""
        return [column for column in self.tables if column != ALL]

    @property
    def confusion(self) -> Tensor | None:
        """The confusion matrix, (C, C), with a row for each true class; float64 with weights; None if it is not needed.

        If rows may be referred, it is (C, C + A + 1): the last columns are A sets of classes, then referrals.
        """
        return self.totals.get(CONFUSION)

    def add(self, rows: Rows) -> None:
        """Add rows; raise a ValueError if there are too many groups."""
        self.rows += len(rows.ids)
        self._pending.append(rows)
        # Other metrics are updated once for each of many parts of the rows, so rarely.
        most = PENDING_STATES if self.layout.others else self._scores_at_once
        if sum(map(self._scores_in, self._pending)) >= most:
            self.flush()

    @property
    def _scores_at_once(self) -> int:
        """The number of scores that are summed at once."""
        of_rows = PENDING_ROWS * self.layout.chosen.num_classes
        return max(PENDING, min(of_rows, PENDING_STATES))

    def _scores_in(self, rows: Rows) -> int:
        """Return the number of scores in some rows. A row of which k classes have shares counts as k rows."""
        number = len(rows.ids)
        if self.layout.chosen.has_shares:
            number = int(rows.target.count_nonzero())
        return number * rows.probs.shape[1]

    def flush(self) -> None:
        """Add the pending rows to sums and states."""
        if not self._pending:
            return
        rows = Rows.joined(self._pending)
        self._pending = []
        for part in self._parts(rows, self._scores_at_once):
            self._add_sums(part)
        if self.layout.others:
            for part in self._parts(rows, PENDING_STATES):
                self._add_states(part)
        for column in rows.groups:
            numbers = sum(len(sums) for sums in self._wide.get(column, {}).values())
            for of_group in self._states[column].values():
                numbers += sum(states.numbers for states in of_group)
            if self.tables[column].exceeds(MAX_SUM_NUMBERS - numbers):
                limit = 8 * MAX_SUM_NUMBERS // 2**30  # in GiB of float64
                raise InvalidValueError(
                    "fewer_groups", f"column {quoted(column)}", limit=limit
                )

    def _parts(self, rows: Rows, most: int) -> Iterator[Rows]:
        """Yield the rows in parts of up to ``most`` scores."""
        number = len(rows.ids)
        step = max(1, most * number // max(1, self._scores_in(rows)))
        for start in range(0, number, step):
            yield rows.at(slice(start, start + step))

    def merge(self, other: "ModelSums", codes: Mapping[str, Tensor], *, first: int) -> None:
        """Add the sums and states of other rows, for the same metrics.

        ``codes[column]`` translates codes of groups of rows: the group with the code c in ``other`` has the code
        ``codes[column][c]`` here. If identifiers of rows are positions, ``first`` is added to those of ``other``.
        """
        self.flush()
        other.flush()
        self.rows += other.rows
        self._class_weights.merge(other._class_weights)
        for mine, theirs in ((self.totals, other.totals), (self.decided, other.decided)):
            for name, number in theirs.items():
                _add(mine, name, number)
        for column, table in other.tables.items():
            self.tables[column].merge(table, codes.get(column), first=first)
        for name, kept in other._ranks.items():
            self._ranks[name].merge(kept, codes, first=first)

        def code_here(column: str, code: int) -> int:
            return int(codes[column][code]) if column in codes else code

        for column, sums_by_code in other._wide.items():
            for code, sums in sums_by_code.items():
                _add(self._wide[column], code_here(column, code), sums)
        for column, states_by_code in other._states.items():
            for code, added in states_by_code.items():
                here = self._group_states(column, code_here(column, code))
                for states, others in zip(here, added, strict=True):
                    states.merge(others, first=first)

    @property
    def effective_rows(self) -> float:
        """The effective sample size of the weighted rows (Kish)."""
        weights = self.tables[ALL].sums[:, WEIGHTS]
        return (weights.sum().square() / self.totals[WEIGHT_SQUARES]).item()

    def values(self, column: str, cluster: str | None) -> dict[int, UnitValues]:
        """Return the units of each group of a column by its code; those of all rows, with the code 0, for `ALL`.

        ``cluster`` is the column of clusters; None if rows are independent. Call `flush` of all models first: models
        share the Metrics that compute the values of their states.
        """
        wide = self._wide.get(column, {})
        of_all_groups = self._weights_of_all_groups(cluster)
        ranks = {name: kept.by_group(column, cluster) for name, kept in self._ranks.items()}
        values = dict[int, UnitValues]()
        for code, _, sums in self.tables[column].by_group():
            units = self.layout.units(sums, cluster)._replace(**of_all_groups)
            of_all = wide.get(code)
            others: dict[str, RankedUnits | ValueOfParts] = {
                name: by_code[code] for name, by_code in ranks.items()
            }
            if of_all is not None:
                others |= self.layout.wide_values(of_all, units.name)
            others |= self._values_of_parts(column, code, units.name)
            values[code] = UnitValues(self.layout, sums, units, others, of_all)
        return values

    def _weights_of_all_groups(self, cluster: str | None) -> dict[str, Any]:
        """Return the fields of `IndependentUnits` about the weights of further units of any group."""
        if not self.layout.chosen.is_weighted:
            return {}
        units = self.layout.units(self.tables[ALL].sums, cluster)
        if cluster is not None:
            return {"heaviest": units.sizes.max().item()}
        heaviest = self._class_weights.highest.max().item()
        if self.layout.chosen.is_soft:
            # A row has a share of each class, so its weight is not that of its class.
            return {"heaviest": heaviest}
        return {
            "heaviest": heaviest,
            "usual_weight": units.usual(units.sizes).item(),
            "class_weights": self._class_weights.known(),
        }

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

    def _add_sums(self, rows: Rows) -> None:
        takes: set[Takes] = {"decisions", "probabilities"}
        takes |= {group.takes for group in (*self.layout.measures, *self.layout.wide)}
        inputs = MetricInputs(rows, takes)
        self._add_totals(rows, inputs)
        none = torch.zeros_like(rows.ids)
        numbers = self.layout.sums(inputs, Bins(torch.arange(len(none)), len(none)))
        for column, table in self.tables.items():
            ids = in_bits(rows.ids, None, table.bits) if self._keeps_units else none
            table.add(rows.groups.get(column, none), ids, numbers)
        for column, sums_by_code in self._wide.items():
            codes, places = rows.groups.get(column, none).unique(return_inverse=True)  # type: ignore[no-untyped-call]
            sums = self.layout.wide_sums(inputs, Bins(places, len(codes)))
            for code, of_group in zip(codes.tolist(), sums, strict=True):
                _add(sums_by_code, code, of_group)
        for kept in self._ranks.values():
            places, preds, target, weights = inputs.arguments("probabilities")
            kept.add(rows.at(places), kept.measure.rows(preds, target, weights))

    def _add_totals(self, rows: Rows, inputs: MetricInputs) -> None:
        """Add what is counted over all rows: decisions by true class, weights, and decisions by each rule of ranges."""
        chosen = self.layout.chosen
        if self._has_decisions:
            _, decisions, target, weights = inputs.arguments("decisions")
            shape = chosen.num_classes, chosen.num_classes + chosen.further
            _add(self.totals, CONFUSION, _counted_pairs(target, decisions, shape, weights))
            _add(self.totals, CLASS_ROWS, target.bincount(minlength=chosen.num_classes))
        if rows.weights is not None:
            _add(self.totals, WEIGHT_SQUARES, rows.weights.square().sum())
            if chosen.is_soft:
                self._class_weights.add_to_all(rows.weights)
            else:
                self._class_weights.add(rows.target, rows.weights)
        if chosen.ranges is not None:
            costs = chosen.ranges.middle.costs()
            for way, decisions in decisions_by_way(rows.probs, costs).items():
                _add(self.decided, way, _counted_pairs(rows.target, decisions, costs.shape))

    def _add_states(self, rows: Rows) -> None:
        for column in self._states:
            groups = rows.groups.get(column, torch.zeros_like(rows.ids))
            for code, places_of_group in places_by_code(groups).items():
                part = rows if column == ALL else rows.at(places_of_group)
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
            new = [self._new_states(group, column) for group in self.layout.others]
            if column != ALL:
                # A group may have too few rows to show that states do not merge. All rows were added before it.
                for states, of_all in zip(new, self._group_states(ALL, 0), strict=True):
                    states.reason = of_all.reason
            self._states[column][code] = new
        return self._states[column][code]

    def _new_states(self, group: SharedSums, column: str) -> "PartStates":
        from mpcs_torch.evaluation.metric_states import BITS, MIN_BITS, PartStates

        bits = BITS if column == ALL else MIN_BITS
        # Without intervals, one part is enough.
        if not self._keeps_units or all(entry.no_interval for entry in group.entries):
            bits = 0
        return PartStates(group.first, bits=bits)


def _number_of(entry: MetricEntry, metric: Any) -> Tensor:
    return torch.tensor(entry.number(metric.compute()), dtype=torch.float64)


def _add(totals: dict[Any, Tensor], key: str | int, added: Tensor) -> None:
    totals[key] = totals.get(key, 0) + added


def _counted_pairs(
    target: Tensor, decisions: Tensor, shape: Sequence[int], weights: Tensor | None = None
) -> Tensor:
    """Count rows, or add ``weights``, by true class and decision: a matrix of ``shape``; -1 is the last column."""
    rows, columns = shape
    cells = target * columns + decisions % columns  # -1 % columns is the last column
    return cells.bincount(weights, rows * columns).view(rows, columns)
