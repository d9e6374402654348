"""Compute bounds of values and of differences for requirements: they allow for one unit as bad as any can be.

If a failure is so rare that no row of a sample shows it, no look at the rows can tell: only the range of what a row can
add bounds what further rows would show. So a bound contains one worst unit (a row, or a cluster of the largest size)
beside those seen. To first order, a value is the mean of the influences of units, to which Gaffke's bound applies; for
rates, costs and other ratios, this is exact. A metric without a range has no bound.
"""

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import (
    NO_RANGE,
    NO_VALUE,
    AnyMeasure,
    End,
    Reason,
    Units,
    bounded_interval,
    histogram,
    influences,
    total_sums,
)
from mpcs_torch.evaluation.model_sums import SumLayout
from mpcs_torch.evaluation.ranks import KeptRanks
from mpcs_torch.functional.comparison.confidence_intervals import bounded_mean_bound
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.quality.scores import ClassRate


class Bounds(NamedTuple):
    """The sums of the units of some rows of a model, from which bounds are computed if a requirement asks for them."""

    layout: SumLayout
    numbers: Tensor
    """(B, K): the sums of the units."""
    units: Units
    ranks: Mapping[str, KeptRanks]
    """The rows that measures of ranks keep, by name of the metric."""
    group: tuple[str, int] = ("", 0)
    """The column and the code of the group of these rows."""

    def of_value(self, metric: str, end: End) -> float | Reason:
        """Return the bound of a value, or the reason why it has none."""
        if metric in self.ranks:
            return self.ranks[metric].bound(*self.group, clusters=self.units.cluster is not None, end=end)
        measured = self._measured(metric)
        return NO_RANGE if measured is None else value_bound(*measured, self.units, end)

    def of_difference(self, reference: "Bounds", metric: str, end: End) -> float | Reason:
        """Return the bound of this model's value minus that of the ``reference``, whose units are the same."""
        clusters = self.units.cluster is not None
        if metric in self.ranks:
            minus = reference.ranks[metric]
            return self.ranks[metric].bound("", 0, clusters=clusters, end=end, minus=minus)
        ours, theirs = self._measured(metric), reference._measured(metric)
        if ours is None or theirs is None:
            return NO_RANGE
        return difference_bound(ours[0], theirs[1], ours[1], self.units, end)

    def counts(self, rate: str) -> bool:
        """Return whether a rate of a class, such as ``recall[malignant]``, is counted for each unit."""
        return self._measured(rate) is not None

    def _measured(self, metric: str) -> tuple[AnyMeasure, Any] | None:
        """Return the measure of a metric, and its sums of each unit; None if the metric is not a function of sums."""
        for name, measure, bins in self.layout.measure_sums(self.numbers):
            if name == metric:
                return measure, bins
        of_groups = self.layout.binned_outcomes(self.numbers)
        rate, _, name = metric.rstrip("]").partition("[")
        if name not in of_groups:
            return None
        rows = self.units.rows if self.units.weights is None else self.units.weights
        counts = of_groups[name].rates(rows, refers=self.layout.chosen.refers)
        return (ClassRate(2), WeightedSum(*counts[rate])) if rate in counts else None


def value_bound(measure: AnyMeasure, bins: Any, units: Units, end: End) -> float | Reason:
    """Return the bound of a value, or the reason why it has none; the arguments are as in `metric_interval`."""
    whole = total_sums(bins, units)
    if not isfinite(measure.value(whole).item()):
        return NO_VALUE
    if not measure.has_range:
        return NO_RANGE
    if measure.bin_ratios(bins, whole, units.size) and measure.interval_rule != "smooth":
        ends = bounded_interval(measure, bins, whole, units, end.confidence)
        return ends if isinstance(ends, str) else ends[end.is_upper]
    found = influences(measure, bins, units)
    if isinstance(found, str):
        return found
    worst = found.of_rows.amax() if end.is_upper else found.of_rows.amin()
    bound = _bound(found.value, found.of_units, worst, units, end)
    least, most = measure.limits
    return max(-inf if least is None else least, min(bound, inf if most is None else most))


def difference_bound(measure: AnyMeasure, first: Any, second: Any, units: Units, end: End) -> float | Reason:
    """Return the bound of the second value minus the first; the arguments are as in `metric_difference`."""
    if not measure.has_range:
        return NO_RANGE
    both = [influences(measure, bins, units) for bins in (first, second)]
    for found in both:
        if isinstance(found, str):
            return found
    one, other = (found for found in both if not isinstance(found, str))
    ends = [(rows.amin(1), rows.amax(1)) for rows in (one.of_rows, other.of_rows)]
    worst = (ends[1][1] - ends[0][0]).amax() if end.is_upper else (ends[1][0] - ends[0][1]).amin()
    change = other.of_units - one.of_units
    return _bound(other.value - one.value, change, worst, units, end)


def _bound(value: float, of_units: Tensor, worst: Tensor, units: Units, end: End) -> float:
    """Return Gaffke's bound of the mean of the influences; it allows for one unit of the largest size that is worst."""
    number = units.counts.sum().item()
    of_worst = number * units.size * worst.item()
    if not bool(of_units.isfinite().all()) or not isfinite(of_worst):
        return inf if end.is_upper else -inf
    values, counts, _ = histogram(number * of_units, torch.ones_like(of_units), [(of_worst, 1.0)], units)
    return value + bounded_mean_bound(values, counts, per=None, confidence=end.confidence, is_upper=end.is_upper)
