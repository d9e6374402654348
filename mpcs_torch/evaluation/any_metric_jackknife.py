"""Compute intervals for any smooth metric, and for differences of two models, by the delete-a-group jackknife.

The spread of the values without each part of the rows estimates the standard error (Shao and Wu, A general theory for
jackknife variance estimation, Annals of Statistics 17, 1989). Metrics for which this fails get no interval. To detect
such metrics, parts are joined into at most 32 folds. The method fails if

- few folds make up the whole spread, as for a maximum;
- the effect of leaving out two folds differs from the sum of both effects, as for quantiles and values at thresholds;
- the mean of the values on a quarter of the rows differs from the value, as for binned calibration errors.
"""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import MIN_UNITS, SCALES, Reason, student_difference, student_interval
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval
from mpcs_torch.functional.measure import IntervalScale

FOLDS = 32
"""The maximum number of folds. A fold must be large enough for a median to change when the fold is left out."""
MIN_EFFECTIVE, MAX_STEPS, MAX_BIAS = 0.25, 0.01, 1.0
"""The limits of three checks of the jackknife: the minimum share of folds with an effect; the maximum squared error for
pairs of folds, relative to the squared spread; and the maximum bias, in standard errors.

Smooth metrics have about 0.6, 0.001 and 0.1 to 0.4. Beyond the limits, 95 % intervals of medians, thresholds, maxima
and calibration errors contain the true value in only 0 to 90 % of cases (`tests/benchmarks/any_metric.py`).
"""


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


def jackknife_interval(left: LeftOut, limits: tuple[float | None, float | None], unit: str) -> Interval | Reason:
    """Return the jackknife interval of a scalar metric, or the reason why there is none.

    ``limits`` are the lowest and the highest possible value; None means no limit. The interval is computed on the scale
    that `_interval_scale` returns for these limits. ``unit`` is the word for rows or clusters in the reason.
    """
    scale = _interval_scale(left, limits)
    on_scale = left.mapped(SCALES[scale][0])
    spread = _spread(on_scale, unit)
    return spread if isinstance(spread, str) else student_interval(on_scale.whole, spread, len(left.alone) - 1, scale)


def jackknife_difference(
    first: LeftOut | tuple[float, Reason], second: LeftOut | tuple[float, Reason], unit: str
) -> PairedDifference | Reason:
    """Return the second model's value minus the first's, with interval and p-value, or the reason why there is none.

    A model without a `LeftOut` is given as a pair: its value, and the reason why it has none, which is then returned.
    """
    if not isinstance(first, LeftOut):
        return first[1]
    if not isinstance(second, LeftOut):
        return second[1]
    spread = _spread(second.mapped(torch.sub, first), unit)
    if isinstance(spread, str):
        return spread
    return student_difference(first.whole.item(), second.whole.item(), spread, len(first.alone) - 1)


def _interval_scale(left: LeftOut, limits: tuple[float | None, float | None]) -> IntervalScale:
    """Return "logit" for ``limits`` (0, 1), "log" for (0, None), else "plain". A value at a limit gives "plain"."""
    values = torch.cat([each.reshape(-1) for each in left])
    low, high = limits
    if low == 0 and high == 1 and bool(((values > 0) & (values < 1)).all()):
        return "logit"
    return "log" if low == 0 and high is None and bool((values > 0).all()) else "plain"


def _spread(left: LeftOut, unit: str) -> float | Reason:
    """Return the jackknife standard error of the value ``left.whole``, or the reason why the error is unknown."""
    if len(left.alone) < MIN_UNITS:
        return f"a standard error needs at least {MIN_UNITS} {unit}"
    if not all(bool(each.isfinite().all()) for each in left):
        return f"the value does not exist without some of the {unit}"
    parts, folds = len(left.alone), len(left.singles)
    spread = sqrt((parts - 1) / parts * (left.alone - left.alone.mean()).square().sum().item())
    if spread <= 1e-12 * max(1.0, abs(left.whole.item())):
        return f"all {unit} agree, so the error of the value is unknown"
    change = left.singles - left.singles.mean()
    if change.abs().sum().square() < MIN_EFFECTIVE * folds * change.square().sum():
        return f"few {unit} dominate the value, so rare ones may be missing here"
    alone = left.singles - left.whole
    both = (alone + alone.roll(-1)) * (folds - 1) / (folds - 2)  # exact for means, where other rows gain weight
    if (left.pairs - left.whole - both).square().sum() > 2 * MAX_STEPS * alone.square().sum():
        return f"it changes in steps as {unit} are left out, as quantiles and values at a threshold do"
    if abs((left.quarters - left.whole).item()) > MAX_BIAS * spread:
        return f"it depends on the number of {unit}: its mean value on a quarter of them differs"
    return spread
