"""Tests of limits on rates of errors, of single samples or of clusters, at each step of a path of decisions."""

from collections.abc import Callable
from functools import partial
from math import ceil, expm1, floor, log, log10
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

BETS = torch.arange(20, 0, -1, dtype=torch.float64).unsqueeze(1) / 20
"""(B, 1): shares of the highest bet against a limit of clusters."""
ENOUGH = 1 - 1e-12
"""Of the evidence wanted, which may be met exactly."""


class UnattainableLimitError(ValueError):
    """A limit that so few samples cannot guarantee at any threshold."""

    def __init__(
        self, name: str, limit: float, samples: int, lowest: float, needed: int, unit: str, per_cluster: float | None
    ) -> None:
        super().__init__(name, limit, samples, lowest, needed, unit, per_cluster)
        self.name, self.limit, self.samples, self.lowest, self.needed = name, limit, samples, lowest, needed
        self.unit, self.per_cluster = unit, per_cluster

    def __str__(self) -> str:
        like, other = "", ""
        if self.per_cluster is not None:
            like = " like these, without an error"
            other = f" (per cluster, or by one row of each drawn at random, {_rounded_up(self.per_cluster):g})"
        return (
            f"{self.name} cannot be guaranteed by {self.samples} {self.unit}, unless all are referred: they can "
            f"guarantee {_rounded_up(self.lowest):g}{other}, and {self.limit:g} takes {self.needed} {self.unit}{like}."
        )


class LimitedRate(NamedTuple):
    r"""Errors that a limit counts, among samples that it counts them of.

    The limit is on the ratio :math:`E[\sum L] / E[\sum D]` over new samples, or over those of new clusters: L is the
    loss of a decided sample, and D is 1 for a sample that counts. Per cluster it is on the mean of the ratios of
    clusters, :math:`E[\sum L / \sum D]`, which does not depend on the size of the largest.

    Of K clusters with errors :math:`e_k` among :math:`m_k`, the test is a bet against the limit :math:`\alpha`: if it
    is broken, :math:`\prod_k (1 + \lambda (\alpha m_k - e_k))` has an expectation of at most 1, and exceeds
    :math:`1 / \delta` with a probability of at most :math:`\delta`. With M, the size of the largest cluster,
    :math:`\lambda = b / ((1 - \alpha) M)`, and the bet b in (0, 1] is fixed by other clusters.

    References:
        Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting, Journal of the Royal Statistical
        Society B 86(1), 2024; here with one bet for all clusters, so that their order does not matter.
    """

    name: str
    """The limit in words, for errors."""
    at_most: float
    r""":math:`\alpha`, above 0 and below the highest loss."""
    confidence: float | None
    r""":math:`1 - \delta`: the probability that the limit holds. None: it holds in expectation."""
    loss: Tensor
    """(N, K): the loss of each answer, the cheapest first; with a confidence 0 or 1."""
    counted: Tensor
    """(N, K), bool: the samples that count, or, of decided ones, the answers; losses of others are not limited."""
    is_of_decided: bool = False
    """Whether referred samples do not count."""
    clusters: Tensor | None = None
    """(N,), int64 codes: samples of different clusters are independent. None: all samples are."""
    highest_loss: float = 1.0
    unit: str = "samples"
    """The word for what must be many, for errors."""
    scale: float = 1.0
    """The unit of at_most, for errors."""
    per_cluster: bool = False
    """Whether each cluster counts alike, by its rate."""
    weights: Tensor | None = None
    """(N,): 1 by the chance with which each sample of a cluster was kept. None: all were."""
    largest: float = 1.0
    """M, the most samples that count of a cluster, also of those that are not among these; 1 per cluster."""
    bets: Tensor = torch.ones(1)
    """(1,) or (steps,), above 0 and at most 1: b at each step, fixed by other clusters."""

    def passes(self, decided_at: Tensor, steps: int) -> Tensor:
        """Return at which steps the test passes: (steps,), bool.

        Args:
            decided_at: ``(N, K)``, int64: the first step at which each answer is allowed; ``steps`` for never.
            steps: Their number.
        """
        if self.confidence is None:
            if self.clusters is None:
                unused = self.at_most * self._samples(decided_at, steps) - self._errors(decided_at, steps)
            else:  # (steps,)
                unused = self._over_clusters(decided_at, steps, lambda errors, of: self.at_most * of - errors)
            # A sum of losses that meets the limit exactly must not break it by rounding.
            return unused >= (self.highest_loss * (1 - 1e-9) - self.at_most) * self.largest
        return self.p_values(decided_at, steps) <= (1 - self.confidence) * (1 + 1e-12)

    def p_values(self, decided_at: Tensor, steps: int, *, times: float | None = None) -> Tensor:
        """Return the p-values of the limit at each step, binomial for single samples, else 1 by the gain of the bets.

        Args:
            decided_at: As in `passes`.
            steps: As in `passes`.
            times: To foresee those of other samples: how many times as many there are, with one more error here.
        """
        from scipy.special import betaincc

        foreseen = 1.0 if times is None else times
        if self.clusters is not None:
            grid, place = self.bets.unique(return_inverse=True)  # type: ignore[no-untyped-call]
            gains = self._over_clusters(decided_at, steps, partial(self.gain, grid.unsqueeze(1)))
            error = 0 if times is None else -torch.log1p(-self.bets / (self.largest + 1e-9))
            return (foreseen * (error - gains.gather(0, place.expand(1, steps))[0])).exp().clamp(max=1)
        more = 0.0 if times is None else 1.0
        units = self._samples(decided_at, steps).numpy() * foreseen
        wrong = (self._errors(decided_at, steps).numpy() + more) * foreseen
        wrong = np.round(wrong) if times is None else np.ceil(wrong - 1e-9)
        rest = units - wrong
        return torch.from_numpy(np.where(rest > 0, betaincc(wrong + 1, np.maximum(rest, 1e-9), self.at_most), 1.0))

    def gain(self, bets: Tensor | float, errors: Tensor, of: Tensor) -> Tensor:
        """Return the logarithm of what bets b (B, 1) gain by the errors of clusters (K,) and what counts: (B, K)."""
        share = (self.at_most * of - errors) / ((1 - self.at_most) * self.largest)
        return (bets * share).clamp(min=1e-12 - 1).log1p()

    def bets_for(self, decided_at: Tensor, steps: int, times: float) -> Tensor:
        """Return the bets (steps,) for other clusters, ``times`` as many, with room for the most errors.

        Only the sizes of these clusters matter.
        """
        if self.clusters is None or self.confidence is None:
            return self.bets
        right = self._over_clusters(decided_at, steps, lambda _, of: self.gain(BETS, 0 * of, of))
        wrong = self._over_clusters(decided_at, steps, lambda _, of: self.gain(BETS, of, of))
        return self.roomiest(times * right, wrong)

    def roomiest(self, right: Tensor, wrong: Tensor) -> Tensor:
        """Return the bets with room for the most errors, by the gains of `BETS` if all is right or wrong, (B, ...)."""
        room = (right + log(1 - (self.confidence or 0))) / -wrong.clamp(max=-1e-300)
        return BETS[room.argmax(dim=0), 0]

    def over_all(self) -> "LimitedRate":
        """Return the limit with the size of the largest of these clusters, which its parts may not have."""
        if self.clusters is None:
            return self
        largest = max(self._replace(per_cluster=False)._sizes().tolist(), default=0)
        if self.weights is None and largest <= 1:
            return self._replace(clusters=None)
        return self._replace(largest=1.0 if self.per_cluster else max(1.0, largest))

    def at(self, places: Tensor) -> "LimitedRate":
        """Return the limit of some of the samples."""
        clusters, weights = (None if each is None else each[places] for each in (self.clusters, self.weights))
        return self._replace(loss=self.loss[places], counted=self.counted[places], clusters=clusters, weights=weights)

    def check_attainable(self, like: "LimitedRate | None" = None) -> None:
        """Refuse a limit that so few samples or clusters cannot guarantee, even if no decision is wrong.

        Args:
            like: More clusters of the same kind, by which to say how many it takes. Default: these.

        Raises:
            UnattainableLimitError: If it cannot be guaranteed without referring all samples that count.
        """
        sizes, of_all = self._sizes(), (like or self)._sizes()
        units, of_all = len(sizes), of_all if len(of_all) else torch.ones(1, dtype=torch.float64)
        if self.attained(self.at_most, sizes) >= ENOUGH:
            return
        needed = ceil(len(of_all) / self.attained(self.at_most, of_all) - 1e-9)
        low, high = 0.0, self.highest_loss
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if self.attained(middle, sizes) >= ENOUGH else (middle, high)
        is_over_clusters = self.clusters is not None and not self.per_cluster and self.confidence is not None and units
        per_cluster = -expm1(log(1 - (self.confidence or 0)) / units) * self.scale if is_over_clusters else None
        limit, lowest = self.at_most * self.scale, high * self.scale
        raise UnattainableLimitError(self.name, limit, units, lowest, max(needed, units + 1), self.unit, per_cluster)

    def attained(self, at_most: float, sizes: Tensor) -> float:
        """Return the share of the evidence wanted for a limit that clusters of sizes (K,) give without an error."""
        if self.confidence is None:
            return at_most * sizes.sum().item() / max(1e-300, (self.highest_loss - at_most) * self.largest)
        asked = self._replace(at_most=at_most)
        return asked.gain(1.0, torch.zeros_like(sizes), sizes).sum().item() / -log(1 - self.confidence)

    def _sizes(self) -> Tensor:
        """Return how many samples count of each cluster that has any, or 1 for each sample or per cluster: float64."""
        is_counted = self.counted.any(dim=1)
        if self.clusters is None:
            return is_counted[is_counted].double()
        weights = is_counted.double() if self.weights is None else self.weights * is_counted
        sizes = self.clusters.bincount(weights)
        return sizes[sizes > 0] ** (not self.per_cluster)

    def _errors(self, decided_at: Tensor, steps: int) -> Tensor:
        """Return the sum of losses at each step: (steps,), float64."""
        begun, replaced = _in_use(decided_at, steps)
        values = (self.loss.double() * self.counted).flatten()
        return _up_to(begun.flatten(), values, steps) - _up_to(replaced.flatten(), values, steps)

    def _samples(self, decided_at: Tensor, steps: int) -> Tensor:
        """Return the number of samples that count at each step: (steps,), float64."""
        if self.is_of_decided:
            return self._replace(loss=torch.ones_like(self.loss))._errors(decided_at, steps)
        return self.counted[:, 0].sum().double().expand(steps)

    def _over_clusters(self, decided_at: Tensor, steps: int, value: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """Return the sums over clusters, at each step, of a value of their errors and of what counts: (..., steps).

        A cluster changes at few steps: a sum is that before the first step, and the changes up to each.
        """
        assert self.clusters is not None
        of = self.counted.double() * (1 if self.weights is None else self.weights[:, None])
        begins = torch.stack([0 * of[:, 0], of[:, 0] * (not self.is_of_decided)])
        begins = torch.stack([self.clusters.bincount(each) for each in begins])
        change = torch.stack([self.loss.double() * of, of * self.is_of_decided]).flatten(1)
        at, change = torch.cat([each.flatten() for each in _in_use(decided_at, steps)]), torch.cat([change, -change], 1)
        cluster = self.clusters[:, None].expand(decided_at.shape).flatten().repeat(2)
        is_change = (at < steps) & (change != 0).any(dim=0)
        key, place = (cluster * steps + at)[is_change].unique(return_inverse=True)  # type: ignore[no-untyped-call]
        change = torch.zeros(2, len(key), dtype=torch.float64).index_add_(1, place, change[:, is_change])
        cluster, after = key // steps, change.cumsum(dim=1)
        after += begins[:, cluster] - (after - change)[:, torch.searchsorted(key, cluster * steps)]
        first, low, high = (value(*self.rates(*each)) for each in (begins, after - change, after))
        return first.sum(dim=-1, keepdim=True) + _up_to(key % steps, high - low, steps)

    def rates(self, errors: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
        """Return the errors of clusters and what counts as they are; per cluster, the rate, and 1 if any sample counts.

        Both have one shape.
        """
        counts = (of > 1e-9).double()
        return (errors / of.clamp(min=1e-9) * counts, counts) if self.per_cluster else (errors, of)


def _in_use(decided_at: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Return from which step on samples get each answer, and at which step a cheaper one replaces it: (N, K) each."""
    replaced = nn.functional.pad(decided_at, (1, 0), value=steps).cummin(dim=1).values[:, :-1]
    return torch.minimum(decided_at, replaced), replaced


def _up_to(decided_at: Tensor, values: Tensor, steps: int) -> Tensor:
    """Return the sums of values (..., n) that are decided up to each step: (..., steps), float64."""
    sums = torch.zeros(*values.shape[:-1], steps + 1, dtype=torch.float64)
    return sums.index_add_(-1, decided_at, values)[..., :steps].cumsum(-1)


def _rounded_up(value: float) -> float:
    """Return the value with three digits, not below it."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return ceil(value / unit) * unit
