"""Intervals and bounds of all values, from the influence of each unit on them.

A unit is a row, a trial, or a cluster of these. To first order, a value is the mean of what its units add. So one rule,
Gaffke's bound of a mean (`bounded_mean_interval`), serves all metrics. It needs the most that one further unit may add,
because the worst unit may be missing among those seen. Only this *further unit* differs:

- The **interval** of a value, which tables and figures show, allows for a further unit of the usual size.
- A **bound**, which requirements use, allows for one of the largest size, with the worst rows that the definition of
  the metric allows. A metric without such a range has no bound.
- The interval of a difference of two models is in `paired_differences.py`.

For rates of independent rows, the interval is that of Clopper and Pearson. A value whose rows have no
range, such as a Metric of another package, has Student's interval with the standard error of the jackknife.
"""

from collections.abc import Callable, Sequence
from math import inf, isfinite, isnan, sqrt
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.evaluation.reasons import NO_RANGE, NO_VALUE, NOT_FINITE, Reason
from mpcs_torch.functional.comparison.confidence_intervals import (
    MIN_UNITS,
    bounded_mean_bound,
    clopper_pearson_ends,
)
from mpcs_torch.functional.comparison.means import Interval, distinct_pairs
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.measure import Measure
from mpcs_torch.functional.quality.scores import ClassCounts, PairCounts

Pair = tuple[float, float]
"""The numbers that a row or a unit adds to the numerator and to the denominator of a ratio."""
MAX_SEARCHED_CLASSES = 2000
"""The largest number of classes of which all pairs are searched for the worst error."""
RARELY = 1 / 3
"""The share of the way from the mean to its limit at which a further row is, if hardly any row is at the limit: so for
areas and for means such as MPCS, to which a surely wrong row adds 20 times as much as a usual row. With a row at the
limit, intervals of 300 rows would be up to four times as wide as those of a bootstrap."""
MAX_BIAS = 0.1
"""The maximum bias of an average over classes, divided by the width of its interval."""
HALVES = 8
"""The number of pairs of random halves of the units from which the bias is estimated."""
RATE = [(0, 1), (1, 1)]
"""The pairs that a row may add to a rate: 0 or 1 to the numerator, and 1 to the denominator."""


class End(NamedTuple):
    """An end of an interval, as a bound for requirements."""

    is_upper: bool
    confidence: float = CONFIDENCE
    """The confidence of the interval with both ends. A bound is only one of them, so it is wrong half as often."""
    max_weight: float = 0.0
    """The largest weight that a further row, or cluster, may have, if it is larger than those seen."""


BOTH_ENDS = (End(is_upper=False), End(is_upper=True))


class Units(NamedTuple):
    """The sizes of U units."""

    rows: Tensor
    """(U,): the number of rows in each unit."""
    counts: Tensor
    """(U,): the number of equal units that each element stands for: 1, except for the cells of a confusion matrix."""
    cluster: str | None
    """The name of the column of clusters; None if rows are independent."""
    weights: Tensor | None = None
    """(U,): the sum of the weights of the rows in each unit; None if all rows have the same weight."""
    word: str = "rows"
    """The word for independent rows in messages."""

    @property
    def name(self) -> str:
        """The word for units in messages: "rows", "trials" or "clusters"."""
        return self.word if self.cluster is None else "clusters"

    @property
    def number(self) -> float:
        """The number of units."""
        return self.counts.sum().item()

    @property
    def sizes(self) -> Tensor:
        """(U,): the weight of each unit; without weights, its number of rows."""
        return self.rows if self.weights is None else self.weights

    @property
    def are_rows(self) -> bool:
        """Whether each unit is one row without a weight."""
        return self.weights is None and (self.cluster is None or self.largest == 1)

    @property
    def largest(self) -> float:
        """The largest size of a unit; 1 for independent rows without weights, also if several are added up."""
        is_one = self.cluster is None and self.weights is None
        return 1.0 if is_one else self.sizes.max().item()

    @property
    def mean_weight(self) -> float:
        """The mean weight of a row."""
        return ((self.counts @ self.sizes) / (self.counts @ self.rows)).item()

    def usual(self, sizes: Tensor) -> Tensor:
        """Return the usual size of a further unit, (...), from ``sizes`` (U, ...), such as those of a class.

        It is a mean size in which units count by their squared sizes, because the error of a value does so, too: if few
        units have most of the weight, it is nearly theirs.
        """
        of_further = sizes
        if self.cluster is None and bool((self.rows > 1).any()):
            # Independent rows were added up to units, but a further unit is a single row, of their mean weight.
            weight = self.sizes / self.rows
            of_further = weight.reshape(-1, *[1] * (sizes.ndim - 1)).expand_as(sizes)
        squares = sizes * of_further
        total: Tensor = torch.tensordot(self.counts, squares, 1)
        cubes: Tensor = torch.tensordot(self.counts, squares * of_further, 1)
        return cubes / total.clamp(min=1e-300)

    def too_few(self, least: int) -> Reason | None:
        """Return the reason if there are fewer than ``least`` units, by their number or by their effective number."""
        if self.number < least:
            return Reason("few_units", self.name, least)
        if self.weights is None:
            return None
        # Kish's effective sample size
        squares = self.counts @ self.sizes.square()
        effective = (self.counts @ self.sizes).square() / squares.clamp(min=1e-300)
        return Reason("few_effective", self.name, least) if effective < least else None


class Ratio(NamedTuple):
    """A value as a monotonic function of the ratio of two sums over units."""

    numerator: Tensor
    """(U,)"""
    per: Tensor
    """(U,): the denominator."""
    of_rows: Sequence[Pair]
    """The pairs that bound what a row of weight 1 adds."""
    to_value: Callable[[float], float]
    is_rising: bool = True
    """Whether the value rises with the ratio."""
    is_mean: bool = False
    """Whether a row may add much more than rows usually do, as to a mean loss: then a further row is `RARELY` at the
    limit, and the other rows of a further cluster are as bad as in the worst cluster seen."""

    def is_at_upper(self, end: End) -> bool:
        """Return whether an end of the value is at the upper end of the ratio, which it may fall with."""
        return end.is_upper == self.is_rising


class Influences(NamedTuple):
    """A value, and how much each unit, and a further row, changes it, to first order."""

    value: float
    of_units: Tensor
    """(U,): the influence of each unit; the sum over all units is 0."""
    units: Units
    added: Tensor | None = None
    """(U,): what each unit adds to the value; None if the value is no sum of such numbers."""
    measured: tuple[Measure, Any] | None = None
    """The measure whose value it is, and the sums of the units; None if the value is no function of sums."""
    of_rows: Tensor | None = None
    """(T, 2): the lowest and the highest influence of a row of weight 1, by true class or kind of row; (1, 2) if these
    do not matter; None if it has no limits."""
    usual_error: Tensor | None = None
    """(T, 2): the influence of a row of each class that is right, and of one that is wrong in the usual way; None if
    these are not known."""
    class_sizes: Tensor | None = None
    """(T,): the usual weight of the rows of each class in a further unit; None if classes do not matter."""
    ratio: Ratio | None = None
    limits: tuple[float | None, float | None] = (None, None)
    """The lowest and the highest possible value."""
    has_bound: bool = True
    """Whether ``of_rows`` holds for any row, not only for usual ones."""
    further_share: float = 1.0
    """The factor of ``of_rows`` for the further unit of an interval: below 1 if hardly any row is the worst one."""
    bias: float = 0.0
    """The mean value on random halves of the units, minus the value."""
    is_chosen: bool = False
    """Whether units are weighted by numbers that were chosen on them, such as a threshold: sign flips are no test."""

    def clipped(self, value: float) -> float:
        """Return ``value`` within the limits."""
        low, high = self.limits
        return max(-inf if low is None else low, min(value, inf if high is None else high))


class Unknown(NamedTuple):
    """A value, and the reason why nothing is known of its error."""

    value: float
    reason: Reason
    has_range: bool = True
    """Whether the definition of the metric limits what a row can add."""

    @property
    def no_bound(self) -> Reason:
        """The reason why the value has no bound."""
        return self.reason if self.has_range else NO_RANGE


Estimate = Influences | Unknown
"""A value and its influences, or why these are not known. All intervals, bounds and differences come from it."""


def of_sums(measure: Measure, sums: Any, units: Units) -> Estimate:
    """Return the value of a measure with its influences.

    ``sums`` has the sums of the units: a ``sums_type`` of the measure, with tensors (U, ...).
    """
    whole = total_sums(sums, units)
    computed = measure.value(whole)
    is_scalar = isinstance(computed, Tensor) and computed.numel() == 1
    require(is_scalar, "computes_scalar", "metric", computed)
    value = computed.item()
    if not isfinite(value):
        return Unknown(value, NO_VALUE)
    if measure.interval_rule != "smooth":
        return _of_ratio(measure, sums, whole, units, value)
    by_class = measure.averaged_classes(sums)
    if by_class is not None:
        of_classes = torch.tensordot(units.counts, by_class, 1)
        if bool((of_classes == 0).any()):
            return Unknown(value, Reason("absent_class"))
    slopes = slopes_of(measure, whole)
    influences = Influences(
        value,
        applied(slopes, sums),
        units,
        measured=(measure, sums),
        limits=measure.limits,
        bias=0.0 if by_class is None else bias(measure, sums, units),
    )
    # (T, D): the influence of a row of weight 1, by its true class and its decision.
    if isinstance(slopes, PairCounts):
        cells = slopes.confusion
        of_class = sums.confusion.sum(-1)
    elif isinstance(slopes, ClassCounts):
        if len(slopes.true) > MAX_SEARCHED_CLASSES:
            return Unknown(value, Reason("many_classes", number=MAX_SEARCHED_CLASSES))
        cells = slopes.true.unsqueeze(1) + slopes.predicted + slopes.right.diag()
        of_class = sums.true
    else:
        return influences
    # A value that no row changes is one by convention, such as an MCC of 0 if all decisions are of one class. A further
    # row would change it much more than to first order.
    if not bool(cells.any()):
        return Unknown(value, Reason("by_convention"))
    right = cells.diagonal()
    wrong = (cells.sum(1) - right) / max(1, len(cells) - 1)
    return influences._replace(
        of_rows=torch.stack([cells.amin(1), cells.amax(1)], 1),
        usual_error=torch.stack([right, wrong], 1),
        class_sizes=units.usual(of_class),
    )


def _of_ratio(
    measure: Measure, sums: Any, whole: Any, units: Units, value: float
) -> Estimate:
    numerator, per = measure.ratio(sums, whole)
    total = (units.counts @ per).item()
    if not total > 0:
        return Unknown(value, Reason("by_convention"))
    ratio = (units.counts @ numerator).item() / total
    slope = slope_of_ratio(measure, whole, ratio)
    influences = Influences(
        value,
        slope * (numerator - ratio * per) / total,
        units,
        measured=(measure, sums),
        limits=measure.limits,
        has_bound=measure.has_range,
    )
    pairs = measure.row_ratios(whole) or measure.seen_ratios(sums)
    if not pairs:
        return influences
    of_pairs = [slope * (num - ratio * den) / total for num, den in pairs]
    of_rows = torch.tensor([[min(of_pairs), max(of_pairs)]], dtype=torch.float64)
    is_mean = measure.interval_rule == "mean"
    return influences._replace(
        of_rows=of_rows,
        usual_error=None if is_mean else of_rows,
        class_sizes=units.usual(units.sizes).reshape(1),
        ratio=Ratio(
            numerator,
            per,
            pairs,
            to_value=lambda changed: measure.value_from_ratio(changed, whole),
            is_rising=slope >= 0,
            is_mean=is_mean,
        ),
    )


def slopes_of(measure: Measure, whole: Any) -> Any:
    """Return the derivatives of the value by each of the sums ``whole``, in the type of these."""
    leaves = [total.detach().clone().requires_grad_() for total in whole]
    value = measure.value(type(whole)(*leaves))
    slopes = torch.autograd.grad(value, leaves, allow_unused=True, materialize_grads=True)
    return type(whole)(*slopes)


def applied(slopes: Any, sums: Any) -> Tensor:
    """Return, for each unit, the sum of its ``sums``, each times its slope: (U,)."""
    by_field = list[Tensor]()
    for of_units, slope in zip(sums, slopes, strict=True):
        changes = of_units * slope.nan_to_num(0.0)
        by_field.append(changes.reshape(len(changes), -1).sum(1))
    return torch.stack(by_field).sum(0)


def slope_of_ratio(measure: Measure, whole: Any, ratio: float) -> float:
    """Return the derivative of the metric's value by the ``ratio`` numerator / denominator."""
    step = 1e-5
    low = measure.value_from_ratio(ratio - step, whole)
    high = measure.value_from_ratio(ratio + step, whole)
    return (high - low) / (2 * step)


def bias(measure: Measure, sums: Any, units: Units) -> float:
    """Return how much lower or higher a value is on average on random halves of the units.

    This is its bias for all units, if the bias falls as 1 / their number.
    """
    whole = total_sums(sums, units)
    generator = torch.Generator().manual_seed(0)
    signs = (
        torch.randint(2, (HALVES, len(units.counts)), generator=generator).double() * 2 - 1
    )
    # A half counts a unit twice or not at all: its sums are those of all units, plus or minus those of each unit. Of n
    # equal units, a half has about the square root of n too many or too few.
    changes = [torch.tensordot(signs * units.counts.sqrt(), each, 1) for each in sums]
    halves = list[Tensor]()
    for sign in (-1, 1):
        totals = zip(whole, changes, strict=True)
        of_half = [total + sign * change for total, change in totals]
        halves.append(measure.value(type(whole)(*of_half)))
    return (torch.cat(halves).nanmean() - measure.value(whole)).nan_to_num(0.0).item()


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
        largest = max(units.largest, *(end.max_weight for end in ends))
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
    of_units: Tensor, further: Sequence[float], units: Units, ends: Sequence[End]
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
    ratio: Ratio, units: Units, ends: Sequence[End], *, is_bound: bool
) -> list[float]:
    """Return ends of a ratio as values; the ratio is not linearized, so that it is exact for rates."""
    if not (units.counts @ ratio.per > 0):
        return [inf if end.is_upper else -inf for end in ends]
    max_weight = max(end.max_weight for end in ends)
    is_rate = list(ratio.of_rows) == RATE
    if is_rate and units.are_rows and max_weight <= 1:
        return [_end_of_rate(ratio, units, end) for end in ends]
    sizes = ratio.per if is_rate else units.sizes
    largest = max(sizes.max().item(), max_weight)
    size = largest if is_bound else units.usual(sizes).item()
    if ratio.is_mean and not is_bound:
        pairs = _rarely_worst(ratio, units, size)
    else:
        pairs = [(size * num, size * den) for num, den in ratio.of_rows]
    merged = merged_units(ratio.numerator, ratio.per, units)
    values = list[float]()
    for end in ends:
        end_of_ratio = merged.end(pairs, end.confidence, is_upper=ratio.is_at_upper(end))
        if is_rate:
            end_of_ratio = min(max(end_of_ratio, 0.0), 1.0)
        values.append(ratio.to_value(end_of_ratio))
    return values


def _end_of_rate(ratio: Ratio, units: Units, end: End) -> float:
    """Return the exact end of a rate of independent rows."""
    counted = torch.dot(units.counts, ratio.numerator).round()
    rows = torch.dot(units.counts, ratio.per).round()
    low, high = clopper_pearson_ends(counted, rows, confidence=end.confidence)
    return ratio.to_value((high if ratio.is_at_upper(end) else low).item())


def _rarely_worst(ratio: Ratio, units: Units, size: float) -> list[Pair]:
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


def standard_error(of_units: Tensor, units: Units) -> float:
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
    parts: Tensor, totals: Tensor, units: Units
) -> list[tuple[float, Interval | Reason]]:
    """Return each of R rates, and its interval or the reason why it has none.

    Each of U units has numerators ``parts`` and denominators ``totals``: (U, R).
    """
    numerators, wholes = units.counts @ parts, units.counts @ totals
    if units.are_rows:
        ends = clopper_pearson_ends(numerators.round(), wholes.round()).tolist()
    else:
        ends = list[list[float]]()
        for part, total in zip(parts.T, totals.T, strict=True):
            rate = Ratio(part, total, RATE, to_value=float)
            ends.append(_ends_of_ratio(rate, units, BOTH_ENDS, is_bound=False))
    values = (numerators / wholes).tolist()
    return [
        (value, NO_VALUE if isnan(value) else (low, high))
        for value, (low, high) in zip(values, ends, strict=True)
    ]


def total_sums(sums: Any, units: Units) -> Any:
    """Return the sums over all units, in the type of ``sums``; each element stands for ``units.counts`` equal units."""
    totals = [torch.tensordot(units.counts, of_units, 1) for of_units in sums]
    return type(sums)(*totals)


class MergedUnits(NamedTuple):
    """Units counted by their pairs of numerator and denominator, (P,) each; close pairs are merged."""

    numerators: Tensor
    counts: Tensor
    denominators: Tensor

    def end(self, possible: Sequence[Pair], confidence: float, *, is_upper: bool) -> float:
        """Return an end of the mean, valid if the pairs ``possible``, which need not occur, bound each unit."""
        numerators, denominators = torch.tensor(possible, dtype=torch.float64).unbind(1)
        return bounded_mean_bound(
            torch.cat([self.numerators, numerators]),
            torch.cat([self.counts, torch.zeros_like(numerators)]),
            per=torch.cat([self.denominators, denominators]),
            confidence=confidence,
            is_upper=is_upper,
        )


def merged_units(numerator: Tensor, per: Tensor, units: Units) -> MergedUnits:
    """Count the units with each pair of ``numerator`` and denominator ``per``, (U,) each."""
    pairs, counts = distinct_pairs(torch.stack([numerator, per], 1), units.counts)
    numerators, denominators = pairs.unbind(1)
    return MergedUnits(numerators, counts, denominators)
