"""Bootstrap resamples of a data set: how often each sample is drawn."""

from collections.abc import Iterator

import torch
from torch import Tensor

BATCH = 2**20
"""Draws that are held at once: 8 MiB, which processors still cache in part."""
DRAWN_AGAIN = 0.1
"""The share of resamples that may be drawn again: beyond it, the clusters are too few to judge their spread by."""


class TooFewSamplesError(ValueError):
    """There are too few samples, or too few clusters of them, to judge their spread by."""


class Resamples:
    """Draw bootstrap resamples of samples, or of whole clusters of them.

    Iterating gives batches of int64 weights ``(R, N)``: how often each resample draws each sample. Each iteration gives
    the same resamples, so that systems and statistics are compared on the same ones.

    Without clusters, samples are assumed to be independent, and as many samples of each stratum are drawn with
    replacement as it holds: pass the labels of trials as strata to keep the numbers of targets and of non-targets. With
    clusters, clusters are assumed to be independent, and as many whole clusters are drawn with replacement as there
    are: pass the speaker of each trial, or the patient of each image. The number of samples of a resample then varies,
    and so does that of each stratum. A resample that holds no sample of a stratum is drawn again; ``drawn_again`` is
    the number of these. Each sample is in one cluster: trials that share one speaker with some trials and another
    speaker with others need the coarser clusters that join both.

    Args:
        size: N, the number of samples.
        number: The number of resamples, at least 1.
        strata: ``(N,)`` integer or bool codes, such as labels. Default: all samples are in one stratum.
        clusters: ``(N,)`` integer codes of the clusters. Default: samples are drawn one by one.
        seed: The seed of the draws, which are the same on every device.

    Raises:
        ValueError: If an argument breaks its rule.
        TooFewSamplesError: If fewer than 2 samples, or clusters, are of some stratum. Iterating raises it if more than
            a tenth of the resamples must be drawn again.

    References:
        Efron, Tibshirani: An Introduction to the Bootstrap, 1993. Field, Welsh: Bootstrapping clustered data, Journal
        of the Royal Statistical Society B 69, 2007 (the cluster bootstrap).

    Example:
        >>> for weights in Resamples(4, number=2, clusters=torch.tensor([7, 7, 8, 8])):
        ...     print(weights.shape, bool((weights[:, 0] == weights[:, 1]).all()))
        torch.Size([2, 4]) True
    """

    def __init__(
        self,
        size: int,
        *,
        number: int = 1000,
        strata: Tensor | None = None,
        clusters: Tensor | None = None,
        seed: int = 0,
    ) -> None:
        if number < 1:
            raise ValueError(f"number must be at least 1, but got {number}.")
        self.size, self.number, self.drawn_again, self._seed = size, number, 0, seed
        codes = torch.zeros(size, dtype=torch.int64) if strata is None else _codes("strata", strata, size)
        self._strata = [(codes == code).nonzero().squeeze(1) for code in range(int(codes.amax()) + 1 if size else 0)]
        self._clusters = None if clusters is None else _codes("clusters", clusters, size)
        self._independent = self._count_independent()

    @property
    def independent(self) -> int:
        """The number of independent samples of the smallest stratum, or of clusters that hold samples of it."""
        return self._independent

    @property
    def is_clustered(self) -> bool:
        """Whether whole clusters are drawn."""
        return self._clusters is not None

    def __iter__(self) -> Iterator[Tensor]:
        generator = torch.Generator().manual_seed(self._seed)
        self.drawn_again, left = 0, self.number
        while left:
            weights = self._draw(min(left, max(1, BATCH // self.size)), generator)
            if self._clusters is not None:
                weights = self._complete(weights)
            if len(weights):
                yield weights
            left -= len(weights)

    def _draw(self, rows: int, generator: torch.Generator) -> Tensor:
        if self._clusters is not None:
            return _draw(int(self._clusters.amax()) + 1, rows, generator).index_select(1, self._clusters)
        if len(self._strata) == 1:
            return _draw(self.size, rows, generator)
        weights = torch.empty(rows, self.size, dtype=torch.int64)
        for members in self._strata:
            weights.index_copy_(1, members, _draw(len(members), rows, generator))
        return weights

    def _complete(self, weights: Tensor) -> Tensor:
        """Leave out resamples without a sample of some stratum."""
        held = torch.stack([weights[:, members].any(1) for members in self._strata]).all(0)
        self.drawn_again += int((~held).sum())
        if self.drawn_again > max(10, DRAWN_AGAIN * self.number):
            raise TooFewSamplesError(
                "clusters must be enough for resamples that hold every stratum (such as targets and non-targets), but "
                f"more than {100 * DRAWN_AGAIN:g} % of the resamples of clusters lack one."
            )
        return weights if held.all() else weights[held]

    def _count_independent(self) -> int:
        if self._clusters is None:
            units, numbers = "samples", [len(members) for members in self._strata]
        else:
            units, numbers = "clusters", [len(self._clusters[members].unique()) for members in self._strata]  # type: ignore[no-untyped-call]
        number = min(numbers, default=0)
        if number < 2:
            raise TooFewSamplesError(f"a bootstrap needs at least 2 {units} of each stratum, but got {number}.")
        return number


def _codes(name: str, given: Tensor, size: int) -> Tensor:
    """Return codes from 0 on, without gaps."""
    if given.is_floating_point() or given.is_complex() or given.shape != (size,):
        rule = f"{name} must be integer codes of shape ({size},)"
        raise ValueError(f"{rule}, but got {given.dtype} {tuple(given.shape)}.")
    codes: Tensor = given.cpu().unique(return_inverse=True)[1]  # type: ignore[no-untyped-call]
    return codes


def _draw(size: int, rows: int, generator: torch.Generator) -> Tensor:
    """Draw as many of ``size`` units with replacement, and count how often each was drawn: int64 (rows, size)."""
    drawn = torch.randint(size, (rows, size), generator=generator)
    drawn += size * torch.arange(rows).unsqueeze(1)
    return drawn.flatten().bincount(minlength=rows * size).view(rows, size)
