"""Differences of two models with intervals, p-values and bounds, from the influence of each unit on both values.

The interval of a difference allows for a further unit in which the models differ as much as in any that was seen, in
either direction. Its p-value is that of random changes of places of the models in each unit (`sign_flip_test`); for
rates of independent rows, this is McNemar's test.
"""

from collections.abc import Iterable
from math import inf, isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.influence import (
    Estimate,
    Influences,
    Unknown,
    applied,
    slopes_of,
    total_sums,
)
from mpcs_torch.evaluation.intervals_and_bounds import BOTH_ENDS, End, mean_ends, quantile
from mpcs_torch.evaluation.reasons import NO_RANGE, NOT_FINITE, Reason
from mpcs_torch.functional import Comparison, PairedDifference
from mpcs_torch.functional.comparison.confidence_intervals import MIN_UNITS
from mpcs_torch.functional.comparison.significance import (
    ComparedBy,
    sign_flip_test,
    with_verdicts,
)
from mpcs_torch.functional.inputs.confidence import CONFIDENCE

ABOUT_DIFFERENCES = (
    " Intervals of rates and costs allow for a further cluster of the usual size in which all is wrong; intervals of "
    "differences do so for one in which the models differ as much as in any of these."
)
"""A sentence that is added to the note on clusters if models are compared."""


def difference(one: Estimate, other: Estimate) -> PairedDifference | Reason:
    """Return the second value minus the first, with interval and p-value, or the reason why there is none.

    Both estimates must be of the same units.
    """
    if isinstance(one, Unknown):
        return one.reason
    if isinstance(other, Unknown):
        return other.reason
    change = other.value - one.value
    units = other.units
    of_units = other.of_units - one.of_units
    if not isfinite(change) or not bool(of_units.isfinite().all()):
        return NOT_FINITE
    is_exact = one.ratio is not None and one.ratio.is_rate and units.are_rows
    reason = None if is_exact else units.too_few(MIN_UNITS)
    if reason is not None:
        return reason
    number = units.number
    # An influence is what a unit adds to the difference, minus the mean of this over all units.
    mean = change / number
    added = of_units + mean
    most = _largest_difference(one, other, added)
    further = [-most - mean, most - mean]
    below, above = mean_ends(of_units, further, units, BOTH_ENDS)
    low = _possible(one, change + below)
    high = _possible(one, change + above)
    p_value = sign_flip_test(_exactly_added(one, other, added), units.counts)
    if one.is_chosen or other.is_chosen:
        p_value = max(p_value, p_of_normal_interval(change, low, high))
    return PairedDifference(one.value, other.value, change, low, high, p_value)


def p_of_normal_interval(change: float, low: float, high: float) -> float:
    """Return the p-value that is 0.05 where the 95 % interval from ``low`` to ``high`` ends at 0."""
    from scipy.special import ndtr  # scipy.stats takes longer to import

    half = change - low if change > 0 else high - change
    if not isfinite(change) or not 0 < half < inf:
        return 1.0
    return 2 * float(ndtr(-quantile(inf) * abs(change) / half))


def _exactly_added(one: Influences, other: Influences, added: Tensor) -> Tensor:
    """Return what each unit adds to a difference, (U,): 0 where the models agree; if that is not known, ``added``."""
    if one.measured is not None and other.measured is not None:
        measure, first = one.measured
        _, second = other.measured
        totals = zip(
            total_sums(first, one.units), total_sums(second, other.units), strict=True
        )
        middle = [(a + b) / 2 for a, b in totals]
        changes = [b - a for a, b in zip(first, second, strict=True)]
        return applied(slopes_of(measure, type(first)(*middle)), changes)
    if one.added is not None and other.added is not None:
        return other.added - one.added
    return added


def _largest_difference(one: Influences, other: Influences, added: Tensor) -> float:
    """Return the most that a further unit adds to a difference: as in the units seen, or half of a usual error.

    Units of a rare class, or heavy ones, may all agree by chance. So a unit in which one model alone is wrong counts,
    too; by half, because it may be either model.
    """
    seen = added.abs().max().item()
    sizes = one.class_sizes
    if sizes is None:
        sizes = torch.ones(1, dtype=torch.float64)
    if seen == 0 and one.of_rows is not None and other.of_rows is not None:
        # No unit differs: one could, as much as the definition allows.
        ends = other.of_rows.flip(1) - one.of_rows
        return (sizes.unsqueeze(1) * ends).abs().max().item()
    if one.usual_error is None or other.usual_error is None:
        return seen
    right, wrong = one.usual_error.unbind(1)
    others_right, others_wrong = other.usual_error.unbind(1)
    errors = torch.stack([sizes * (others_wrong - right), sizes * (others_right - wrong)])
    return max(seen, errors.abs().max().item() / 2)


def difference_bound(one: Estimate, other: Estimate, end: End) -> float | Reason:
    """Return the bound of the second value minus the first, or the reason why it has none."""
    if isinstance(one, Unknown):
        return one.no_bound
    if isinstance(other, Unknown):
        return other.no_bound
    if one.of_rows is None or other.of_rows is None or not one.has_bound:
        return NO_RANGE
    if end.is_upper:
        worst = (other.of_rows[:, 1] - one.of_rows[:, 0]).amax()
    else:
        worst = (other.of_rows[:, 0] - one.of_rows[:, 1]).amin()
    largest = max(other.units.largest, other.units.heaviest, end.max_weight)
    further = largest * worst.item()
    change = other.value - one.value
    of_units = other.of_units - one.of_units
    [of_end] = mean_ends(of_units, [further], other.units, [end])
    return _possible(one, change + of_end)


def _possible(one: Influences, change: float) -> float:
    """Return ``change`` or, if the limits of the metric do not allow so large a difference, the largest possible."""
    lowest, highest = one.limits
    if lowest is None or highest is None:
        return change
    largest = highest - lowest
    return max(-largest, min(change, largest))


class NotCompared(NamedTuple):
    """Two models or detectors that cannot be compared by a metric, and the reason."""

    first: str
    second: str
    by: ComparedBy
    reason: Reason

    def __str__(self) -> str:
        return f"No difference between {self.first} and {self.second} by {self.by.name}: {self.reason}."


def adjusted(
    rows: Iterable[tuple[str, str, ComparedBy, PairedDifference | Reason]],
) -> tuple[list[Comparison], list[NotCompared]]:
    """Split ``rows`` into comparisons, with p-values corrected for multiple tests, and pairs that were not compared."""
    without = list[NotCompared]()
    known = list[tuple[str, str, ComparedBy, PairedDifference]]()
    for first, second, by, paired in rows:
        if isinstance(paired, Reason):
            without.append(NotCompared(first, second, by, paired))
        else:
            known.append((first, second, by, paired))
    comparisons = with_verdicts(known, CONFIDENCE) if known else []
    return comparisons, without
