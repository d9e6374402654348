"""The influence of parts of the rows on the value of any Metric, from its values without each part.

The values without some parts show the influence of each part (the delete-a-group jackknife: Shao and Wu, A general
theory for jackknife variance estimation, Annals of Statistics 17, 1989). Metrics for which this fails get no interval.
To detect them, parts are joined into at most 32 folds. The method fails if

- few folds make up the whole spread, as for a maximum;
- the effect of leaving out two folds differs from the sum of both effects, as for quantiles and values at thresholds;
- the mean of the values on a quarter of the rows differs from the value, as for binned calibration errors.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.influence import MIN_UNITS, Influences, Units, difference, interval, scale_of, standard_error
from mpcs_torch.evaluation.reasons import Reason
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval

FOLDS = 32
"""The maximum number of folds. A fold must be large enough for a median to change when the fold is left out."""
MIN_EFFECTIVE, MAX_STEPS, MAX_BIAS = 0.25, 0.01, 1.0
"""The limits of three checks: the minimum share of folds with an effect; the maximum squared error for pairs of folds,
relative to the squared spread; and the maximum bias, in standard errors.

Smooth metrics have about 0.6, 0.001 and 0.1 to 0.4. Beyond the limits, 95 % intervals of medians, thresholds, maxima
and calibration errors contain the true value in only 0 to 90 % of cases (`tests/benchmarks/any_metric.py`).
"""
Limits = tuple[float | None, float | None]


class LeftOut(NamedTuple):
    """The values of a metric: with all rows, and with parts of the rows left out. The shape of a value is (...)."""

    whole: Tensor
    """(...): the value with all rows."""
    alone: Tensor
    """(P, ...): the values without each of P parts."""
    singles: Tensor
    """(G, ...): the values without each of G folds (sets of parts)."""
    pairs: Tensor
    """(G, ...): for each fold, the value without this fold and the next one."""
    quarters: Tensor
    """(...): the mean of four values, each computed from a quarter of the parts."""

    def mapped(self, function: Callable[..., Tensor], *others: "LeftOut") -> "LeftOut":
        """Apply ``function`` to each field of this `LeftOut` and the same field of ``others``; return the results."""
        return LeftOut(*(function(*each) for each in zip(self, *others, strict=True)))

    def units(self, unit: str) -> Units:
        """Return the parts as units; ``unit`` is the word for rows or clusters in reasons."""
        ones = torch.ones(len(self.alone), dtype=torch.float64)
        return Units(ones, ones, None, word=unit)


class ValueOfParts(NamedTuple):
    """The value of a scalar metric that is not a function of sums, and how parts of the rows change it."""

    value: float
    left_out: LeftOut | Reason
    """The values without parts of the rows, or the reason why they are not known."""
    limits: Limits = (None, None)
    """The lowest and the highest possible value; None means no limit."""

    def interval(self, unit: str) -> Interval | Reason:
        """Return the interval, or the reason why there is none; ``unit`` is the word for rows or clusters in it."""
        if isinstance(self.left_out, Reason):
            return self.left_out
        found = of_parts(self.left_out, unit, self.limits)
        return found if isinstance(found, Reason) else interval(found, self.left_out.units(unit))


def parts_difference(first: ValueOfParts, second: ValueOfParts, unit: str) -> PairedDifference | Reason:
    """Return the second model's value minus the first's, with interval and p-value, or the reason for none."""
    one, other = first.left_out, second.left_out
    if isinstance(one, Reason):
        return one
    if isinstance(other, Reason):
        return other
    change = of_parts(other.mapped(torch.sub, one), unit)
    if isinstance(change, Reason):
        return change
    before = Influences(first.value, torch.zeros_like(change.of_units))
    return difference(before, change._replace(value=second.value), one.units(unit))


def of_parts(left: LeftOut, unit: str, limits: Limits = (None, None)) -> Influences | Reason:
    """Return the influence of each part on the value, or the reason why it is unknown."""
    units = left.units(unit)
    parts, folds = len(left.alone), len(left.singles)
    if parts < MIN_UNITS:
        return Reason("few_units", unit, MIN_UNITS)
    if not all(bool(each.isfinite().all()) for each in left):
        return Reason("missing_without_some", unit)
    of_units = (parts - 1) / parts * (left.alone.mean() - left.alone)
    spread = standard_error(of_units, units)
    if spread <= 1e-12 * max(1.0, abs(left.whole.item())):
        return Reason("all_agree", unit)
    change = left.singles - left.singles.mean()
    if change.abs().sum().square() < MIN_EFFECTIVE * folds * change.square().sum():
        return Reason("few_dominate", unit)
    alone = left.singles - left.whole
    both = (alone + alone.roll(-1)) * (folds - 1) / (folds - 2)  # exact for means, where other rows gain weight
    if (left.pairs - left.whole - both).square().sum() > 2 * MAX_STEPS * alone.square().sum():
        return Reason("in_steps", unit)
    if abs((left.quarters - left.whole).item()) > MAX_BIAS * spread:
        return Reason("biased", unit)
    return Influences(left.whole.item(), of_units, limits=limits, scale=scale_of(limits))
