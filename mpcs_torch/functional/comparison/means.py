"""A mean over independent samples or clusters, with its interval."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.comparison.bounded_mean import bounded_mean_bound
from mpcs_torch.functional.comparison.clopper_pearson import clopper_pearson

CELLS = 128
"""The number of bins in which values of samples are merged, because Gaffke's interval is slow for many values."""
MAX_DISTINCT = 64
"""The number of distinct pairs above which close pairs are merged, for the same reason."""
Interval = tuple[float, float]


class Mean(NamedTuple):
    """A mean over independent trials or clusters, as a histogram of distinct values."""

    values: Tensor
    """(K,): the values of trials or sums of clusters; the last two are the smallest and the largest possible value."""
    counts: Tensor
    """(K,): the number of trials or clusters with each value; 0 for the last two."""
    per: Tensor
    """(K,): the number of trials behind each value: 1, or the size of the cluster."""
    is_rate: bool
    """Whether trials are independent and take only the smallest or the largest value."""

    @property
    def value(self) -> float:
        """The mean."""
        return ((self.values @ self.counts) / (self.per @ self.counts)).item()

    def interval(self, confidence: float) -> Interval:
        """Return the interval of the mean, clipped to the range of possible values."""
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
    """Return the mean over independent trials, of which ``errors`` have the value ``weight`` and the others 0."""
    values = torch.tensor([0.0, weight] * 2, dtype=torch.float64)
    return Mean(values, values.new_tensor([trials - errors, errors, 0, 0]), torch.ones_like(values), is_rate=True)


def mean_of(values: Tensor, possible: Interval, clusters: Tensor | None) -> Mean:
    """Return the mean of ``values`` (n,) of trials; ``possible`` is their range, ``clusters`` codes (n,) or None."""
    if clusters is None:
        return _mean_of_trials(values, possible)
    sums, sizes = (torch.zeros(int(clusters.max()) + 1, dtype=torch.float64) for _ in range(2))
    sums.index_add_(0, clusters, values)
    sizes.index_add_(0, clusters, torch.ones_like(values))
    sums, sizes = sums[sizes > 0], sizes[sizes > 0]
    largest = sizes.max().item()
    return mean_of_clusters(sums, sizes, [(largest * end, largest) for end in possible])


def mean_of_clusters(sums: Tensor, per: Tensor, ends: Sequence[tuple[float, float]]) -> Mean:
    """Return the mean over clusters from their ``sums`` and sizes ``per``, (n,); ``ends`` are the two extreme pairs."""
    pairs, counts = distinct_pairs(torch.stack([sums, per], dim=1), torch.ones_like(sums))
    values, per = torch.cat([pairs, pairs.new_tensor(ends)]).unbind(1)
    return Mean(values, torch.cat([counts, counts.new_zeros(2)]), per, is_rate=False)


def _mean_of_trials(values: Tensor, possible: Interval) -> Mean:
    low, high = possible
    cells = ((values - low) * (CELLS / (high - low) if high > low else 0.0)).round().long()
    counts = cells.bincount(minlength=CELLS + 1).double()
    sums = cells.bincount(values, minlength=CELLS + 1)
    occurs = counts > 0
    distinct = torch.cat([sums[occurs] / counts[occurs], values.new_tensor(possible)])
    is_rate = bool(((values == low) | (values == high)).all())
    return Mean(distinct, torch.cat([counts[occurs], counts.new_zeros(2)]), torch.ones_like(distinct), is_rate)


def distinct_pairs(pairs: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Merge pairs (P, 2) of numerator and denominator, with counts (P,), into at most about `MAX_DISTINCT` pairs."""
    distinct, index = pairs.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
    counted = torch.zeros(len(distinct), dtype=torch.float64).index_add_(0, index, counts)
    if len(distinct) <= MAX_DISTINCT:
        return distinct, counted
    total = (distinct * counted.unsqueeze(1)).sum(0)
    rest = distinct[:, 0] - total[0] / total[1] * distinct[:, 1]
    order = rest.argsort()
    # Extremes have the most influence, and outliers must not be merged with other rows.
    ranks = (torch.linspace(-1, 1, len(order), dtype=torch.float64).atan() * MAX_DISTINCT / 3.2).round()
    values = rest[order] - rest.min()
    cells = (values * (MAX_DISTINCT / 2) / values.max()).floor()
    codes = torch.empty_like(order)
    codes[order] = (ranks * MAX_DISTINCT + cells).unique(return_inverse=True)[1]
    size = int(codes.max()) + 1
    merged = torch.zeros(size, dtype=torch.float64).index_add_(0, codes, counted)
    summed = torch.zeros(size, 2, dtype=torch.float64).index_add_(0, codes, distinct * counted.unsqueeze(1))
    return summed / merged.unsqueeze(1), merged
