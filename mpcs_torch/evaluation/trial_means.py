"""Intervals and differences of detectors, from means over targets and over non-targets.

The cost at a threshold is the mean of the costs of targets plus that of non-targets. So is, near its value, the equal
error rate, and so is the area under the ROC, a mean over targets and a mean over non-targets of how they rank. Each
mean has Gaffke's interval (`bounded_mean_interval`), which is that of Clopper and Pearson for an error rate, and whose
units are clusters where trials are clustered. Both are combined as in `cost_interval`. What has no bound, what differs
smoothly between many trials, and the differences of detectors, have the jackknife to first order; for areas it is that
of DeLong, DeLong and Clarke-Pearson.
"""

from collections.abc import Sequence
from math import exp, expm1, hypot, inf, isfinite, log, sqrt
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.evaluation.intervals import CONFIDENCE, FEWEST, SCALES, Reason, quantile
from mpcs_torch.functional import PairedDifference, bounded_mean_test
from mpcs_torch.functional.comparison.means import Interval, Mean, mean_of, mean_of_clusters

if TYPE_CHECKING:  # torchmetrics takes seconds to import
    from mpcs_torch.metrics.additive import Scale

LEAST_P = 1e-12
"""The smallest p-value of a bound."""


class TrialUnits(NamedTuple):
    """The labels and clusters of trials."""

    labels: Tensor
    """(N,), bool: True for targets."""
    clusters: Tensor | None = None
    """(N,), int64 codes from 0 on; None if trials are independent."""

    def kinds(self) -> list[Tensor]:
        """Return the places of the targets and of the non-targets, of which one kind may be missing."""
        return [kind.nonzero().squeeze(1) for kind in (self.labels, ~self.labels) if kind.any()]

    def part(self, places: Tensor | slice) -> "TrialUnits":
        """Return some of the trials."""
        return TrialUnits(self.labels[places], None if self.clusters is None else self.clusters[places])


def means_of(values: Tensor, possible: Sequence[Interval], trials: TrialUnits) -> list[Mean]:
    """Return the means whose sum changes as the mean of the values of targets plus that of non-targets does.

    Args:
        values: Of trials (N,).
        possible: The least and the largest possible value of a target, and of a non-target.
        trials: The trials. The two means of clusters depend on each other, so they are one, to first order.
    """
    kinds = trials.kinds()
    if trials.clusters is None:
        return [mean_of(values[kind], ends, None) for kind, ends in zip(kinds, possible, strict=True)]
    number = int(trials.clusters.max()) + 1
    sums, most, least = (torch.zeros(number, dtype=torch.float64) for _ in range(3))
    for places, (low, high) in zip(kinds, possible, strict=True):
        of_kind, clusters = values[places], trials.clusters[places]
        mean = of_kind.mean()
        sums.index_add_(0, clusters, (of_kind - mean) / len(places))
        share = clusters.bincount(minlength=number) / len(places)
        least, most = least + share * (low - mean), most + share * (high - mean)
    sums = sums[trials.clusters.bincount(minlength=number) > 0]
    number = len(sums)
    ends = [(number * least.min().item(), 1.0), (number * most.max().item(), 1.0)]
    return [mean_of_clusters(number * sums, torch.ones_like(sums), ends)]


def combined(value: float, means: Sequence[Mean], limits: Interval, confidence: float = CONFIDENCE) -> Interval:
    """Return the interval, within limits, of a value that changes as the sum of independent means does."""
    ends = [(mean.value, mean.interval(confidence)) for mean in means]
    below, above = hypot(*(at - low for at, (low, _) in ends)), hypot(*(high - at for at, (_, high) in ends))
    return max(limits[0], value - below), min(limits[1], value + above)


def effective(values: Tensor, trials: TrialUnits) -> float:
    """Return how many trials or clusters, if all counted alike, would make a sum of means as uncertain as values do.

    Few of them count where few differ from 0, and where few differ from all others: neither tells how often rare
    values occur.
    """
    shares, apart = torch.empty_like(values), torch.empty_like(values)
    for places in trials.kinds():
        shares[places] = values[places] / len(places)
        apart[places] = (values[places] - values[places].median()) / len(places)
    numbers = []
    for of_trials in (shares, apart):
        units = of_trials if trials.clusters is None else _by_cluster(of_trials, trials.clusters)
        squares = units.square().sum().item()
        numbers.append(units.abs().sum().item() ** 2 / squares if squares > 0 else 0.0)
    return min(numbers)


def fewest_effective(values: Tensor, trials: TrialUnits) -> float:
    """Return the smaller `effective` number of the targets alone and of the non-targets alone."""
    return min(effective(values[places], trials.part(places)) for places in trials.kinds())


def jackknife_interval(value: float, values: Tensor, trials: TrialUnits, scale: "Scale") -> Interval | Reason:
    """Return the interval of a value that changes as the mean of the values of targets plus that of non-targets does.

    Args:
        value: The value.
        values: Of trials (N,).
        trials: The trials.
        scale: That of Student's t.
    """
    forward, back = SCALES[scale]
    at = torch.tensor(value, dtype=torch.float64, requires_grad=True)
    [slope] = torch.autograd.grad(forward(at), at)
    half = quantile(_freedom(trials)) * _spread(values, trials) * slope.item()
    if not isfinite(half):
        return "it is infinite"
    low, high = (back(forward(at.detach()) + sign * half).item() for sign in (-1, 1))
    return low, high


def difference(
    first: float,
    second: float,
    apart: Tensor,
    possible: Sequence[Interval] | None,
    trials: TrialUnits,
    limits: Interval = (-1.0, 1.0),
) -> PairedDifference:
    """Return how much a second value exceeds a first, with an interval and the p-value that belongs to it.

    Both are of the jackknife, unless few trials differ: then of Gaffke's bounds, if there are any.

    Args:
        first: The value of the first detector.
        second: The value of the second detector.
        apart: The differences of trials (N,).
        possible: The least and the largest possible one of a target, and of a non-target; None without any.
        trials: The trials.
        limits: The least and the largest possible difference.
    """
    from scipy.special import stdtr  # scipy.stats takes longer to import

    change = second - first
    unknown = PairedDifference(first, second, change, -inf, inf, 1.0)
    if not isfinite(change) or not bool(apart.isfinite().all()):
        return unknown
    if effective(apart, trials) < FEWEST:
        if possible is None:
            return unknown
        means = means_of(apart, possible, trials)
        low, high = combined(change, means, limits)
        return PairedDifference(first, second, change, low, high, _p_value(change, means, limits))
    spread, freedom = _spread(apart, trials), _freedom(trials)
    half, p_value = quantile(freedom) * spread, 2 * float(stdtr(freedom, -abs(change) / spread))
    return PairedDifference(first, second, change, change - half, change + half, p_value)


def difference_of_rates(wrong: tuple[Tensor, Tensor], clusters: Tensor | None) -> PairedDifference:
    """Return the difference of the rates of wrong decisions (N,), of independent trials with McNemar's p-value."""
    first, second = (each.double().mean().item() for each in wrong)
    apart, possible = wrong[1].double() - wrong[0].double(), (-1.0, 1.0)
    if clusters is not None:
        return difference(first, second, apart, [possible], TrialUnits(torch.ones_like(wrong[0]), clusters))
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


def _spread(values: Tensor, trials: TrialUnits) -> float:
    """Return the standard error of the sum of both means: that of leaving out one unit at a time, to first order."""
    influence, variance = torch.zeros_like(values), 0.0
    for places in trials.kinds():
        rest = influence[places] = (values[places] - values[places].mean()) / len(places)
        variance += (len(places) / max(1, len(places) - 1) * rest.square().sum()).item()
    if trials.clusters is not None:
        number = len(trials.clusters.unique())  # type: ignore[no-untyped-call]
        variance = (number / max(1, number - 1) * _by_cluster(influence, trials.clusters).square().sum()).item()
    return sqrt(variance)


def _by_cluster(values: Tensor, clusters: Tensor) -> Tensor:
    return values.new_zeros(int(clusters.max()) + 1).index_add_(0, clusters, values)


def _freedom(trials: TrialUnits) -> int:
    """Return the degrees of freedom: those of the smaller kind."""
    units = [places if trials.clusters is None else trials.clusters[places].unique() for places in trials.kinds()]  # type: ignore[no-untyped-call]
    return max(1, min(map(len, units)) - 1)
