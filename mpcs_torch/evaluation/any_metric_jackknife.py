"""Compute intervals for any smooth metric, and for differences of two models, by the delete-a-group jackknife.

The rows are divided into independent parts, and the value is computed without each part. The spread of these values
estimates the standard error (Shao and Wu, A general theory for jackknife variance estimation, Annals of Statistics 17,
1989). Metrics for which this fails get no interval. To detect these, parts are joined into folds. The method fails if

- few folds make up the whole spread, as for a maximum;
- the effect of leaving out two folds differs from the sum of both effects, as for quantiles and values at thresholds;
- the mean of the values on a quarter of the rows differs from the value, as for binned calibration errors.
"""

from collections.abc import Callable
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import MIN_UNITS, SCALES, Reason, student_difference, student_interval
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.additive import Scale

FOLDS = 32
"""The maximum number of folds: each must be so large that leaving it out changes medians and values at thresholds."""
MIN_EFFECTIVE, MAX_STEPS, MAX_BIAS = 0.25, 0.01, 1.0
"""The limits of the three checks: the share of effective folds, the squared difference of pairs relative to the squared
spread, and the bias in standard errors.

Smooth metrics have about 0.6, 0.001 and 0.1 to 0.4. Beyond the limits, 95 % intervals of medians, thresholds, maxima
and calibration errors contain the true value in only 0 to 90 % of cases (`tests/benchmarks/any_metric.py`).
"""


class LeftOut(NamedTuple):
    """The values of a metric, of any shape (...), with all rows and without parts of the rows."""

    whole: Tensor
    """(...): the value with all rows."""
    alone: Tensor
    """(P, ...): the values without each of P parts."""
    singles: Tensor
    """(G, ...): the values without each of G folds of the parts."""
    pairs: Tensor
    """(G, ...): for each fold, the value without this fold and the next one."""
    quarters: Tensor
    """(...): the mean of four values, each computed from a quarter of the parts."""

    def mapped(self, function: Callable[..., Tensor], *others: "LeftOut") -> "LeftOut":
        """Call ``function`` on each field of this object and of ``others``, which must have the same parts."""
        return LeftOut(*(function(*each) for each in zip(self, *others, strict=True)))


def assign_folds(parts: int) -> Tensor:
    """Return the fold of each part, (parts,), out of at most `FOLDS` folds; it is the same for all models."""
    return torch.randperm(parts, generator=torch.Generator().manual_seed(0)) % min(FOLDS, parts)


def jackknife_interval(left: LeftOut, limits: tuple[float | None, float | None], unit: str) -> Interval | Reason:
    """Return the interval of a scalar metric, or the reason why it has none.

    Args:
        left: The values with all rows and without parts.
        limits: The minimum and the maximum possible value, None if unknown; they decide the scale of the interval.
        unit: The independent units in the plural, such as rows.
    """
    scale = _scale_of(left, limits)
    on_scale = left.mapped(SCALES[scale][0])
    spread = _spread(on_scale, unit)
    return spread if isinstance(spread, str) else student_interval(on_scale.whole, spread, len(left.alone) - 1, scale)


def jackknife_difference(
    first: LeftOut | tuple[float, Reason], second: LeftOut | tuple[float, Reason], unit: str
) -> PairedDifference | Reason:
    """Return the second model's value minus the first's, with interval and p-value, or the reason why there is none.

    If parts of a model's rows cannot be left out, its argument is a pair: its value, and the reason.
    """
    if not isinstance(first, LeftOut):
        return first[1]
    if not isinstance(second, LeftOut):
        return second[1]
    spread = _spread(second.mapped(torch.sub, first), unit)
    if isinstance(spread, str):
        return spread
    return student_difference(first.whole.item(), second.whole.item(), spread, len(first.alone) - 1)


def _scale_of(left: LeftOut, limits: tuple[float | None, float | None]) -> "Scale":
    """Return the scale on which a value with ``limits`` is nearly normal; "plain" if any value is at a limit."""
    values = torch.cat([each.reshape(-1) for each in left])
    low, high = limits
    if low == 0 and high == 1 and bool(((values > 0) & (values < 1)).all()):
        return "logit"
    return "log" if low == 0 and high is None and bool((values > 0).all()) else "plain"


def _spread(left: LeftOut, unit: str) -> float | Reason:
    """Return the standard error of a value, or the reason why it is unknown."""
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
