"""The bounds of values and of differences that requirements ask for, from the sums of units.

If a failure is so rare that no row of a sample shows it, no look at the rows can tell: only the range of what a row can
add bounds what further rows would show. So a bound contains one worst unit, of the largest size, beside those seen.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from torch import Tensor

from mpcs_torch.evaluation.influence import AnyMeasure, End, Units, bound, difference_bound, of_both, of_sums
from mpcs_torch.evaluation.model_sums import SumLayout
from mpcs_torch.evaluation.ranks import KeptRanks
from mpcs_torch.evaluation.reasons import NO_RANGE, Reason
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
        if measured is None:
            return NO_RANGE
        found = of_sums(*measured, self.units)
        return found if isinstance(found, Reason) else bound(found, self.units, end)

    def of_difference(self, reference: "Bounds", metric: str, end: End) -> float | Reason:
        """Return the bound of this model's value minus that of the ``reference``, whose units are the same."""
        clusters = self.units.cluster is not None
        if metric in self.ranks:
            minus = reference.ranks[metric]
            return self.ranks[metric].bound("", 0, clusters=clusters, end=end, minus=minus)
        ours, theirs = self._measured(metric), reference._measured(metric)
        if ours is None or theirs is None:
            return NO_RANGE
        both = of_both(ours[0], theirs[1], ours[1], self.units)
        return both if isinstance(both, Reason) else difference_bound(*both, self.units, end)

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
