"""The values of metrics on some rows of a model, with intervals, bounds and differences, from the units of these rows.

If a failure is so rare that no row of a sample shows it, no look at the rows can tell: only the range of what a row can
add bounds what further rows would show. So a bound contains one worst unit, of the largest size, beside those seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import nan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.crossed_clusters import (
    Ends,
    crossed_difference,
    crossed_interval,
)
from mpcs_torch.evaluation.influence import (
    RATE,
    Estimate,
    IndependentUnits,
    Unknown,
    of_sums,
    total_sums,
)
from mpcs_torch.evaluation.intervals_and_bounds import End, bound, interval, rate_intervals
from mpcs_torch.evaluation.outcomes import Outcomes
from mpcs_torch.evaluation.paired_differences import difference, difference_bound
from mpcs_torch.evaluation.parts import ValueOfParts
from mpcs_torch.evaluation.ranks import RankedUnits
from mpcs_torch.evaluation.reasons import NO_RANGE, NO_VALUE, NOT_REQUESTED, Reason
from mpcs_torch.evaluation.sum_layout import SumLayout
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.quality.scores import ClassRate


class SumsOfUnits(NamedTuple):
    """A measure, and its sums of each unit."""

    measure: Measure
    sums: Any
    """A ``sums_type`` of the measure, with tensors (U, ...)."""
    units: IndependentUnits

    def value(self) -> float:
        """Return the value."""
        return self.measure.value(total_sums(self.sums, self.units)).item()

    def estimate(self) -> Estimate:
        """Return the value with the influence of each unit."""
        return of_sums(self.measure, self.sums, self.units)

    @property
    def is_rate(self) -> bool:
        """Whether the metric is the share of rows that count for it."""
        return list(self.measure.row_ratios(total_sums(self.sums, self.units))) == RATE


@dataclass(frozen=True)
class UnitValues:
    """The units of some rows of a model, from which values, intervals, bounds and differences are computed."""

    layout: SumLayout
    sums: Tensor
    """(U, K): the sums of the units."""
    units: IndependentUnits
    others: Mapping[str, RankedUnits | ValueOfParts] = field(default_factory=dict)
    """The metrics that are no functions of these sums, by name."""
    wide: Tensor | None = None
    """(W,): the sums of wide measures over all rows; None if there are none."""
    crossed: "tuple[UnitValues, ...]" = ()
    """For crossed clusters: the same rows by the second column of clusters, and by pairs of both columns."""

    @cached_property
    def metrics(self) -> dict[str, SumsOfUnits | RankedUnits | ValueOfParts]:
        """The value of each metric and all that its intervals need, by its name."""
        metrics = dict[str, SumsOfUnits | RankedUnits | ValueOfParts](self.others)
        for name, measure, sums in self.layout.measure_sums(self.sums):
            metrics[name] = SumsOfUnits(measure, sums, self.units)
        return metrics

    @property
    def clusterings(self) -> "tuple[UnitValues, ...]":
        """The same rows in each way in which they are clustered: one or, for crossed clusters, three."""
        return (self, *self.crossed)

    def measured(self, *, intervals: bool) -> dict[str, tuple[float, Ends]]:
        """Return the value of each metric, and its interval or the reason why it has none."""
        if not intervals:
            return {
                name: (each.value(), NOT_REQUESTED) for name, each in self.metrics.items()
            }
        measured = dict[str, tuple[float, Ends]]()
        for name in self.metrics:
            estimates = [each.estimate(name) for each in self.clusterings]
            value = estimates[0].value
            intervals_by_way = [interval(estimate) for estimate in estimates]
            measured[name] = value, crossed_interval(value, intervals_by_way)
        return measured

    def estimate(self, metric: str) -> Estimate:
        """Return the value of a metric, or of a rate such as ``recall[malignant]``, with the influence of each unit."""
        known = self.metrics.get(metric) or self._rate(metric)
        return Unknown(nan, NO_VALUE) if known is None else known.estimate()

    def _rate(self, metric: str) -> SumsOfUnits | None:
        rate, _, name = metric.removesuffix("]").partition("[")
        outcomes = self.outcomes()
        if name not in outcomes:
            return None
        counts = outcomes[name].rates(self.units.sizes, refers=self.layout.chosen.refers)
        if rate not in counts:
            return None
        part, total = counts[rate]
        units = self.units
        if total is outcomes[name].true:
            units = self._units_of_classes(name)
        return SumsOfUnits(ClassRate(2), WeightedSum(part, total), units)

    def _units_of_classes(self, name: str) -> IndependentUnits:
        """Return the units for a rate of the rows of a class, or of a group of classes."""
        counter = self.layout.outcomes
        assert counter is not None
        return self.units.of_classes(counter.classes_of(name))

    def bound(self, metric: str, end: End) -> float | Reason:
        """Return the bound of a value for requirements, or the reason why it has none."""
        return NO_RANGE if self.crossed else bound(self.estimate(metric), end)

    def difference_bound(
        self, reference: "UnitValues", metric: str, end: End
    ) -> float | Reason:
        """Return the bound of this model's value minus that of the ``reference``, whose units are the same."""
        return difference_bound(reference.estimate(metric), self.estimate(metric), end)

    def difference(self, other: "UnitValues", metric: str) -> PairedDifference | Reason:
        """Return the other model's value minus this one's, with interval and p-value, or the reason for none.

        The units of both models must be the same.
        """
        differences = list[PairedDifference | Reason]()
        for mine, theirs in zip(self.clusterings, other.clusterings, strict=True):
            my_value = mine.others.get(metric)
            their_value = theirs.others.get(metric)
            if isinstance(my_value, ValueOfParts) and isinstance(their_value, ValueOfParts):
                change = my_value.difference(their_value)
            else:
                change = difference(mine.estimate(metric), theirs.estimate(metric))
            differences.append(change)
        return crossed_difference(differences)

    def outcomes(self) -> Mapping[str, Outcomes]:
        """Return the outcomes in each unit, as tensors (U,), by class or group of classes."""
        return self.layout.outcomes_of(self.sums)

    def class_rows(self) -> Tensor | None:
        """Return the number of rows of each class in each unit, (U, C); None if classes are many and not counted."""
        outcomes = self.outcomes()
        names = self.layout.chosen.class_names
        if names[0] in outcomes:
            return torch.stack([outcomes[name].true for name in names], dim=1)
        for _, measure, sums in self.layout.measure_sums(self.sums):
            by_class = measure.averaged_classes(sums)
            if by_class is not None:
                return by_class
        return None

    def class_intervals(
        self, summed: Mapping[str, Outcomes]
    ) -> dict[str, dict[str, Interval]]:
        """Return the intervals of rates, by class or group of classes, then by rate.

        ``summed`` are the outcomes of all rows.
        """
        of_clusterings = [each._rates(summed) for each in self.clusterings]
        intervals = dict[str, dict[str, Interval]]()
        for name, rates in of_clusterings[0].items():
            intervals[name] = {}
            for rate, (value, _) in rates.items():
                ends_by_way = [by_name[name][rate][1] for by_name in of_clusterings]
                ends = crossed_interval(value, ends_by_way)
                if not isinstance(ends, Reason):
                    intervals[name][rate] = ends
        return intervals

    def _rates(
        self, summed: Mapping[str, Outcomes]
    ) -> dict[str, dict[str, tuple[float, Ends]]]:
        units = self.units
        sizes = self.units.sizes
        outcomes = self.outcomes()
        counted = {name: outcomes[name] for name in summed if name in outcomes}
        if units.are_rows:
            # The interval needs only the counts of all rows, which here are one unit.
            counted = {
                name: of_rows.mapped(lambda number: number.unsqueeze(0))
                for name, of_rows in summed.items()
            }
            sizes = (units.counts @ sizes).unsqueeze(0)
            units = units._replace(counts=torch.ones_like(sizes))
        by_class = dict[str, dict[str, tuple[float, Ends]]]()
        for name, of_units in counted.items():
            rates = of_units.rates(sizes, refers=self.layout.chosen.refers)
            parts = torch.stack([part for part, _ in rates.values()], dim=1)
            totals = torch.stack([total for _, total in rates.values()], dim=1)
            units_of_rates = [units] * len(rates)
            if not units.are_rows:
                of_classes = self._units_of_classes(name)
                units_of_rates = [
                    of_classes if total is of_units.true else units
                    for _, total in rates.values()
                ]
            intervals = rate_intervals(parts, totals, units_of_rates)
            by_class[name] = dict(zip(rates, intervals, strict=True))
        return by_class
