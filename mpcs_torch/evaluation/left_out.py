"""Intervals of any smooth statistic from its values without parts of the rows, and of differences of two models.

The delete-a-group jackknife (Shao and Wu, A general theory for jackknife variance estimation, Annals of Statistics 17,
1989): with independent parts, the spread of the values that leave out one estimates the standard error of the value of
all. Statistics for which this fails are detected by fewer, wider folds of parts, and get no interval:
few folds make the whole spread (a maximum, rare rows), leaving out two is not the sum of leaving out each (quantiles,
values at a threshold), or the value of a quarter of the rows is systematically another one (binned calibration errors).
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
"""Parts are joined to so many: wide enough that medians and thresholds show their steps."""
MIN_EFFECTIVE, MAX_STEPS, MAX_BIAS = 0.25, 0.01, 1.0
"""Of smooth statistics, folds count like a share of about 0.6 of equal ones, pairs differ from sums by 0.001 of the
squared spread, and the values of quarters by 0.1 to 0.4 standard errors. Beyond these limits intervals of medians,
thresholds, maxima and calibration errors held 0 to 90 %: see `tests/benchmarks/any_metric.py`."""


class LeftOut(NamedTuple):
    """The values of a metric, of any shape (...), and those without parts of the rows."""

    whole: Tensor
    """(...)"""
    alone: Tensor
    """(P, ...): without each of P parts."""
    singles: Tensor
    """(G, ...): without each of G folds of the parts."""
    pairs: Tensor
    """(G, ...): without each fold and the next."""
    quarters: Tensor
    """(...): the mean of the values of a quarter of the parts each."""

    def mapped(self, function: Callable[..., Tensor], *others: "LeftOut") -> "LeftOut":
        """Return what a function makes of all values, and of those of others with the same parts."""
        return LeftOut(*(function(*each) for each in zip(self, *others, strict=True)))


def folds_of(parts: int) -> Tensor:
    """Return the fold of each part, (parts,), of at most `FOLDS`, the same for all models."""
    return torch.randperm(parts, generator=torch.Generator().manual_seed(0)) % min(FOLDS, parts)


def interval_of_left_out(left: LeftOut, limits: tuple[float | None, float | None], unit: str) -> Interval | Reason:
    """Return the interval of a value, or why it has none.

    Args:
        left: The value, a scalar.
        limits: The least and the largest possible value, None if unknown: the interval stays within them.
        unit: What is independent, such as rows.
    """
    scale = _scale_of(left, limits)
    on_scale = left.mapped(SCALES[scale][0])
    spread = _spread(on_scale, unit)
    return spread if isinstance(spread, str) else student_interval(on_scale.whole, spread, len(left.alone) - 1, scale)


def difference_of_left_out(first: LeftOut, second: LeftOut, unit: str) -> PairedDifference | Reason:
    """Return how much the value of a second model exceeds that of a first, with interval and p-value, or why not."""
    apart = second.mapped(torch.sub, first)
    spread = _spread(apart, unit)
    if isinstance(spread, str):
        return spread
    return student_difference(first.whole.item(), second.whole.item(), spread, len(apart.alone) - 1)


def _scale_of(left: LeftOut, limits: tuple[float | None, float | None]) -> "Scale":
    """Return the scale on which a value between limits is nearly normal, if it keeps away from them."""
    values = torch.cat([each.reshape(-1) for each in left])
    low, high = limits
    if low == 0 and high == 1 and bool(((values > 0) & (values < 1)).all()):
        return "logit"
    return "log" if low == 0 and high is None and bool((values > 0).all()) else "plain"


def _spread(left: LeftOut, unit: str) -> float | Reason:
    """Return the standard error of a value, or why it is not known."""
    if len(left.alone) < MIN_UNITS:
        return f"a standard error needs at least {MIN_UNITS} {unit}"
    if not all(bool(each.isfinite().all()) for each in left):
        return "the value does not exist without some of the rows"
    parts, folds = len(left.alone), len(left.singles)
    spread = sqrt((parts - 1) / parts * (left.alone - left.alone.mean()).square().sum().item())
    if spread <= 1e-12 * max(1.0, abs(left.whole.item())):
        return f"all {unit} agree, so the error of the value is unknown"
    change = left.singles - left.singles.mean()
    if change.abs().sum().square() < MIN_EFFECTIVE * folds * change.square().sum():
        return f"few {unit} make the value, so rare ones may be missing here"
    alone = left.singles - left.whole
    both = (alone + alone.roll(-1)) * (folds - 1) / (folds - 2)  # of means, which have fewer rows left
    if (left.pairs - left.whole - both).square().sum() > 2 * MAX_STEPS * alone.square().sum():
        return f"it changes in steps as {unit} are left out, as quantiles and values at a threshold do"
    if abs((left.quarters - left.whole).item()) > MAX_BIAS * spread:
        return f"it depends on the number of {unit}: a quarter of them has another value on average"
    return spread
