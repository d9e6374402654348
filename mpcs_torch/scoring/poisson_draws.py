"""The draws of a Poisson bootstrap: each unit has its own, whatever the order in which units are read."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

PARTS = 4
"""Draws from one hashed number of 64 bits: 16 bits each."""
MOST_DRAWN = 9
"""More draws of a unit have a probability of 1e-7, below what 16 bits tell apart."""


def poisson_draws(units: Tensor, resamples: int) -> Tensor:
    """Return how often each of R resamples draws each unit: a Poisson variable of mean 1 that the unit decides.

    The same unit has the same draws in every call, so that the rows of a cluster are drawn together wherever they lie,
    and nothing is held for it. Draws are those of SplitMix64, which hashes a counter.

    Args:
        units: ``(n,)``, int64, at least 0: codes of clusters, or numbers of rows.
        resamples: R, the number of resamples.

    Returns:
        ``(R, n)``, float64.

    References:
        Hanley, MacGibbon: Creating non-parametric bootstrap samples using Poisson frequencies, Computer Methods and
        Programs in Biomedicine 83, 2006. Steele, Lea, Flood: Fast splittable pseudorandom number generators, OOPSLA
        2014.
    """
    words = -(-resamples // PARTS)
    counter: Any = units.numpy().astype(np.uint64)[:, None] * np.uint64(words) + np.arange(
        1, words + 1, dtype=np.uint64
    )
    hashed = counter * np.uint64(0x9E3779B97F4A7C15)
    hashed = (hashed ^ (hashed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashed = (hashed ^ (hashed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashed ^= hashed >> np.uint64(31)
    drawn = _TABLE[hashed.view(np.uint16)[:, :resamples]]
    return torch.from_numpy(drawn.T.astype(np.float64))


def _table() -> "np.ndarray[tuple[int], np.dtype[np.int8]]":
    """Return the number of draws for each value of 16 bits, in proportion to its probability."""
    numbers = np.arange(MOST_DRAWN)
    probabilities = np.exp(-1) / np.cumprod(np.maximum(numbers, 1))
    bounds = np.round(65536 * np.cumsum(probabilities)).astype(np.int64)
    return np.searchsorted(bounds, np.arange(65536), side="right").astype(np.int8)


_TABLE = _table()
