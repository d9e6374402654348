"""Compute intervals and differences of detection metrics from the influence of each trial.

The cost at a threshold is a mean over targets plus a mean over non-targets. To first order, this is also true of the
equal error rate and of the area under the ROC. Each mean has Gaffke's interval (`bounded_mean_interval`), which for an
error rate equals the Clopper-Pearson interval. The two intervals are combined by square-and-add (MOVER: Zou and Donner,
2008). The first-order jackknife is used for metrics without bounds, for areas with many effective trials, and for
differences of detectors. For areas, it is the method of DeLong, DeLong and Clarke-Pearson.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from math import exp, expm1, hypot, isfinite, log, sqrt
from operator import ge
from typing import NamedTuple, Self

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import MIN_UNITS, SCALES, Reason, student_difference, student_interval
from mpcs_torch.functional import PairedDifference, bounded_mean_test
from mpcs_torch.functional.comparison.means import Interval, Mean, estimate_mean, mean_of_clusters
from mpcs_torch.functional.detection.errors import ErrorCounts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE
from mpcs_torch.functional.measure import IntervalScale

INFINITE = "it is infinite"
LEAST_P = 1e-12
"""The smallest p-value that is computed from combined bounds."""


class Influences(NamedTuple):
    """A value and each trial's influence. To first order, the value is a constant plus each kind's mean influence."""

    value: float
    kinds: Sequence[Tensor]
    """For each kind of trial, such as targets and non-targets: the influence of each trial of this kind, (N_k,)."""
    possible: Sequence[Interval] | None = None
    """For each kind: the minimum and the maximum possible influence of a trial; None if unknown."""
    limits: Interval = (0.0, 1.0)
    """The minimum and the maximum possible value."""
    clusters: Sequence[Tensor] | None = None
    """For each kind: the cluster of each trial, (N_k,), as codes from 0 without gaps; None for independent trials."""

    def units(self, centres: Sequence[Tensor | float] = ()) -> list[Tensor]:
        """Return a term for each trial, (N_k,) for each kind: its influence minus the kind's centre, divided by N_k.

        The default ``centres`` are the mean influences. With clusters, the list has one tensor, with an element for
        each cluster: the sum of the terms of its trials.
        """
        centres = centres or [part.mean() for part in self.kinds]
        parts = [(part - centre) / len(part) for part, centre in zip(self.kinds, centres, strict=True)]
        if self.clusters is None:
            return parts
        codes = torch.cat(list(self.clusters))
        return [parts[0].new_zeros(int(codes.max()) + 1).index_add_(0, codes, torch.cat(parts))]

    def effective(self) -> float:
        """Return the effective sample size: how many equally influential trials or clusters would have this spread.

        The size is small if only few influences differ from 0, or only few from the median. Then, trials with
        rare, large influences may be missing.
        """
        numbers = []
        for centres in ([0.0] * len(self.kinds), [part.median() for part in self.kinds]):
            units = self.units(centres)
            squares, total = sum(each.dot(each).item() for each in units), sum(each.norm(1).item() for each in units)
            numbers.append(total**2 / squares if squares > 0 else 0.0)
        return min(numbers)

    def bounds(self, confidence: float = CONFIDENCE) -> Interval:
        """Return the interval by Gaffke's bounds, clipped to ``limits``."""
        return combined(self.value, self._means(), self.limits, confidence)

    def jackknife(self, scale: IntervalScale) -> Interval | Reason:
        """Return Student's t interval of the value, computed on ``scale``, with the jackknife's standard error."""
        at = torch.tensor(self.value, dtype=torch.float64, requires_grad=True)
        on_scale = SCALES[scale][0](at)
        [slope] = torch.autograd.grad(on_scale, at)
        spread = self.spread() * slope.item()
        return student_interval(on_scale.detach(), spread, self.freedom(), scale) if isfinite(spread) else INFINITE

    def only_kind(self, place: int) -> Self:
        """Return this value with the influences of one kind of trial alone, ``kinds[place]``."""
        clusters = None if self.clusters is None else [self.clusters[place]]
        return self._replace(kinds=[self.kinds[place]], clusters=clusters)

    def minus(self, other: Self) -> Self:
        """Return the difference of two detectors on the same trials: this value minus ``other``."""
        both = zip(self.possible or (), other.possible or (), strict=True)
        return self._replace(
            value=self.value - other.value,
            kinds=[here - there for here, there in zip(self.kinds, other.kinds, strict=True)],
            possible=[(low - most, high - least) for (low, high), (least, most) in both] or None,
            limits=(self.limits[0] - other.limits[1], self.limits[1] - other.limits[0]),
        )

    def p_value(self) -> float:
        """Return the p-value for a true value of 0: 1 minus the confidence at which one of the `bounds` is 0."""
        from scipy.optimize import brentq  # scipy.stats takes longer to import

        means = self._means()
        if len(means) == 1:
            [mean] = means
            return bounded_mean_test(mean.values + mean.per * (self.value - mean.value), mean.counts)

        def beyond(logarithm: float) -> float:
            low, high = self.bounds(-expm1(logarithm))
            return low if self.value > 0 else -high

        least, most = log(LEAST_P), -1e-9
        if self.value == 0 or beyond(most) <= 0:
            return 1.0
        return LEAST_P if beyond(least) >= 0 else exp(brentq(beyond, least, most, xtol=1e-3))

    def _means(self) -> list[Mean]:
        """Return independent means. The value is their sum plus a constant.

        With clusters, there is a single mean over clusters, because trials of both kinds may be in one cluster.
        """
        assert self.possible is not None
        if self.clusters is None:
            return [estimate_mean(part, ends, None) for part, ends in zip(self.kinds, self.possible, strict=True)]
        [units] = self.units()
        ends = torch.zeros(2, len(units), dtype=torch.float64)
        for part, codes, possible in zip(self.kinds, self.clusters, self.possible, strict=True):
            shares = codes.bincount(minlength=len(units)) / len(part)
            ends += torch.tensor(possible, dtype=torch.float64).sub(part.mean()).unsqueeze(1) * shares
        least, most = ends[0].amin().item(), ends[1].amax().item()
        number = len(units)
        return [mean_of_clusters(number * units, torch.ones_like(units), [(number * least, 1.0), (number * most, 1.0)])]

    def spread(self) -> float:
        """Return the standard error by the delete-one jackknife, to first order."""
        return sqrt(sum(len(each) / max(1, len(each) - 1) * each.dot(each).item() for each in self.units()))

    def freedom(self) -> int:
        """Return the degrees of freedom: the number of trials (or clusters) of the rarest kind, minus 1; at least 1."""
        units = self.kinds if self.clusters is None else [codes.unique() for codes in self.clusters]  # type: ignore[no-untyped-call]
        return max(1, min(map(len, units)) - 1)


def combined(value: float, means: Sequence[Mean], limits: Interval, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval, clipped to ``limits``, of a ``value``: a constant plus the sum of independent ``means``."""
    ends = [(mean.value, mean.interval(confidence)) for mean in means]
    below, above = hypot(*(at - low for at, (low, _) in ends)), hypot(*(high - at for at, (_, high) in ends))
    return max(limits[0], value - below), min(limits[1], value + above)


def roc_area(
    misranked: Sequence[Tensor], weights: Sequence[Tensor] | None = None, clusters: Sequence[Tensor] | None = None
) -> Influences:
    """Compute the area under the ROC, with influences, from ``misranked``, the result of `misranked_shares`.

    ``weights`` has the weights of the trials of each kind, (N_k,). A trial's influence on a weighted mean is the
    trial's deviation from the mean, times its weight divided by the mean weight.
    """
    kinds, possible = list[Tensor](), list[Interval]()
    for place, shares in enumerate(misranked):
        ratios = torch.ones_like(shares) if weights is None else weights[place] / weights[place].mean()
        mean, most = -(shares @ ratios).item() / len(shares), ratios.max().item()
        kinds.append(mean * (1 - ratios) - ratios * shares)
        possible.append((mean * (1 - most) - most, mean * (1 - most)))
    return Influences(1 + kinds[0].mean().item(), kinds, possible, clusters=clusters)


def area_interval(area: Influences) -> Interval | Reason:
    """Return the interval of an area under the ROC, given its influences, as from `roc_area`.

    With many independent trials, the interval is DeLong's, on the logit scale; otherwise, it is Gaffke's.
    """
    is_large = area.clusters is None and area.effective() >= 40  # intervals of smaller samples would be too narrow
    return area.jackknife("logit") if is_large else area.bounds()


def difference(first: Influences, second: Influences) -> PairedDifference | Reason:
    """Return the second value minus the first, with interval and p-value, or the reason why there is none.

    For rates of independent trials, and if few trials influence the difference, interval and p-value come from
    Gaffke's bounds. Otherwise, they come from the jackknife.
    """
    change = second.minus(first)
    if not isfinite(change.value) or not all(part.isfinite().all() for part in change.kinds):
        return INFINITE
    is_rate = change.clusters is None and len(change.kinds) == 1 and change.possible is not None
    if not is_rate and change.effective() >= MIN_UNITS:
        return student_difference(first.value, second.value, change.spread(), change.freedom())
    if change.possible is None:
        unit = "trials" if change.clusters is None else "clusters"
        return f"few {unit} dominate it, so rare ones may be missing here"
    return PairedDifference(first.value, second.value, change.value, *change.bounds(), change.p_value())


def equal_error_ends(
    counts: ErrorCounts, rate: float, threshold: float, errors_at: Callable[[float], Sequence[Mean]]
) -> tuple[Interval, tuple[float, float]]:
    """Return the interval of the equal error rate, and its derivatives by the miss rate and the false-alarm rate.

    Both results come from equal error rates of shifted curves: at every threshold, the miss rate, the false-alarm rate
    or both are moved to an end of their intervals. The derivatives are scaled to the sum 1. ``rate`` is the equal error
    rate, interpolated between thresholds. ``errors_at`` returns the miss rate and the false-alarm rate at a threshold;
    at ``threshold``, they are nearly equal.
    """
    rates, last = counts.rates(), len(counts.thresholds) - 1

    @cache
    def end_of_rate(place: int, kind: int, end: int) -> float:
        return errors_at(rates.thresholds[place].item())[kind].end(end, CONFIDENCE)

    def crossing(shifted: Sequence[int], end: int) -> float:
        def rates_at(place: int) -> list[float]:
            both = [rates.p_miss[place].item(), rates.p_fa[place].item()]
            return [end_of_rate(place, kind, end) if kind in shifted else both[kind] for kind in (0, 1)]

        first = bisect_left(range(last), True, key=lambda place: ge(*rates_at(place)))
        miss, alarm = rates_at(first)
        if first == 0 or miss == alarm:
            return miss
        before, alarm_before = rates_at(first - 1)
        span = alarm_before - before + miss - alarm  # 0 if infinite scores move neither rate
        return before + (alarm_before - before) / span * (miss - before) if span else before

    of_miss, of_alarm, of_both = ([crossing(shifted, end) for end in (0, 1)] for shifted in ([0], [1], [0, 1]))
    below, above = (hypot(rate - of_miss[end], rate - of_alarm[end]) for end in (0, 1))
    widths = [high - low for low, high in (mean.interval(CONFIDENCE) for mean in errors_at(threshold))]
    slopes = [(of[1] - of[0]) / width for of, width in zip((of_miss, of_alarm), widths, strict=True)]
    weights = slopes[0] / sum(slopes), slopes[1] / sum(slopes)
    return (max(rate - below, of_both[0]), min(rate + above, of_both[1])), weights
