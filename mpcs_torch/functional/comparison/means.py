"""A mean over independent samples, or over clusters of them, with its interval."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.comparison.bounded_mean import bounded_mean_bound
from mpcs_torch.functional.detection.interval import clopper_pearson

CELLS = 128
"""Values that share one of so many cells of their range count as equal: Gaffke's interval takes time for each."""
MAX_DISTINCT = 64
"""Different values beyond which those near each other count as one: Gaffke's bound takes time for each."""
Interval = tuple[float, float]


class Mean(NamedTuple):
    """A mean over independent trials, or over clusters of them, by different values."""

    values: Tensor
    """(K,): of which the last two are the least and the largest possible one."""
    counts: Tensor
    """(K,): how many trials or clusters have each; 0 for the last two."""
    per: Tensor
    """(K,): 1 for a trial, the number of trials for a cluster, of which the values are sums."""
    is_rate: bool
    """Whether independent trials have the least or the largest value, and no other."""

    @property
    def value(self) -> float:
        """The mean."""
        return ((self.values @ self.counts) / (self.per @ self.counts)).item()

    def interval(self, confidence: float) -> Interval:
        """Return the interval, which stays within the possible values."""
        return self.end(0, confidence), self.end(1, confidence)

    def end(self, end: int, confidence: float) -> float:
        """Return the lower end (0) or the upper end (1) of the interval."""
        low, high = map(float, self.values[-2:] / self.per[-2:])
        if self.is_rate and high > low:
            trials = round(self.counts.sum().item())
            largest = round((self.value - low) / (high - low) * trials)
            return low + (high - low) * clopper_pearson(largest, trials, confidence=confidence)[end]
        bound = bounded_mean_bound(self.values, self.counts, per=self.per, confidence=confidence, is_upper=end == 1)
        return min(max(bound, low), high)


def rate_of(errors: int, trials: int, weight: float = 1.0) -> Mean:
    """Return the mean of the weight of a number of errors, in independent trials."""
    values = torch.tensor([0.0, weight] * 2, dtype=torch.float64)
    return Mean(values, values.new_tensor([trials - errors, errors, 0, 0]), torch.ones_like(values), is_rate=True)


def mean_of(values: Tensor, possible: Interval, clusters: Tensor | None) -> Mean:
    """Return the mean of the values (n,) of trials in clusters (n,), each within what is possible."""
    if clusters is None:
        return _mean_of_trials(values, possible)
    sums, sizes = (torch.zeros(int(clusters.max()) + 1, dtype=torch.float64) for _ in range(2))
    sums.index_add_(0, clusters, values)
    sizes.index_add_(0, clusters, torch.ones_like(values))
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    most = sizes.max().item()
    return mean_of_clusters(sums, sizes, [(most * end, most) for end in possible])


def mean_of_clusters(sums: Tensor, per: Tensor, ends: Sequence[tuple[float, float]]) -> Mean:
    """Return the mean of clusters with sums (n,) over sizes (n,), and the least and the largest such pair."""
    pairs, counts = distinct_pairs(torch.stack([sums, per], dim=1), torch.ones_like(sums))
    values, per = torch.cat([pairs, pairs.new_tensor(ends)]).unbind(1)
    return Mean(values, torch.cat([counts, counts.new_zeros(2)]), per, is_rate=False)


def _mean_of_trials(values: Tensor, possible: Interval) -> Mean:
    low, high = possible
    cells = ((values - low) * (CELLS / (high - low) if high > low else 0.0)).round().long()
    counts = cells.bincount(minlength=CELLS + 1).double()
    sums = cells.bincount(values, minlength=CELLS + 1)
    occurs = counts > 0
    different = torch.cat([sums[occurs] / counts[occurs], values.new_tensor(possible)])
    is_rate = bool(((values == low) | (values == high)).all())
    return Mean(different, torch.cat([counts[occurs], counts.new_zeros(2)]), torch.ones_like(different), is_rate)


def distinct_pairs(pairs: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Return different pairs (P, 2) of a numerator and a denominator, and how many bins have each (P,)."""
    different, counted = _counts_of(pairs, counts)
    if len(different) <= MAX_DISTINCT:
        return different, counted
    total = (different * counted.unsqueeze(1)).sum(0)
    rest = different[:, 0] - total[0] / total[1] * different[:, 1]
    order = rest.argsort()
    # The ends of the order have the most influence, and few rows far from the others must stay apart from them.
    ranks = (torch.linspace(-1, 1, len(order), dtype=torch.float64).atan() * MAX_DISTINCT / 3.2).round()
    values = rest[order] - rest.min()
    cells = (values * (MAX_DISTINCT / 2) / values.max()).floor()
    codes = torch.empty_like(order)
    codes[order] = (ranks * MAX_DISTINCT + cells).unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
    size = int(codes.max()) + 1
    joined = torch.zeros(size, dtype=torch.float64).index_add_(0, codes, counted)
    summed = torch.zeros(size, 2, dtype=torch.float64).index_add_(0, codes, different * counted.unsqueeze(1))
    return summed / joined.unsqueeze(1), joined


def _counts_of(pairs: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    least, (most, width) = pairs.min(), pairs.amax(dim=0).tolist()
    if least >= 0 and (most + 1) * (width + 1) < 2**20 and bool((pairs == pairs.round()).all()):  # without a sort
        codes = (pairs[:, 0] * (width + 1) + pairs[:, 1]).long()
        occurs = codes.bincount().nonzero().squeeze(1)
        counted = codes.bincount(counts)[occurs]
        return torch.stack([occurs // (width + 1), occurs % (width + 1)], dim=1).double(), counted
    different, places = pairs.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
    return different, torch.zeros(len(different), dtype=torch.float64).index_add_(0, places, counts)
