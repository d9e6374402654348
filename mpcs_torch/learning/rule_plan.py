"""Plan the number of samples that a limit takes, before they are collected."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, prod

import numpy as np
import torch
from numpy.typing import NDArray

from mpcs_torch.errors import require
from mpcs_torch.functional.concern.risk_control import LimitedRate
from mpcs_torch.learning.rule_limit import REFERRALS, SAMPLES, Limit
from mpcs_torch.learning.rule_samples import calibration_units, given_units

Array = NDArray[np.float64]
FIRST, MOST = 2**10, 2**17
"""Of the numbers of samples that count, the first and the highest to look at."""


@dataclass(frozen=True)
class LimitPlan:
    """The numbers of samples that a limit takes, as `plan_limit` returns them; of clusters where samples have them."""

    limit: Limit
    given: int
    """To collect: those that judge, and the fifth that calibrates."""
    counted: tuple[int, ...]
    """Of those given, the expected number that counts in each group, such as the samples of the class."""
    judging: int
    """Of those given, the number that judges."""
    fewest: int
    """With fewer that count and judge (of a group), the limit is refused even without an error."""
    cluster_size: int
    shares: tuple[float, ...] = field(repr=False)
    """The share of those given that counts, of each group."""
    chances: Array = field(repr=False, compare=False)
    """The chance that a group attains the limit if 0, 1, 2, ... of it count and judge."""

    def chance_with(self, given: int) -> float:
        """Return the chance to decide all samples under the limit with another number in all."""
        return _chance(self.chances, given - calibration_units(given), self.shares) if given > 1 else 0.0

    def __str__(self) -> str:
        """Say what to collect."""
        is_single, of = self.cluster_size == 1, self.limit.of
        parts = [f"{self.given:_} " + ("samples" if is_single else f"clusters of {self.cluster_size} samples")]
        if of != SAMPLES:
            parts.append(f"{sum(self.counted):_} of them {of if is_single else f'with {of} samples'}")
        if self.limit.by is not None:
            parts.append(f"{min(self.counted):_} of these of the rarest {self.limit.by}")
        return f"Collect {', '.join(parts)}.".replace("_", " ")


def plan_limit(
    limit: Limit,
    expected: float,
    *,
    chance: float = 0.9,
    share: float = 1.0,
    group_shares: Sequence[float] = (1.0,),
    cluster_size: int = 1,
    shared: float = 0.0,
) -> LimitPlan:
    r"""Compute how many validation samples a `DecisionRule` needs to keep a limit without referring any.

    Of n samples that count, at most :math:`k_n` may be errors, the most with which the test of the limit passes. If
    each is an error with probability p, the chance of that is :math:`P[\mathrm{Bin}(n, p) \le k_n]`, a saw tooth in n:
    the plan is the smallest n from which on it is kept. Samples in clusters of m with correlation :math:`\rho` count as
    mn / d independent ones, :math:`d = 1 + (m - 1) \rho`. How many of those given count is a matter of chance, too.

    The chance is that of the last test, of all samples. A limit of decided samples, or one of several limits, must pass
    tests before it, too, and is attained more rarely.

    Args:
        limit: The limit; not of costs.
        expected: p, the rate of errors of the model among the samples that count, at least 0 and below the limit. If
            some samples may be referred: the rate that is left.
        chance: The chance wanted, above 0 and below 1.
        share: The share of samples that count: those of the class, or those decided. With clusters, the share of
            clusters that hold any.
        group_shares: The share of each group, for a limit ``by`` a column; all of them must keep it.
        cluster_size: m, how many samples of a cluster count.
        shared: :math:`\rho`, from 0 to 1: the intracluster correlation of errors.

    Raises:
        ValueError: If an argument breaks its rule, or if it takes more than about 100 000 samples that count.

    References:
        Kish: Survey sampling, 1965, Section 5.4 (the design effect d).

    Example:
        >>> plan = plan_limit(Limit(0.01, of="malignant"), 0.003, share=0.05)
        >>> print(plan)
        Collect 29 800 samples, 1 490 of them malignant.
        >>> plan.fewest  # without an error
        299
    """
    group_shares = tuple(group_shares)
    _check(limit, expected, chance, share, group_shares, cluster_size, shared)
    shares = tuple(share * of_group for of_group in group_shares)
    # Numbers far beyond the plan count as the highest one, which must hardly ever fail.
    enough, most = 1 - 0.1 * (1 - chance) / len(shares), max(4, FIRST // cluster_size)
    while (chances := _chances(limit, expected, most, cluster_size, shared))[-(most // 4) :].min() < enough:
        most *= 2
        if most * cluster_size > MOST:
            rule = f"expected must be so far below the limit that {MOST} samples that count are enough"
            raise ValueError(f"{rule}, but got {expected:g} for '{limit}'.")
    judging = ceil((1 + np.flatnonzero(chances < chance)[-1]) / min(shares))
    step = int(1 / min(shares))
    while _chance(chances, judging, shares) < chance:
        judging += step
    while _chance(chances, judging - step, shares) >= chance:
        judging -= step
    given, fewest = given_units(judging), int(np.flatnonzero(chances)[0])
    counted = tuple(round(given * of_group) for of_group in shares)
    return LimitPlan(limit, given, counted, judging, fewest, cluster_size, shares, chances)


def _most_errors(limit: Limit, most: int, size: int) -> Array:
    """Return the most errors that pass the test among 1, 2, ... clusters of some samples; -1 if none does."""
    cluster, every = torch.arange(most).repeat_interleave(size), torch.ones(most * size, dtype=torch.bool)
    loss, clusters = every.double(), None if size == 1 else cluster
    losses, counted = loss[:, None], every[:, None]
    rate = LimitedRate(
        str(limit), limit.at_most, limit.confidence, losses, counted, is_of_decided=True, clusters=clusters
    )
    samples = torch.arange(1, most + 1) * size
    passing, failing = torch.full((most,), -1), samples
    if limit.confidence is None or limit.confidence > 0.5:  # then a rate above the limit fails
        failing = (limit.at_most * samples).long() + 1
    while (failing - passing > 1).any():
        errors = (passing + failing) // 2
        # Each step decides one cluster more, whose losses make up the errors to test at that step.
        loss[:] = errors.diff(prepend=errors.new_zeros(1)).repeat_interleave(size).double() / size
        is_passing = rate.passes(cluster[:, None], most)
        passing, failing = torch.where(is_passing, errors, passing), torch.where(is_passing, failing, errors)
    return passing.double().numpy()


def _chances(limit: Limit, expected: float, most: int, size: int, shared: float) -> Array:
    """Return the chance to pass the test with 0, 1, 2, ... clusters of some samples: (most + 1,)."""
    from scipy.special import betaincc

    errors, alike = _most_errors(limit, most, size), 1 + (size - 1) * shared
    wrong = np.maximum((errors + 0.5) / alike - 0.5, 0)
    right = np.arange(1, most + 1) * size / alike - wrong
    chances = np.where(right > 0, betaincc(wrong + 1, np.maximum(right, 1e-9), expected), 1.0)
    return np.concatenate([[0.0], np.where(errors >= 0, chances, 0.0)])


def _chance(chances: Array, judging: int, shares: Sequence[float]) -> float:
    """Return the chance that all groups pass, if what counts of each is drawn with its share from those that judge."""
    from scipy.stats import binom

    def of_group(share: float) -> float:
        middle, width = judging * share, 8 * (judging * share * (1 - share)) ** 0.5 + 1
        numbers = np.arange(max(0, int(middle - width)), int(middle + width) + 1)
        return float(binom.pmf(numbers, judging, share) @ chances[numbers.clip(max=len(chances) - 1)])

    return prod(map(of_group, shares))


def _check(
    limit: Limit, expected: float, chance: float, share: float, group_shares: Sequence[float], size: int, shared: float
) -> None:
    of_groups = "be left out" if limit.by is None else "be given"
    below = f"below the limit {limit.at_most:g} (with more errors, samples must be referred: expect the rate left then)"
    is_whole = abs(sum(group_shares) - 1) < 1e-3
    require(limit.errors not in ("cost", REFERRALS), "limit must be on a rate of errors", f"'{limit}'")
    require(0 <= expected < limit.at_most, f"expected must be at least 0 and {below}", expected)
    require(0 < chance < 1, "chance must be above 0 and below 1", chance)
    require(0 < share <= 1, "share must be above 0 and at most 1", share)
    require(limit.of != SAMPLES or share == 1, "share must be 1 for a limit of all samples", share)
    is_fitting = (limit.by is None) == (group_shares == (1.0,))
    require(is_fitting, f"group_shares must {of_groups} for '{limit}'", group_shares)
    require(is_whole and min(group_shares) > 0, "group_shares must be above 0 and add up to 1", group_shares)
    require(size >= 1, "cluster_size must be at least 1", size)
    require(0 <= shared <= 1, "shared must be from 0 to 1", shared)
