"""Compute bounds of values and of differences for requirements: they allow for one unit as bad as any can be.

If a failure is so rare that no row of a sample shows it, no look at the rows can tell: only the range of what a row can
add bounds what further rows would show. So a bound contains one worst unit (a row, or a cluster of the largest size)
beside those seen. To first order, a value is the mean of the influences of units, to which Gaffke's bound applies; for
rates, costs and other ratios, this is exact. A metric without a range has no bound.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import (
    NO_RANGE,
    NO_VALUE,
    AnyMeasure,
    Reason,
    Units,
    bounded_interval,
    histogram,
    slope_of_ratio,
    total_sums,
)
from mpcs_torch.evaluation.model_sums import SumLayout
from mpcs_torch.evaluation.ranks import KeptRanks
from mpcs_torch.functional.comparison.confidence_intervals import bounded_mean_bound
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.quality.scores import ClassCounts, ClassRate, PairCounts

MAX_CLASSES = 2000
"""The largest number of classes of which all pairs are searched for the worst error."""
ABSENT: Reason = "a class has no rows, so nothing is known of its errors"
MANY_CLASSES: Reason = f"the worst error is searched for among at most {MAX_CLASSES} classes"


class Influences(NamedTuple):
    """A value, and how much each unit and each possible row of weight 1 changes it, to first order."""

    value: float
    of_units: Tensor
    """(B,): the influence of each bin; the sum over all units is 0."""
    of_rows: Tensor
    """(T, D): the influence of a row, by its true class and its decision; (1, D) if the class does not matter."""


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

    def of_value(self, metric: str, *, is_upper: bool) -> float | Reason:
        """Return the bound of a value, or the reason why it has none."""
        if metric in self.ranks:
            return self.ranks[metric].bound(*self.group, clusters=self.units.cluster is not None, is_upper=is_upper)
        measured = self._measured(metric)
        return NO_RANGE if measured is None else value_bound(*measured, self.units, is_upper=is_upper)

    def of_difference(self, reference: "Bounds", metric: str, *, is_upper: bool) -> float | Reason:
        """Return the bound of this model's value minus that of the ``reference``, whose units are the same."""
        clusters = self.units.cluster is not None
        if metric in self.ranks:
            minus = reference.ranks[metric]
            return self.ranks[metric].bound("", 0, clusters=clusters, is_upper=is_upper, minus=minus)
        ours, theirs = self._measured(metric), reference._measured(metric)
        if ours is None or theirs is None:
            return NO_RANGE
        return difference_bound(ours[0], theirs[1], ours[1], self.units, is_upper=is_upper)

    def _measured(self, metric: str) -> tuple[AnyMeasure, Any] | None:
        """Return the measure of a metric, and its sums of each unit; None if the metric is not a function of sums."""
        for name, measure, bins in self.layout.measure_sums(self.numbers):
            if name == metric:
                return measure, bins
        of_groups = self.layout.binned_outcomes(self.numbers)
        rate, _, name = metric.rstrip("]").partition("[")
        if name not in of_groups:
            return None
        counts = of_groups[name].rates(self.units.rows, refers=self.layout.chosen.refers)
        return (ClassRate(2), WeightedSum(*counts[rate])) if rate in counts else None


def value_bound(measure: AnyMeasure, bins: Any, units: Units, *, is_upper: bool) -> float | Reason:
    """Return the bound of a value, or the reason why it has none; the arguments are as in `metric_interval`."""
    whole = total_sums(bins, units)
    if not isfinite(measure.value(whole).item()):
        return NO_VALUE
    if not measure.has_range:
        return NO_RANGE
    if measure.bin_ratios(bins, whole, units.size) and measure.interval_rule != "smooth":
        ends = bounded_interval(measure, bins, whole, units)
        return ends if isinstance(ends, str) else ends[is_upper]
    found = influences(measure, bins, units)
    if isinstance(found, str):
        return found
    worst = found.of_rows.amax() if is_upper else found.of_rows.amin()
    end = _bound(found.value, found.of_units, worst, units, is_upper=is_upper)
    least, most = measure.limits
    return min(end, most) if is_upper and most is not None else end if least is None else max(end, least)


def difference_bound(measure: AnyMeasure, first: Any, second: Any, units: Units, *, is_upper: bool) -> float | Reason:
    """Return the bound of the second value minus the first; the arguments are as in `metric_difference`."""
    if not measure.has_range:
        return NO_RANGE
    both = [influences(measure, bins, units) for bins in (first, second)]
    for found in both:
        if isinstance(found, str):
            return found
    one, other = (found for found in both if not isinstance(found, str))
    ends = [(rows.amin(1), rows.amax(1)) for rows in (one.of_rows, other.of_rows)]
    worst = (ends[1][1] - ends[0][0]).amax() if is_upper else (ends[1][0] - ends[0][1]).amin()
    change = other.of_units - one.of_units
    return _bound(other.value - one.value, change, worst, units, is_upper=is_upper)


def influences(measure: AnyMeasure, bins: Any, units: Units) -> Influences | Reason:
    """Return a value with the influences of units and of rows, or the reason why those of rows are not known."""
    whole = total_sums(bins, units)
    value = measure.value(whole).item()
    if not isfinite(value):
        return NO_VALUE
    if measure.interval_rule != "smooth":
        rows = measure.row_ratios(whole)
        numerator, per = measure.ratio(bins, whole)
        total = (units.counts @ per).item()
        if not rows or not total > 0:
            return NO_RANGE
        ratio, slope = (units.counts @ numerator).item() / total, slope_of_ratio(measure, whole)
        of_rows = torch.tensor([[slope * (top - ratio * of) / total for top, of in rows]], dtype=torch.float64)
        return Influences(value, slope * (numerator - ratio * per) / total, of_rows)
    classes = measure.averaged_classes(bins)
    if classes is not None and bool((units.counts @ classes == 0).any()):
        return ABSENT
    summed = [each.detach().clone().requires_grad_() for each in whole]
    value_of_sums = measure.value(type(whole)(*summed))
    slopes = torch.autograd.grad(value_of_sums, summed, allow_unused=True, materialize_grads=True)
    of_units = torch.stack([(each * slope).flatten(1).sum(1) for each, slope in zip(bins, slopes, strict=True)]).sum(0)
    cells = _of_rows(type(whole)(*slopes))
    return cells if isinstance(cells, str) else Influences(value, of_units, cells)


def _of_rows(slopes: Any) -> Tensor | Reason:
    """Return the influence of a row of each true class and decision, (C, C), given the slopes of the sums."""
    if isinstance(slopes, PairCounts):
        return slopes.confusion
    if not isinstance(slopes, ClassCounts):
        return NO_RANGE
    if len(slopes.true) > MAX_CLASSES:
        return MANY_CLASSES
    return slopes.true.unsqueeze(1) + slopes.predicted + slopes.right.diag()


def _bound(value: float, of_units: Tensor, worst: Tensor, units: Units, *, is_upper: bool) -> float:
    """Return Gaffke's bound of the mean of the influences; it allows for one unit of the largest size that is worst."""
    number = units.counts.sum().item()
    sizes: Sequence[float] = [number * units.size * worst.item()]
    if not bool(of_units.isfinite().all()) or not isfinite(sizes[0]):
        return float("inf") if is_upper else float("-inf")
    values, counts, _ = histogram(number * of_units, torch.ones_like(of_units), [(sizes[0], 1.0)], units)
    end = bounded_mean_bound(values, counts, per=None, confidence=CONFIDENCE, is_upper=is_upper)
    return value + end
