"""Intervals and differences of what is measured by trials of two kinds, such as areas, from what each trial adds.

The cost at a threshold is the mean of the costs of targets plus that of non-targets. So is, near its value, the equal
error rate, and so is the area under the ROC, a mean over targets and a mean over non-targets of how they rank. Each
mean has Gaffke's interval (`bounded_mean_interval`), which is that of Clopper and Pearson for an error rate, and whose
units are clusters where trials are clustered. Both are combined as in `cost_interval`. What has no bound, what differs
smoothly between many trials, and the differences of detectors, have the jackknife to first order; for areas it is that
of DeLong, DeLong and Clarke-Pearson.
"""

from bisect import bisect_left
from collections.abc import Callable, Sequence
from functools import cache
from math import exp, expm1, hypot, isfinite, log, sqrt
from operator import ge
from typing import TYPE_CHECKING, NamedTuple, Self

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import MIN_UNITS, SCALES, Reason, student_difference, student_interval
from mpcs_torch.functional import PairedDifference, bounded_mean_test
from mpcs_torch.functional.comparison.means import Interval, Mean, mean_of, mean_of_clusters
from mpcs_torch.functional.detection.errors import ErrorCounts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.additive import Scale

INFINITE = "it is infinite"
LEAST_P = 1e-12
"""The smallest p-value of two bounds that are combined."""
MIN_MISRANKED = 40
"""The fewest trials, as `Influences.effective` counts them, for the jackknife of an area: with fewer,
its intervals are too narrow."""


class Influences(NamedTuple):
    """A value that changes as the sum of the means of what trials of each kind add to it does."""

    value: float
    kinds: Sequence[Tensor]
    """Of each kind, such as targets and non-targets: what each trial adds, (N_k,)."""
    possible: Sequence[Interval] | None = None
    """Of each kind, the least and the largest that a trial may add; None if that is not known."""
    limits: Interval = (0.0, 1.0)
    """The least and the largest possible value."""
    clusters: Sequence[Tensor] | None = None
    """Of each kind, the clusters of trials, (N_k,): codes from 0 on, all of which occur. None if trials are independent
    of each other."""

    def units(self, centres: Sequence[Tensor | float] = ()) -> list[Tensor]:
        """Return how much more each trial of each kind, or each cluster, adds than centres, such as the means."""
        centres = centres or [part.mean() for part in self.kinds]
        parts = [(part - centre) / len(part) for part, centre in zip(self.kinds, centres, strict=True)]
        if self.clusters is None:
            return parts
        codes = torch.cat(list(self.clusters))
        return [parts[0].new_zeros(int(codes.max()) + 1).index_add_(0, codes, torch.cat(parts))]

    def effective(self) -> float:
        """Return how many trials or clusters, if all counted alike, would make the value as uncertain as these do.

        Few of them count where few differ from 0, and where few differ from all others: then nothing is known of
        how frequent rare values are.
        """
        numbers = []
        for centres in ([0.0] * len(self.kinds), [part.median() for part in self.kinds]):
            units = self.units(centres)
            squares, total = sum(each.dot(each).item() for each in units), sum(each.norm(1).item() for each in units)
            numbers.append(total**2 / squares if squares > 0 else 0.0)
        return min(numbers)

    def bounds(self, confidence: float = CONFIDENCE) -> Interval:
        """Return the interval of what trials may add, within the limits."""
        return combined(self.value, self._means(), self.limits, confidence)

    def jackknife(self, scale: "Scale") -> Interval | Reason:
        """Return Student's interval on a scale."""
        at = torch.tensor(self.value, dtype=torch.float64, requires_grad=True)
        on_scale = SCALES[scale][0](at)
        [slope] = torch.autograd.grad(on_scale, at)
        spread = self.spread() * slope.item()
        return student_interval(on_scale.detach(), spread, self.freedom(), scale) if isfinite(spread) else INFINITE

    def of_kind(self, place: int) -> Self:
        """Return what the trials of one kind add."""
        clusters = None if self.clusters is None else [self.clusters[place]]
        return self._replace(kinds=[self.kinds[place]], clusters=clusters)

    def minus(self, other: Self) -> Self:
        """Return the difference from the value of another detector of the same trials."""
        both = zip(self.possible or (), other.possible or (), strict=True)
        return self._replace(
            value=self.value - other.value,
            kinds=[here - there for here, there in zip(self.kinds, other.kinds, strict=True)],
            possible=[(low - most, high - least) for (low, high), (least, most) in both] or None,
            limits=(self.limits[0] - other.limits[1], self.limits[1] - other.limits[0]),
        )

    def p_value(self) -> float:
        """Return 1 minus the confidence at which the bounds end at 0."""
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
        """Return independent means whose sum changes as the value does.

        The means of clusters depend on each other, so they are one, to first order.
        """
        assert self.possible is not None
        if self.clusters is None:
            return [mean_of(part, ends, None) for part, ends in zip(self.kinds, self.possible, strict=True)]
        [units] = self.units()
        ends = torch.zeros(2, len(units), dtype=torch.float64)
        for part, codes, possible in zip(self.kinds, self.clusters, self.possible, strict=True):
            shares = codes.bincount(minlength=len(units)) / len(part)
            ends += torch.tensor(possible, dtype=torch.float64).sub(part.mean()).unsqueeze(1) * shares
        least, most = ends[0].amin().item(), ends[1].amax().item()
        number = len(units)
        return [mean_of_clusters(number * units, torch.ones_like(units), [(number * least, 1.0), (number * most, 1.0)])]

    def spread(self) -> float:
        """Return the standard error: that of leaving out one trial or cluster at a time, to first order."""
        return sqrt(sum(len(each) / max(1, len(each) - 1) * each.dot(each).item() for each in self.units()))

    def freedom(self) -> int:
        """Return the degrees of freedom: those of the smaller kind."""
        units = self.kinds if self.clusters is None else [codes.unique() for codes in self.clusters]  # type: ignore[no-untyped-call]
        return max(1, min(map(len, units)) - 1)


def combined(value: float, means: Sequence[Mean], limits: Interval, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval, within limits, of a value that changes as the sum of independent means does."""
    ends = [(mean.value, mean.interval(confidence)) for mean in means]
    below, above = hypot(*(at - low for at, (low, _) in ends)), hypot(*(high - at for at, (_, high) in ends))
    return max(limits[0], value - below), min(limits[1], value + above)


def area_of(
    misranked: Sequence[Tensor], weights: Sequence[Tensor] | None = None, clusters: Sequence[Tensor] | None = None
) -> Influences:
    """Return the area under the ROC by the shares of `misranked_shares`, with weights (N_k,) of trials of each kind.

    A weighted mean is, near its value, the mean of what trials add: the deviation of each, times its weight by the
    mean weight.
    """
    if weights is None:
        lost = [-shares for shares in misranked]
        return Influences(1 - misranked[0].mean().item(), lost, [(-1.0, 0.0)] * 2, clusters=clusters)
    kinds, possible = list[Tensor](), list[Interval]()
    for shares, ratios in zip(misranked, (each / each.mean() for each in weights), strict=True):
        mean, most = -(shares @ ratios).item() / len(shares), ratios.max().item()
        kinds.append(mean - ratios * (shares + mean))
        possible.append((mean - most * (1 + mean), mean - most * mean))
    return Influences(1 + kinds[0].mean().item(), kinds, possible, clusters=clusters)


def area_interval(
    misranked: Sequence[Tensor], weights: Sequence[Tensor] | None = None, clusters: Sequence[Tensor] | None = None
) -> Interval | Reason:
    """Return the interval of the area under the ROC, of detectors and of classes; arguments are those of `area_of`.

    That of DeLong, DeLong and Clarke-Pearson on the logit scale, of many independent trials; else Gaffke's bounds.
    """
    area = area_of(misranked, weights, clusters)
    return area.jackknife("logit") if clusters is None and area.effective() >= MIN_MISRANKED else area.bounds()


def difference(first: Influences, second: Influences) -> PairedDifference | Reason:
    """Return how much a second value exceeds a first one, with an interval and the p-value that belongs to it.

    Both are of the jackknife, unless few trials differ, or values are rates of independent trials: then of Gaffke's
    bounds, if there are any.
    """
    apart = second.minus(first)
    if not isfinite(apart.value) or not all(part.isfinite().all() for part in apart.kinds):
        return INFINITE
    is_rate = apart.clusters is None and len(apart.kinds) == 1
    if not is_rate and apart.effective() >= MIN_UNITS:
        return student_difference(first.value, second.value, apart.spread(), apart.freedom())
    if apart.possible is None:
        unit = "trials" if apart.clusters is None else "clusters"
        return f"few {unit} dominate it, so rare ones may be missing here"
    return PairedDifference(first.value, second.value, apart.value, *apart.bounds(), apart.p_value())


def equal_error_ends(
    counts: ErrorCounts, rate: float, threshold: float, errors_at: Callable[[float], Sequence[Mean]]
) -> tuple[Interval, tuple[float, float]]:
    """Return the interval of the equal error rate, and how it changes with the miss and the false-alarm rate.

    Curves are shifted as a whole: one rate, or both, is at an end of its interval at all thresholds.

    Args:
        counts: The errors at every threshold.
        rate: The equal error rate, on straight lines between the points of the curve.
        threshold: A threshold of nearly equal rates.
        errors_at: Returns the miss rate and the false-alarm rate at a threshold.
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
        span = alarm_before - before + miss - alarm  # 0 where infinite scores move neither rate
        return before + (alarm_before - before) / span * (miss - before) if span else before

    of_miss, of_alarm, of_both = ([crossing(shifted, end) for end in (0, 1)] for shifted in ([0], [1], [0, 1]))
    below, above = (hypot(rate - of_miss[end], rate - of_alarm[end]) for end in (0, 1))
    widths = [high - low for low, high in (mean.interval(CONFIDENCE) for mean in errors_at(threshold))]
    slopes = [(of[1] - of[0]) / width for of, width in zip((of_miss, of_alarm), widths, strict=True)]
    weights = slopes[0] / sum(slopes), slopes[1] / sum(slopes)
    return (max(rate - below, of_both[0]), min(rate + above, of_both[1])), weights
