"""Intervals and differences of detectors, from means over targets and over non-targets.

The cost at a threshold is the mean of the costs of targets plus that of non-targets. So is, near its value, the equal
error rate, and so is the area under the ROC, a mean over targets and a mean over non-targets of how they rank. Each
mean has Gaffke's interval (`bounded_mean_interval`), which is that of Clopper and Pearson for an error rate, and whose
units are clusters where trials are clustered. Both are combined as in `cost_interval`. What has no bound, what differs
smoothly between many trials, and the differences of detectors, have the jackknife to first order; for areas it is that
of DeLong, DeLong and Clarke-Pearson.
"""

from collections.abc import Sequence
from functools import cached_property
from math import exp, expm1, hypot, inf, isfinite, log, sqrt
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import CONFIDENCE, FEWEST, SCALES, Reason, quantile
from mpcs_torch.functional import PairedDifference, bounded_mean_test
from mpcs_torch.functional.comparison.means import Interval, Mean, mean_of, mean_of_clusters

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.additive import Scale

LEAST_P = 1e-12
"""The smallest p-value of a bound."""


class TrialUnits:
    """Trials of two kinds, targets and non-targets, and their clusters.

    The functions below take what trials have by kind, as `by_kind` splits it.
    """

    def __init__(self, labels: Tensor, clusters: Tensor | None = None) -> None:
        """Hold trials.

        Args:
            labels: (N,), bool: True for targets.
            clusters: (N,), int64 codes from 0 on; None if trials are independent.
        """
        self.labels, self.clusters = labels, clusters

    @cached_property
    def kinds(self) -> list[Tensor]:
        """The places of targets, and of non-targets."""
        return [kind.nonzero().squeeze(1) for kind in (self.labels, ~self.labels)]

    def by_kind(self, values: Tensor) -> list[Tensor]:
        """Return the values (N, ...) of the trials of each kind."""
        return [values[places] for places in self.kinds]

    @cached_property
    def clusters_by_kind(self) -> list[Tensor] | None:
        """The clusters of the trials of each kind; None if trials are independent."""
        return None if self.clusters is None else self.by_kind(self.clusters)

    def part(self, places: Tensor) -> "TrialUnits":
        """Return some of the trials."""
        return TrialUnits(self.labels[places], None if self.clusters is None else self.clusters[places])


def means_of(values: Sequence[Tensor], possible: Sequence[Interval], clusters: Sequence[Tensor] | None) -> list[Mean]:
    """Return the means whose sum changes as the mean of the values of targets plus that of non-targets does.

    Args:
        values: Of the trials of each kind.
        possible: The least and the largest possible value of each kind.
        clusters: Of the trials of each kind; None if trials are independent. The two means of clusters depend on each
            other, so they are one, to first order.
    """
    if clusters is None:
        return [mean_of(of_kind, ends, None) for of_kind, ends in zip(values, possible, strict=True)]
    number = max(int(of_kind.max()) for of_kind in clusters) + 1
    sums, most, least, sizes = (torch.zeros(number, dtype=torch.float64) for _ in range(4))
    for of_kind, units, (low, high) in zip(values, clusters, possible, strict=True):
        mean, size = of_kind.mean(), units.bincount(minlength=number)
        sums.index_add_(0, units, (of_kind - mean) / len(units))
        share = size / len(units)
        least, most, sizes = least + share * (low - mean), most + share * (high - mean), sizes + size
    sums = sums[sizes > 0]
    number = len(sums)
    ends = [(number * least.min().item(), 1.0), (number * most.max().item(), 1.0)]
    return [mean_of_clusters(number * sums, torch.ones_like(sums), ends)]


def combined(value: float, means: Sequence[Mean], limits: Interval, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval, within limits, of a value that changes as the sum of independent means does."""
    ends = [(mean.value, mean.interval(confidence)) for mean in means]
    below, above = hypot(*(at - low for at, (low, _) in ends)), hypot(*(high - at for at, (_, high) in ends))
    return max(limits[0], value - below), min(limits[1], value + above)


def effective(values: Sequence[Tensor], clusters: Sequence[Tensor] | None) -> float:
    """Return how many trials or clusters, if all counted alike, would make a sum of means as uncertain as values do.

    Few of them count where few differ from 0, and where few differ from all others: neither tells how often rare
    values occur.

    Args:
        values: Of the trials of each kind.
        clusters: Theirs; None if trials are independent.
    """
    numbers = []
    for apart in (values, [of_kind - of_kind.median() for of_kind in values]):
        shares = [of_kind / len(of_kind) for of_kind in apart]
        units = shares if clusters is None else [_sums_of_clusters(shares, clusters)]
        squares = sum(of_kind.dot(of_kind).item() for of_kind in units)
        total = sum(of_kind.norm(1).item() for of_kind in units)
        numbers.append(total**2 / squares if squares > 0 else 0.0)
    return min(numbers)


def fewest_effective(values: Sequence[Tensor], clusters: Sequence[Tensor] | None) -> float:
    """Return the smaller `effective` number of the targets alone and of the non-targets alone."""
    return min(
        effective([of_kind], None if clusters is None else [clusters[place]]) for place, of_kind in enumerate(values)
    )


def jackknife_interval(
    value: float, values: Sequence[Tensor], clusters: Sequence[Tensor] | None, scale: "Scale"
) -> Interval | Reason:
    """Return the interval of a value that changes as the mean of the values of targets plus that of non-targets does.

    Args:
        value: The value.
        values: Of the trials of each kind.
        clusters: Of the trials of each kind; None if trials are independent.
        scale: That of Student's t.
    """
    forward, back = SCALES[scale]
    at = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    [slope] = torch.autograd.grad(forward(at), at)
    half = quantile(_freedom(values, clusters)) * _spread(values, clusters) * slope.item()
    if not isfinite(half):
        return "it is infinite"
    low, high = (back(forward(at.detach()) + sign * half).item() for sign in (-1, 1))
    return low, high


def difference(
    first: float,
    second: float,
    apart: Sequence[Tensor],
    possible: Sequence[Interval] | None,
    clusters: Sequence[Tensor] | None,
    limits: Interval = (-1.0, 1.0),
) -> PairedDifference:
    """Return how much a second value exceeds a first, with an interval and the p-value that belongs to it.

    Both are of the jackknife, unless few trials differ: then of Gaffke's bounds, if there are any.

    Args:
        first: The value of the first detector.
        second: The value of the second detector.
        apart: The differences of the trials of each kind.
        possible: The least and the largest possible one of each kind; None without any.
        clusters: Of the trials of each kind; None if trials are independent.
        limits: The least and the largest possible difference.
    """
    from scipy.special import stdtr  # scipy.stats takes longer to import

    change = second - first
    unknown = PairedDifference(first, second, change, -inf, inf, 1.0)
    if not isfinite(change) or not all(of_kind.isfinite().all() for of_kind in apart):
        return unknown
    if effective(apart, clusters) < FEWEST:
        if possible is None:
            return unknown
        means = means_of(apart, possible, clusters)
        low, high = combined(change, means, limits)
        return PairedDifference(first, second, change, low, high, _p_value(change, means, limits))
    spread, freedom = _spread(apart, clusters), _freedom(apart, clusters)
    half, p_value = quantile(freedom) * spread, 2 * float(stdtr(freedom, -abs(change) / spread))
    return PairedDifference(first, second, change, change - half, change + half, p_value)


def difference_of_rates(wrong: tuple[Tensor, Tensor], clusters: Tensor | None) -> PairedDifference:
    """Return the difference of the rates of wrong decisions (N,), of independent trials with McNemar's p-value."""
    first, second = (each.double().mean().item() for each in wrong)
    apart, possible = wrong[1].double() - wrong[0].double(), (-1.0, 1.0)
    if clusters is not None:
        return difference(first, second, [apart], [possible], [clusters])
    mean = mean_of(apart, possible, None)
    low, high = mean.interval(CONFIDENCE)
    return PairedDifference(first, second, second - first, low, high, bounded_mean_test(mean.values, mean.counts))


def _p_value(change: float, means: Sequence[Mean], limits: Interval) -> float:
    """Return 1 minus the confidence at which the interval ends at 0."""
    from scipy.optimize import brentq

    def beyond(logarithm: float) -> float:
        low, high = combined(change, means, limits, -expm1(logarithm))
        return low if change > 0 else -high

    least, most = log(LEAST_P), -1e-9
    if change == 0 or beyond(most) <= 0:
        return 1.0
    if beyond(least) >= 0:
        return LEAST_P
    return exp(brentq(beyond, least, most, xtol=1e-3))


def _spread(values: Sequence[Tensor], clusters: Sequence[Tensor] | None) -> float:
    """Return the standard error of the sum of both means: that of leaving out one unit at a time, to first order."""
    if clusters is None:
        variances = [of_kind.var(correction=min(1, len(of_kind) - 1)).item() / len(of_kind) for of_kind in values]
        return sqrt(sum(variances))
    influence = [(of_kind - of_kind.mean()) / len(of_kind) for of_kind in values]
    number = len(torch.cat(list(clusters)).unique())  # type: ignore[no-untyped-call]
    return sqrt(number / max(1, number - 1) * _sums_of_clusters(influence, clusters).square().sum().item())


def _sums_of_clusters(values: Sequence[Tensor], clusters: Sequence[Tensor]) -> Tensor:
    """Return the sum of the values of each cluster, over both kinds."""
    codes = torch.cat(list(clusters))
    return values[0].new_zeros(int(codes.max()) + 1).index_add_(0, codes, torch.cat(list(values)))


def _freedom(values: Sequence[Tensor], clusters: Sequence[Tensor] | None) -> int:
    """Return the degrees of freedom: those of the smaller kind."""
    units = values if clusters is None else [of_kind.unique() for of_kind in clusters]  # type: ignore[no-untyped-call]
    return max(1, min(map(len, units)) - 1)
