"""Intervals of any smooth statistic from its values without parts of the rows, and of differences of two models.

The delete-a-group jackknife (Shao and Wu, A general theory for jackknife variance estimation, Annals of Statistics 17,
1989): with G folds of independent parts, the spread of the values that leave out a fold estimates the standard error of
the value of all. Folds are drawn in several ways, whose variances are averaged. Statistics for which that does not hold
give themselves away, and get no interval: few folds make the whole spread (a maximum, rare rows), leaving out two folds
is not the sum of leaving out each (quantiles, values at a threshold), or the value of a quarter of the rows is
systematically another one (binned calibration errors).
"""

from collections.abc import Callable
from math import sqrt
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import FEWEST, SCALES, Reason, student_difference, student_interval
from mpcs_torch.functional import PairedDifference
from mpcs_torch.functional.comparison.means import Interval

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.additive import Scale

FOLDS = 32
"""Parts that are left out together are joined to so many: wide enough that medians and thresholds show their steps."""
MIN_EFFECTIVE, MAX_STEPS, MAX_BIAS = 0.25, 0.02, 1.0
"""Of smooth statistics, folds count like a share of about 0.6 of equal ones, pairs differ from sums by 0.001 of the
squared spread, and the values of quarters by 0.1 to 0.4 standard errors. Beyond these limits intervals of medians,
thresholds, maxima and calibration errors held 0 to 90 %: see `tests/benchmarks/any_metric.py`."""


class LeftOut(NamedTuple):
    """The values of a metric, of any shape (...), and those without parts of the rows."""

    whole: Tensor
    """(...)"""
    singles: Tensor
    """(R, G, ...): without each of G folds of the parts, for R ways to fold them."""
    pairs: Tensor
    """(G // 2, ...): without two folds, of the first way."""
    quarters: Tensor
    """(...): the mean of the values of a quarter of the parts each."""
    parts: int
    """The number of parts."""

    def mapped(self, function: Callable[..., Tensor], *others: "LeftOut") -> "LeftOut":
        """Return what a function makes of all values, and of those of others with the same parts."""
        columns = zip(*(left[:4] for left in (self, *others)), strict=True)
        whole, singles, pairs, quarters = (function(*each) for each in columns)
        return LeftOut(whole, singles, pairs, quarters, self.parts)


def folds_of(parts: int) -> list[Tensor]:
    """Return ways to join parts to at most `FOLDS` folds: the fold of each part, (parts,), the same for all models."""
    folds, ways = min(FOLDS, parts), -(-parts // FOLDS)
    orders = (torch.randperm(parts, generator=torch.Generator().manual_seed(way)) for way in range(ways))
    return [order.argsort() % folds for order in orders]


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
    return spread if isinstance(spread, str) else student_interval(on_scale.whole, spread, _freedom(left), scale)


def difference_of_left_out(first: LeftOut, second: LeftOut) -> PairedDifference | None:
    """Return how much the value of a second model exceeds that of a first, with an interval and its p-value.

    None if it has no interval.
    """
    apart = second.mapped(torch.sub, first)
    spread = _spread(apart, "rows")
    if isinstance(spread, str):
        return None
    return student_difference(first.whole.item(), second.whole.item(), spread, _freedom(apart))


def _scale_of(left: LeftOut, limits: tuple[float | None, float | None]) -> "Scale":
    """Return the scale on which a value between limits is nearly normal, if it keeps away from them."""
    values = torch.cat([each.reshape(-1) for each in left[:4]])
    low, high = limits
    if low == 0 and high == 1 and bool(((values > 0) & (values < 1)).all()):
        return "logit"
    return "log" if low == 0 and high is None and bool((values > 0).all()) else "plain"


def _spread(left: LeftOut, unit: str) -> float | Reason:
    """Return the standard error of a value, or why it is not known."""
    if left.parts < FEWEST:
        return f"a spread is judged by at least {FEWEST} {unit}"
    if not all(bool(each.isfinite().all()) for each in left[:4]):
        return "the value does not exist without some of the rows"
    folds = left.singles.shape[1]
    change = left.singles - left.singles.mean(1, keepdim=True)
    squares = change.square().sum(1)
    spread = sqrt((folds - 1) / folds * squares.mean().item())
    if spread <= 1e-12 * max(1.0, abs(left.whole.item())):
        return f"all {unit} agree, which does not tell how far the value may be off"
    if (change.abs().sum(1).square() / squares.clamp(min=1e-300)).mean() < MIN_EFFECTIVE * folds:
        return f"few {unit} make the value, so rare ones may be missing here"
    alone = (left.singles[0, : 2 * len(left.pairs)] - left.whole).reshape(-1, 2)
    both = alone.sum(1) * (folds - 1) / (folds - 2)  # of means, which have fewer rows left
    if (left.pairs - left.whole - both).square().sum() > MAX_STEPS * alone.square().sum():
        return f"it changes in steps as {unit} are left out, as quantiles and values at a threshold do"
    if abs((left.quarters - left.whole).item()) > MAX_BIAS * spread:
        return f"it depends on the number of {unit}: a quarter of them has another value on average"
    return spread


def _freedom(left: LeftOut) -> float:
    """Return the degrees of freedom of a variance that is averaged over several ways to fold the parts."""
    ways, folds = left.singles.shape[:2]
    of_parts, of_folds = 2 / (left.parts - 1), 2 / (folds - 1)
    return 2 / (of_parts + max(0.0, of_folds - of_parts) / ways)
