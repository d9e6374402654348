"""Means and their intervals, over independent samples or clusters of samples."""

from collections.abc import Sequence
from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.comparison.confidence_intervals import (
    bounded_mean_bound,
    clopper_pearson,
)

CELLS = 128
"""The number of bins in which values are merged, because `bounded_mean_interval` is slow for many values."""
MAX_DISTINCT = 64
"""The approximate maximum number of distinct (sum, size) pairs of clusters; above it, close pairs are merged."""
Interval = tuple[float, float]


class Mean(NamedTuple):
    """A mean over independent trials or over clusters of trials, stored as distinct values and their counts."""

    values: Tensor
    """(K,): values of trials, or sums over clusters; the last two are the smallest and the largest possible value."""
    counts: Tensor
    """(K,): the number of trials or clusters with each value; 0 for the last two."""
    per: Tensor
    """(K,): the number of trials behind each value: 1 for a trial, or the size of a cluster."""
    is_rate: bool
    """Whether trials are independent, and their values are only the smallest or the largest possible value."""

    @property
    def value(self) -> float:
        """The mean."""
        return ((self.values @ self.counts) / (self.per @ self.counts)).item()

    def interval(self, confidence: float) -> Interval:
        """Return the bounds of the confidence interval of the mean, clipped to the range of possible values."""
        return self.end(0, confidence), self.end(1, confidence)

    def end(self, end: int, confidence: float) -> float:
        """Return the lower bound (if ``end`` is 0) or the upper bound (if it is 1) of the confidence interval."""
        low, high = map(float, self.values[-2:] / self.per[-2:])
        if self.is_rate and high > low:
            trials = round(self.counts.sum().item())
            largest = round((self.value - low) / (high - low) * trials)
            return low + (high - low) * clopper_pearson(largest, trials, confidence=confidence)[end]
        bound = bounded_mean_bound(self.values, self.counts, per=self.per, confidence=confidence, is_upper=end == 1)
        return min(max(bound, low), high)


def error_mean(errors: int, trials: int, weight: float = 1.0) -> Mean:
    """Return the mean over ``trials``, of which ``errors`` have the value ``weight`` and the others 0."""
    values = torch.tensor([0.0, weight] * 2, dtype=torch.float64)
    return Mean(values, values.new_tensor([trials - errors, errors, 0, 0]), torch.ones_like(values), is_rate=True)


def estimate_mean(values: Tensor, possible: Interval, clusters: Tensor | None) -> Mean:
    """Return the mean of ``values`` (n,) in the range ``possible``; ``clusters`` (n,) are their cluster numbers."""
    if clusters is not None:
        sizes = clusters.bincount().double()
        sums = clusters.bincount(values)[sizes > 0]
        sizes = sizes[sizes > 0]
        largest = sizes.max().item()
        return mean_of_clusters(sums, sizes, [(largest * end, largest) for end in possible])
    low, high = possible
    scale = CELLS / (high - low) if high > low else 0.0
    cell = ((values - low) * scale).round().long()
    counts = cell.bincount().double()
    sums = cell.bincount(values)
    occurs = counts > 0
    distinct = torch.cat([sums[occurs] / counts[occurs], values.new_tensor(possible)])
    is_rate = bool(((values == low) | (values == high)).all())
    return Mean(distinct, torch.cat([counts[occurs], counts.new_zeros(2)]), torch.ones_like(distinct), is_rate)


def mean_of_clusters(sums: Tensor, per: Tensor, ends: Sequence[tuple[float, float]]) -> Mean:
    """Return the mean from the sum of values and the size ``per`` of each of n clusters.

    ``ends`` are pairs (sum, size): of a cluster with the smallest possible mean, and of one with the largest.
    """
    pairs, counts = distinct_pairs(torch.stack([sums, per], dim=1), torch.ones_like(sums))
    values, per = torch.cat([pairs, pairs.new_tensor(ends)]).unbind(1)
    return Mean(values, torch.cat([counts, counts.new_zeros(2)]), per, is_rate=False)


def distinct_pairs(pairs: Tensor, counts: Tensor) -> tuple[Tensor, Tensor]:
    """Merge equal ``pairs`` (P, 2) of numerator and denominator, then close ones, until about 64 remain.

    Return the remaining pairs and, for each, the sum of the ``counts`` (P,) of the pairs merged into it.
    """
    distinct, index = pairs.unique(dim=0, return_inverse=True)  # type: ignore[no-untyped-call]
    counted = index.bincount(counts)
    if len(distinct) <= MAX_DISTINCT:
        return distinct, counted
    total = (distinct * counted.unsqueeze(1)).sum(0)
    rest = distinct[:, 0] - total[0] / total[1] * distinct[:, 1]
    order = rest.argsort()
    # Extremes have the most influence, and outliers must not be merged with other rows.
    ranks = (torch.linspace(-1, 1, len(order), dtype=torch.float64).atan() * MAX_DISTINCT / 3.2).round()
    middle = (rest.max() + rest.min()) / 2
    half = (rest.max() - rest.min()) / 2
    cells = ((rest[order] - middle) * (MAX_DISTINCT / 4) / half).round()  # the same for -rest
    codes = torch.empty_like(order)
    codes[order] = (ranks * MAX_DISTINCT + cells).unique(return_inverse=True)[1]
    merged = codes.bincount(counted)
    summed = torch.stack([codes.bincount(column * counted) for column in distinct.unbind(1)], dim=1)
    return summed / merged.unsqueeze(1), merged


def is_beyond_chance(deviation: float, variance: float, largest: float) -> bool:
    """Return whether ``deviation``, a sum of independent terms with mean 0, is too far from 0 to be chance.

    ``variance`` is that of the sum, and ``largest`` the highest absolute value of a term.

    References:
        Bernstein's inequality, as in Boucheron, Lugosi, Massart: Concentration Inequalities, 2013, Corollary 2.11.
    """
    rarity = log(2 / 1e-4)  # valid labels are refused with probability 1e-4 at most
    offset = largest * rarity / 3
    return bool(abs(deviation) > offset + (offset**2 + 2 * variance * rarity) ** 0.5)
