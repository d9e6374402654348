"""Limits on error rates, and the tests of whether samples keep them."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import ceil, expm1, floor, log, log10
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from mpcs_torch.errors import MpcsError

BETS = torch.arange(20, 0, -1, dtype=torch.float64).unsqueeze(1) / 20
"""(B, 1): the candidate bets of the test over clusters, each as a share of the largest valid bet."""
ENOUGH = 1 - 1e-12
"""The share of the required evidence that suffices: slightly below 1, because of rounding."""


@dataclass(eq=False, repr=False)
class UnattainableLimitError(MpcsError, ValueError):
    """The samples are too few to guarantee the limit at any threshold."""

    name: str
    limit: float
    samples: int
    lowest: float
    needed: int
    unit: str
    per_cluster: float | None
    calibrating: int = 0
    """The number of further samples that only calibrate the rule; ``needed`` includes such samples."""

    def __str__(self) -> str:
        condition = ""
        alternative = ""
        if self.per_cluster is not None:
            condition = " like these that have no error"
            alternative = f", or per cluster {_rounded_up(self.per_cluster):g} (also with one random row of each)"
        attainable = f"{_rounded_up(self.lowest):g}{alternative}"
        samples = f"{self.samples} {self.unit}"
        needed = f"{self.needed} {self.unit}{condition}"
        if self.calibrating:
            total = self.samples + self.calibrating
            samples = (
                f"{self.samples} of {total} {self.unit} (the rest calibrates the rule)"
            )
            needed += ", with those that calibrate it"
        return (
            f"{self.name} cannot be guaranteed by {samples}, except by referring all of them. "
            f"They can guarantee {attainable}. A limit of {self.limit:g} needs {needed}."
        )


class LimitedRate(NamedTuple):
    r"""A limit on an error rate, with the losses of the N samples of a calibration set.

    The rate is :math:`E[\sum L] / E[\sum D]` over new samples or new clusters (groups of dependent samples). L is the
    loss of a sample, 0 if it is referred; D is 1 if the denominator counts the sample, else 0. With ``per_cluster``,
    the rate is :math:`E[\sum L / \sum D]`, the mean of the clusters' rates.

    The test of the limit :math:`\alpha` on K clusters, with :math:`e_k` errors among :math:`m_k` samples, computes the
    wealth :math:`\prod_k (1 + \lambda (\alpha m_k - e_k))`. It passes if the wealth is at least :math:`1 / \delta`. If
    the rate exceeds :math:`\alpha`, the expected wealth is at most 1, so the test passes with a probability of at most
    :math:`\delta`. :math:`\lambda = b / ((1 - \alpha) M)`, where M is the largest cluster size; the bet b in (0, 1] is
    chosen on other clusters.

    References:
        Waudby-Smith, Ramdas: Estimating means of bounded random variables by betting, Journal of the Royal Statistical
        Society B 86(1), 2024; here with one bet for all clusters, so their order does not matter.
    """

    name: str
    """A description of the limit, for error messages."""
    at_most: float
    r"""The highest acceptable rate :math:`\alpha`, above 0 and below 1."""
    confidence: float | None
    r"""The probability :math:`1 - \delta` with which the limit is kept; None for a limit in expectation."""
    loss: Tensor
    """(N, K): the loss of each of K answers, at most 1 (with a ``confidence``, 0 or 1), by ascending cost."""
    counted: Tensor
    """(N, K), bool: whether the denominator has the sample (or this answer, if ``is_of_decided``)."""
    is_of_decided: bool = False
    """Whether the denominator excludes samples that are referred to a person."""
    clusters: Tensor | None = None
    """(N,), int64: the number of each sample's cluster; None if samples are independent."""
    unit: str = "samples"
    """The word for samples or clusters in error messages."""
    scale: float = 1.0
    """The factor by which error messages multiply ``at_most``."""
    per_cluster: bool = False
    """Whether the limit is on the mean of the error rates of clusters."""
    weights: Tensor | None = None
    """(N,): the inverse of each sample's probability to be kept from its cluster; None if all samples were kept."""
    largest: float = 1.0
    """The largest weighted cluster size M of the whole set, which a subset may lack; 1 with ``per_cluster``."""
    bets: Tensor = torch.ones(1)
    """(1,) or (steps,), in (0, 1]: the bet b at each step, chosen on other clusters."""

    def passes(self, decided_at: Tensor, steps: int) -> Tensor:
        """Return whether the test passes at each step: (steps,), bool; ``decided_at`` is described at `last_step`."""
        if self.confidence is None:
            # How far the errors are below those that the limit allows, (steps,).
            if self.clusters is None:
                allowed = self.at_most * self._samples(decided_at, steps)
                unused = allowed - self._errors(decided_at, steps)
            else:
                unused = self._over_clusters(
                    decided_at, steps, lambda errors, of: self.at_most * of - errors
                )
            # One more cluster, of the largest size, may be all errors (conformal risk control, theorem 1). A sum of
            # losses that meets the limit exactly must pass, whatever the rounding.
            return unused >= (1 - 1e-9 - self.at_most) * self.largest
        return self.p_values(decided_at, steps) <= (1 - self.confidence) * (1 + 1e-12)

    def p_values(
        self, decided_at: Tensor, steps: int, *, times: float | None = None
    ) -> Tensor:
        """Return the p-value at each step, (steps,): of a binomial test, or 1 / wealth if there are clusters.

        With ``times``, predict the p-values on a set ``times`` as large, as if this set had one more error.
        """
        from scipy.special import betaincc

        factor = 1.0 if times is None else times
        if self.clusters is not None:
            # Steps share a few distinct bets, so the wealth of each bet is computed once for all steps.
            grid, place = self.bets.unique(return_inverse=True)  # type: ignore[no-untyped-call]
            by_bet = self._over_clusters(
                decided_at, steps, partial(self.gain, grid.unsqueeze(1))
            )
            log_wealth = by_bet.gather(0, place.expand(1, steps))[0]
            error = 0 if times is None else -torch.log1p(-self.bets / (self.largest + 1e-9))
            return (factor * (error - log_wealth)).exp().clamp(max=1)
        extra = 0.0 if times is None else 1.0
        units = self._samples(decided_at, steps).numpy() * factor
        wrong = (self._errors(decided_at, steps).numpy() + extra) * factor
        wrong = np.round(wrong) if times is None else np.ceil(wrong - 1e-9)
        # The probability of at most so many errors, if the rate is the limit.
        rest = units - wrong
        p_values = betaincc(wrong + 1, np.maximum(rest, 1e-9), self.at_most)
        return torch.from_numpy(np.where(rest > 0, p_values, 1.0))

    def gain(self, bets: Tensor | float, errors: Tensor, of: Tensor) -> Tensor:
        """Return the log of each cluster's factor in the wealth, (B, K), for each of ``bets`` (B, 1).

        ``errors`` and ``of`` (K,) are the numbers of errors and of all samples of each cluster.
        """
        share = (self.at_most * of - errors) / ((1 - self.at_most) * self.largest)
        return (bets * share).clamp(min=1e-12 - 1).log1p()

    def bets_for(self, decided_at: Tensor, steps: int, times: float) -> Tensor:
        """Return the bet of `most_tolerant` at each step, (steps,), for a test on ``times`` as many clusters."""
        if self.clusters is None or self.confidence is None:
            return self.bets
        right = self._over_clusters(
            decided_at, steps, lambda _, of: self.gain(BETS, 0 * of, of)
        )
        wrong = self._over_clusters(
            decided_at, steps, lambda _, of: self.gain(BETS, of, of)
        )
        return self.most_tolerant(times * right, wrong)

    def most_tolerant(self, right: Tensor, wrong: Tensor) -> Tensor:
        """Return the bets (...), from ``BETS``, with which a test passes despite the most errors.

        ``right`` and ``wrong`` (B, ...) are the log wealth of each bet if all samples are right, and if all are wrong.
        """
        room = (right + log(1 - (self.confidence or 0))) / -wrong.clamp(max=-1e-300)
        return BETS[room.argmax(dim=0), 0]

    def over_all(self) -> "LimitedRate":
        """Return this limit with ``largest`` set to its largest cluster size; call this before `at` drops clusters."""
        if self.clusters is None:
            return self
        largest = max(self._replace(per_cluster=False)._sizes().tolist(), default=0)
        if self.weights is None and largest <= 1:
            return self._replace(clusters=None)
        return self._replace(largest=1.0 if self.per_cluster else max(1.0, largest))

    def at(self, places: Tensor) -> "LimitedRate":
        """Return the limit for the samples with the indices ``places``."""
        clusters = None if self.clusters is None else self.clusters[places]
        weights = None if self.weights is None else self.weights[places]
        return self._replace(
            loss=self.loss[places],
            counted=self.counted[places],
            clusters=clusters,
            weights=weights,
        )

    def check_attainable(self, like: "LimitedRate | None" = None) -> None:
        """Raise `UnattainableLimitError` if the samples are too few to guarantee the limit, even without errors.

        The error message states about how many clusters are needed if their sizes are those of ``like``, which is this
        limit on a larger set. Default: the sizes in this set.
        """
        sizes = self._sizes()
        units = len(sizes)
        of_all = (like or self)._sizes()
        if len(of_all) == 0:
            of_all = torch.ones(1, dtype=torch.float64)
        if self.attained(self.at_most, sizes) >= ENOUGH:
            return
        needed = self.fewest_units(of_all)
        low = 0.0
        high = 1.0
        for _ in range(60):
            middle = (low + high) / 2
            if self.attained(middle, sizes) >= ENOUGH:
                high = middle
            else:
                low = middle
        per_cluster = None
        is_over_clusters = self.clusters is not None and not self.per_cluster
        if is_over_clusters and self.confidence is not None and units:
            # The rate r for which (1 - r)^units is 1 - confidence.
            per_cluster = -expm1(log(1 - self.confidence) / units) * self.scale
        limit = self.at_most * self.scale
        lowest = high * self.scale
        raise UnattainableLimitError(
            self.name, limit, units, lowest, max(needed, units + 1), self.unit, per_cluster
        )

    def fewest_units(self, sizes: Tensor) -> int:
        """Return the fewest samples, or clusters of such ``sizes``, that can show the limit: if there is no error."""
        return ceil(len(sizes) / self.attained(self.at_most, sizes) - 1e-9)

    def attained(self, at_most: float, sizes: Tensor) -> float:
        """Return the evidence of error-free clusters of ``sizes`` (K,), divided by that needed for ``at_most``."""
        if self.confidence is None:
            return at_most * sizes.sum().item() / max(1e-300, (1 - at_most) * self.largest)
        rate = self._replace(at_most=at_most)
        log_wealth = rate.gain(1.0, torch.zeros_like(sizes), sizes).sum().item()
        return log_wealth / -log(1 - self.confidence)

    @property
    def units(self) -> int:
        """The number of samples, or clusters, that the limit counts."""
        return len(self._sizes())

    def _sizes(self) -> Tensor:
        """Return the weighted sizes (K,) of clusters with counted samples; all 1 if ``per_cluster`` or no clusters."""
        is_counted = self.counted.any(dim=1)
        if self.clusters is None:
            return is_counted[is_counted].double()
        weights = is_counted.double() if self.weights is None else self.weights * is_counted
        sizes = self.clusters.bincount(weights)
        sizes = sizes[sizes > 0]
        return torch.ones_like(sizes) if self.per_cluster else sizes

    def _errors(self, decided_at: Tensor, steps: int) -> Tensor:
        """Return the sum of the losses at each step: (steps,), float64."""
        begins, ends = _in_use(decided_at, steps)
        values = (self.loss.double() * self.counted).flatten()
        begun = _cumulated(begins.flatten(), values, steps)
        ended = _cumulated(ends.flatten(), values, steps)
        return begun - ended

    def _samples(self, decided_at: Tensor, steps: int) -> Tensor:
        """Return the number of samples in the denominator at each step: (steps,), float64."""
        if self.is_of_decided:
            return self._replace(loss=torch.ones_like(self.loss))._errors(decided_at, steps)
        return self.counted[:, 0].sum().double().expand(steps)

    def _over_clusters(
        self, decided_at: Tensor, steps: int, value: Callable[[Tensor, Tensor], Tensor]
    ) -> Tensor:
        """Return the sum over clusters of ``value(errors, samples)``, for each step: (..., steps)."""
        assert self.clusters is not None

        def value_of(sums: Tensor) -> Tensor:
            errors, samples = self.rates(sums[0], sums[1])
            return value(errors, samples)

        of = self.counted.double()
        if self.weights is not None:
            of = of * self.weights[:, None]
        # In this method, row 0 has errors, and row 1 samples. Before the first step, all samples are referred: there
        # are no errors, and no samples if only decided ones count.
        samples = self.clusters.bincount(of[:, 0])
        none = torch.zeros_like(samples)
        initial = torch.stack([none, none if self.is_of_decided else samples])
        cluster, step, change = self._changes_of_clusters(decided_at, steps, of)
        # The sums run over the clusters, one after the other, so what they were before a cluster is subtracted.
        running = change.cumsum(dim=1)
        first_place = torch.searchsorted(cluster, cluster)
        before_cluster = (running - change)[:, first_place]
        after = running + (initial[:, cluster] - before_cluster)
        gained = value_of(after) - value_of(after - change)
        at_first = value_of(initial).sum(dim=-1, keepdim=True)
        return at_first + _cumulated(step, gained, steps)

    def _changes_of_clusters(
        self, decided_at: Tensor, steps: int, of: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return how the errors and samples of clusters change, in the order of clusters, then of steps.

        Args:
            decided_at: As in `last_step`.
            steps: The number of steps.
            of: ``(N, A)``: the weight with which each sample counts if it gets each answer.

        Returns:
            The cluster and the step of each change, (n,) each; and the change of errors and of samples, (2, n).
        """
        assert self.clusters is not None
        errors = self.loss.double() * of
        samples = of if self.is_of_decided else torch.zeros_like(of)
        # An answer adds its errors and samples at the step that begins to use it, and takes them away at its end.
        begins, ends = _in_use(decided_at, steps)
        at = torch.cat([begins.flatten(), ends.flatten()])
        begun = torch.stack([errors, samples]).flatten(1)
        changes = torch.cat([begun, -begun], dim=1)
        cluster = self.clusters[:, None].expand(decided_at.shape).flatten().repeat(2)
        is_change = (at < steps) & (changes != 0).any(dim=0)
        # Several changes of a cluster at a step are one. A key stands for a cluster and a step.
        keys = cluster * steps + at
        distinct, place = keys[is_change].unique(return_inverse=True)  # type: ignore[no-untyped-call]
        change = torch.zeros(2, len(distinct), dtype=torch.float64)
        change.index_add_(1, place, changes[:, is_change])
        return distinct // steps, distinct % steps, change

    def rates(self, errors: Tensor, of: Tensor) -> tuple[Tensor, Tensor]:
        """Return ``errors`` and ``of`` unchanged or, if ``per_cluster``, each divided by ``of`` (0 / 0 gives 0)."""
        if not self.per_cluster:
            return errors, of
        counts = (of > 1e-9).double()
        return errors / of.clamp(min=1e-9) * counts, counts


def _in_use(decided_at: Tensor, steps: int) -> tuple[Tensor, Tensor]:
    """Return the first step that uses each answer, and that at which a cheaper one replaces it: (N, K) each.

    The two are equal for an answer that is never used.
    """
    # The first step at which any of the cheaper answers is allowed; the cheapest answer has none.
    cheaper = nn.functional.pad(decided_at, (1, 0), value=steps)[:, :-1]
    ends = cheaper.cummin(dim=1).values
    return torch.minimum(decided_at, ends), ends


def _cumulated(at: Tensor, values: Tensor, steps: int) -> Tensor:
    """Return, for each step, the sum of all ``values`` (..., n) whose step ``at`` (n,) is not later: (..., steps)."""
    sums = torch.zeros(*values.shape[:-1], steps + 1, dtype=torch.float64)
    return sums.index_add_(-1, at, values)[..., :steps].cumsum(-1)


def _rounded_up(value: float) -> float:
    """Round up to three significant digits."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return ceil(value / unit) * unit
