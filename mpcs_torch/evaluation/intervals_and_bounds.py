"""Intervals and bounds of all values, from the influence of each unit on them.

To first order, a value is the mean of what its units add. So one rule, Gaffke's bound of a mean
(`bounded_mean_interval`), serves all metrics. It needs the most that one further unit may add, because the worst unit
may be missing among those seen. Only this *further unit* differs:

- The **interval** of a value, which tables and figures show, allows for a further unit of the usual size.
- A **bound**, which requirements use, allows for one of the largest size, with the worst rows that the definition of
  the metric allows. A metric without such a range has no bound.
- The interval of a difference of two models is in `paired_differences.py`.

For rates of independent rows, the interval is that of Clopper and Pearson. A value whose rows have no
range, such as a Metric of another package, has Student's interval with the standard error of the jackknife.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite, isnan, sqrt
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.influence import (
    RARELY,
    RATE,
    Estimate,
    IndependentUnits,
    Influences,
    Pair,
    Ratio,
    Unknown,
)
from mpcs_torch.evaluation.reasons import NO_RANGE, NO_VALUE, NOT_FINITE, Reason
from mpcs_torch.functional.comparison.confidence_intervals import (
    MIN_UNITS,
    bounded_mean_end,
    clopper_pearson_ends,
)
from mpcs_torch.functional.comparison.means import Interval, distinct_pairs
from mpcs_torch.functional.inputs.confidence import CONFIDENCE

MAX_BIAS = 0.1
"""The maximum bias of an average over classes, divided by the width of its interval."""


class End(NamedTuple):
    """An end of an interval, as a bound for requirements."""

    is_upper: bool
    confidence: float = CONFIDENCE
    """The confidence of the interval with both ends. A bound is only one of them, so it is wrong half as often."""
    max_weight: float = 0.0
    """The largest weight that a further row, or cluster, may have, if it is larger than those seen."""


BOTH_ENDS = (End(is_upper=False), End(is_upper=True))


def interval(estimate: Estimate) -> Interval | Reason:
    """Return the 95 % interval of a value, or the reason why it has none."""
    if isinstance(estimate, Unknown):
        return estimate.reason
    if not isfinite(estimate.value) or not bool(estimate.of_units.isfinite().all()):
        return NOT_FINITE
    # The intervals of rates and costs, whose rows are bounded by definition, are valid for any number of units.
    is_sum = estimate.added is not None and estimate.has_bound
    is_valid = is_sum or (estimate.ratio is not None and not estimate.ratio.is_mean)
    reason = None if is_valid else estimate.units.too_few(MIN_UNITS)
    if reason is not None:
        return reason
    if estimate.of_rows is None:
        ends = _student_interval(estimate)
    else:
        low, high = _ends(estimate, BOTH_ENDS)
        ends = low, high
    if not isinstance(ends, Reason) and abs(estimate.bias) > MAX_BIAS * (ends[1] - ends[0]):
        return Reason("biased", estimate.units.name)
    return ends


def bound(estimate: Estimate, end: End) -> float | Reason:
    """Return the bound of a value, or the reason why it has none."""
    if isinstance(estimate, Unknown):
        return estimate.no_bound
    if estimate.of_rows is None or not estimate.has_bound:
        return NO_RANGE
    [of_end] = _ends(estimate, [end], is_bound=True)
    return of_end


def _ends(
    influences: Influences, ends: Sequence[End], *, is_bound: bool = False
) -> list[float]:
    units, of_rows = influences.units, influences.of_rows
    if influences.ratio is not None:
        return _ends_of_ratio(influences.ratio, units, ends, is_bound=is_bound)
    assert of_rows is not None
    if is_bound:
        largest = max(units.largest, units.heaviest, *(end.max_weight for end in ends))
        sizes = torch.tensor(largest, dtype=torch.float64)
    elif influences.class_sizes is None:
        sizes = influences.further_share * units.usual(units.sizes)
    else:
        sizes = influences.further_share * influences.class_sizes
    # These are the influences of a further unit of each class.
    lowest, highest = (sizes.unsqueeze(-1) * of_rows).unbind(1)
    further = [(highest.amax() if end.is_upper else lowest.amin()).item() for end in ends]
    changes = mean_ends(influences.of_units, further, units, ends)
    return [influences.clipped(influences.value + change) for change in changes]


def mean_ends(
    of_units: Tensor, further: Sequence[float], units: IndependentUnits, ends: Sequence[End]
) -> list[float]:
    """Return ends of the mean of pseudo-values (U times the influences), each with the influence of a further unit."""
    number = units.number
    merged = merged_units(number * of_units, torch.ones_like(of_units), units)
    found = list[float]()
    for of_further, end in zip(further, ends, strict=True):
        if isfinite(number * of_further):
            possible = [(number * of_further, 1.0)]
            found.append(merged.end(possible, end.confidence, is_upper=end.is_upper))
        else:
            found.append(inf if end.is_upper else -inf)
    return found


def _ends_of_ratio(
    ratio: Ratio, units: IndependentUnits, ends: Sequence[End], *, is_bound: bool
) -> list[float]:
    """Return ends of a ratio as values; the ratio is not linearized, so that it is exact for rates."""
    max_weight = max(end.max_weight for end in ends)
    if ratio.is_rate and units.are_rows and max_weight <= 1:
        return [_end_of_rate(ratio, units, end) for end in ends]
    sizes = ratio.per if ratio.is_rate else units.sizes
    if is_bound:
        size = max(sizes.max().item(), units.heaviest, max_weight)
    else:
        size = max(units.usual(sizes).item(), units.usual_weight)
    if ratio.is_mean and not is_bound:
        pairs = _rarely_worst(ratio, units, size)
    else:
        pairs = [(size * num, size * den) for num, den in ratio.of_rows]
    merged = merged_units(ratio.numerator, ratio.per, units)
    values = list[float]()
    for end in ends:
        end_of_ratio = merged.end(
            pairs, end.confidence, is_upper=end.is_upper == ratio.is_rising
        )
        if ratio.is_rate:
            end_of_ratio = min(max(end_of_ratio, 0.0), 1.0)
        values.append(ratio.to_value(end_of_ratio))
    return values


def _end_of_rate(ratio: Ratio, units: IndependentUnits, end: End) -> float:
    """Return the exact end of a rate of independent rows."""
    counted = torch.dot(units.counts, ratio.numerator).round()
    rows = torch.dot(units.counts, ratio.per).round()
    low, high = clopper_pearson_ends(counted, rows, confidence=end.confidence)
    return ratio.to_value((high if end.is_upper == ratio.is_rising else low).item())


def _rarely_worst(ratio: Ratio, units: IndependentUnits, size: float) -> list[Pair]:
    """Return further units with the lowest and the highest mean.

    A row may add much in one direction, where its limit is farther from the mean. In this direction, a further row is
    `RARELY` at the limit; a cluster is as the worst seen, with one such row.
    """
    lowest, highest = sorted(num / den for num, den in ratio.of_rows)
    mean = ((units.counts @ ratio.numerator) / (units.counts @ ratio.per)).item()
    seen = (ratio.numerator / ratio.per)[ratio.per > 0]
    share_of_row = 1.0 if units.cluster is None else min(1.0, units.mean_weight / size)
    is_above = highest - mean > mean - lowest
    limit = highest if is_above else lowest
    worst_seen = seen.max() if is_above else seen.min()
    of_row = mean + RARELY * (limit - mean)
    worst = (1 - share_of_row) * worst_seen.item() + share_of_row * of_row
    if is_above:
        return [(size * lowest, size), (size * worst, size)]
    return [(size * worst, size), (size * highest, size)]


def _student_interval(influences: Influences) -> Interval | Reason:
    units = influences.units
    spread = standard_error(influences.of_units, units)
    if spread <= 1e-12 * max(1.0, abs(influences.value)):
        return Reason("all_agree", units.name)
    at = torch.tensor(influences.value, dtype=torch.float64, requires_grad=True)
    forward, backward = scale_of(influences.limits)
    on_scale = forward(at)
    half = quantile(units.number - 1) * spread
    # A value at a limit, such as 0, is infinite on the scale.
    if not isfinite(on_scale.item()):
        low = influences.clipped(influences.value - half)
        high = influences.clipped(influences.value + half)
        return low, high
    [slope] = torch.autograd.grad(on_scale, at)
    middle = on_scale.detach()
    to_end = half * slope
    low = backward(middle - to_end).item()
    high = backward(middle + to_end).item()
    return influences.clipped(low), influences.clipped(high)


def standard_error(of_units: Tensor, units: IndependentUnits) -> float:
    """Return the standard error of a value: that of the delete-one jackknife, to first order."""
    number = units.number
    return sqrt(number / max(1.0, number - 1) * (units.counts @ of_units.square()).item())


def quantile(freedom: float) -> float:
    """Return the half-width of Student's interval, in standard errors, for ``freedom`` degrees of freedom."""
    from scipy.special import stdtrit  # scipy.stats takes longer to import

    return float(stdtrit(freedom, (1 + CONFIDENCE) / 2))


def scale_of(
    limits: tuple[float | None, float | None],
) -> tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]:
    """Return the functions to and from the scale on which a value with ``limits`` is almost normally distributed."""
    low, high = limits
    if low == 0 and high == 1:
        return torch.logit, torch.sigmoid
    if low == 0 and high is None:
        return torch.log, torch.exp
    return torch.positive, torch.positive


def rate_intervals(
    parts: Tensor, totals: Tensor, units: Sequence[IndependentUnits]
) -> list[tuple[float, Interval | Reason]]:
    """Return each of R rates, and its interval or the reason why it has none.

    Each of U units has numerators ``parts`` and denominators ``totals``: (U, R). ``units`` are the R sizes of units.
    """
    counts = units[0].counts
    numerators, wholes = counts @ parts, counts @ totals
    if all(of_rate.are_rows for of_rate in units):
        ends = clopper_pearson_ends(numerators.round(), wholes.round()).tolist()
    else:
        ends = list[list[float]]()
        for part, total, of_rate in zip(parts.T, totals.T, units, strict=True):
            rate = Ratio(part, total, RATE, to_value=float)
            ends.append(_ends_of_ratio(rate, of_rate, BOTH_ENDS, is_bound=False))
    values = (numerators / wholes).tolist()
    return [
        (value, NO_VALUE if isnan(value) else (low, high))
        for value, (low, high) in zip(values, ends, strict=True)
    ]


class MergedUnits(NamedTuple):
    """Units counted by their pairs of numerator and denominator, (P,) each; close pairs are merged."""

    numerators: Tensor
    counts: Tensor
    denominators: Tensor

    def end(self, possible: Sequence[Pair], confidence: float, *, is_upper: bool) -> float:
        """Return an end of the mean, valid if the pairs ``possible``, which need not occur, bound each unit."""
        numerators, denominators = torch.tensor(possible, dtype=torch.float64).unbind(1)
        return bounded_mean_end(
            torch.cat([self.numerators, numerators]),
            torch.cat([self.counts, torch.zeros_like(numerators)]),
            per=torch.cat([self.denominators, denominators]),
            confidence=confidence,
            is_upper=is_upper,
        )


def merged_units(numerator: Tensor, per: Tensor, units: IndependentUnits) -> MergedUnits:
    """Count the units with each pair of ``numerator`` and denominator ``per``, (U,) each."""
    pairs, counts = distinct_pairs(torch.stack([numerator, per], 1), units.counts)
    numerators, denominators = pairs.unbind(1)
    return MergedUnits(numerators, counts, denominators)
