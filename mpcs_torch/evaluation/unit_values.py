"""The values of metrics on some rows of a model, with intervals, bounds and differences, from the units of these rows.

If a failure is so rare that no row of a sample shows it, no look at the rows can tell: only the range of what a row can
add bounds what further rows would show. So a bound contains one worst unit, of the largest size, beside those seen.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.evaluation.crossed_clusters import crossed_difference, crossed_values
from mpcs_torch.evaluation.influence import (
    RATE,
    End,
    Influences,
    Units,
    bound,
    difference,
    difference_bound,
    metric_difference,
    metric_interval,
    of_sums,
    rate_intervals,
    total_sums,
)
from mpcs_torch.evaluation.outcomes import Outcomes
from mpcs_torch.evaluation.parts import ValueOfParts, parts_difference
from mpcs_torch.evaluation.ranks import RankedUnits
from mpcs_torch.evaluation.reasons import NO_RANGE, NOT_REQUESTED, Reason
from mpcs_torch.evaluation.sum_layout import SumLayout
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.quality.scores import ClassRate


@dataclass(frozen=True)
class UnitValues:
    """The units of some rows of a model, from which values, intervals, bounds and differences are computed."""

    layout: SumLayout
    sums: Tensor
    """(U, K): the sums of the units."""
    units: Units
    ranks: Mapping[str, RankedUnits]
    """The rows that measures of ranks keep, by name of the metric."""
    parts: Mapping[str, ValueOfParts]
    """The values of other Metrics, with and without parts of the rows, by name of the metric."""
    wide: Tensor | None
    """(W,): the sums of wide measures over all rows; None if there are none."""
    crossed: "tuple[UnitValues, ...]" = ()
    """For crossed clusters: the same rows by the second column of clusters, and by pairs of both columns."""

    def measured(self, *, intervals: bool) -> dict[str, tuple[float, Interval | Reason]]:
        """Return the value of each metric, and its interval or the reason why it has none."""
        return crossed_values([each._measured(intervals=intervals) for each in (self, *self.crossed)])

    def _measured(self, *, intervals: bool) -> dict[str, tuple[float, Interval | Reason]]:
        values = dict[str, tuple[float, Interval | Reason]]()
        for name, measure, sums in self.layout.measure_sums(self.sums):
            ends = metric_interval(measure, sums, self.units) if intervals else NOT_REQUESTED
            values[name] = measure.value(total_sums(sums, self.units)).item(), ends
        if self.wide is not None:
            values |= self.layout.wide_values(self.wide)
        for name, ranked in self.ranks.items():
            values[name] = ranked.measured(self.units.cluster) if intervals else (ranked.value(), NOT_REQUESTED)
        for name, part in self.parts.items():
            values[name] = part.value, part.interval(self.units.name)
        return values

    def rates(self, summed: Mapping[str, Outcomes]) -> dict[str, dict[str, tuple[float, Interval | Reason]]]:
        """Return rates by class or group of classes, then by name, each with its interval or why it has none.

        ``summed`` are the outcomes of all rows.
        """
        by_clusters = [each._rates(summed) for each in (self, *self.crossed)]
        return {name: crossed_values([rates[name] for rates in by_clusters]) for name in by_clusters[0]}

    def _rates(self, summed: Mapping[str, Outcomes]) -> dict[str, dict[str, tuple[float, Interval | Reason]]]:
        units, sizes, outcomes = self.units, self.units.sizes, self.outcomes()
        counted = {name: outcomes[name] for name in summed if name in outcomes}
        if units.are_rows:  # their total counts are enough
            counted = {name: Outcomes(*(number.unsqueeze(0) for number in of)) for name, of in summed.items()}
            sizes = (units.counts @ sizes).unsqueeze(0)
            units = units._replace(counts=torch.ones_like(sizes))
        by_class = dict[str, dict[str, tuple[float, Interval | Reason]]]()
        for name, of in counted.items():
            rates = of.rates(sizes, refers=self.layout.chosen.refers)
            parts, totals = (torch.stack(each, dim=1) for each in zip(*rates.values(), strict=True))
            by_class[name] = dict(zip(rates, rate_intervals(parts, totals, units), strict=True))
        return by_class

    def bound(self, metric: str, end: End) -> float | Reason:
        """Return the bound of a value for requirements, or the reason why it has none."""
        found = NO_RANGE if self.crossed else self._influences(metric)
        return found if isinstance(found, Reason) else bound(*found, end)

    def difference_bound(self, reference: "UnitValues", metric: str, end: End) -> float | Reason:
        """Return the bound of this model's value minus that of the ``reference``, whose units are the same."""
        theirs, ours = reference._influences(metric), self._influences(metric)
        if isinstance(theirs, Reason):
            return theirs
        return ours if isinstance(ours, Reason) else difference_bound(theirs[0], *ours, end)

    def difference(self, other: "UnitValues", metric: str) -> PairedDifference | Reason:
        """Return the other model's value minus this one's, with interval and p-value, or the reason for none.

        The units of both models must be the same.
        """
        pairs = zip((self, *self.crossed), (other, *other.crossed), strict=True)
        return crossed_difference([first._difference(second, metric) for first, second in pairs])

    def _difference(self, other: "UnitValues", metric: str) -> PairedDifference | Reason:
        no_method = self.layout.no_method(metric)
        if no_method is not None:
            return no_method
        if metric in self.parts:
            return parts_difference(self.parts[metric], other.parts[metric], self.units.name)
        ours, theirs = self.measure(metric), other.measure(metric)
        if ours is not None and theirs is not None:
            return metric_difference(*ours, theirs[1], self.units)
        one, second = self._influences(metric), other._influences(metric)
        if isinstance(one, Reason):
            return one
        return second if isinstance(second, Reason) else difference(one[0], *second)

    def is_rate(self, metric: str) -> bool:
        """Return whether a metric is the share of rows that count for it."""
        found = self.measure(metric)
        return found is not None and list(found[0].row_ratios(total_sums(found[1], self.units))) == RATE

    def outcomes(self) -> Mapping[str, Outcomes]:
        """Return the outcomes in each unit, as tensors (U,), by class or group of classes."""
        return self.layout.outcomes_of(self.sums)

    def measure(self, metric: str) -> tuple[Measure, Any] | None:
        """Return the measure of a metric, or of a rate such as ``recall[malignant]``, and its sums of each unit.

        The result is None if the metric is not a function of sums of units.
        """
        for name, measure, sums in self.layout.measure_sums(self.sums):
            if name == metric:
                return measure, sums
        rate, _, name = metric.rstrip("]").partition("[")
        outcomes = self.outcomes()
        if name not in outcomes:
            return None
        counts = outcomes[name].rates(self.units.sizes, refers=self.layout.chosen.refers)
        return (ClassRate(2), WeightedSum(*counts[rate])) if rate in counts else None

    def _influences(self, metric: str) -> tuple[Influences, Units] | Reason:
        if metric in self.ranks:
            return self.ranks[metric].influences(self.units.cluster)
        found = self.measure(metric)
        if found is None:
            return NO_RANGE
        influences = of_sums(*found, self.units)
        return influences if isinstance(influences, Reason) else (influences, self.units)
