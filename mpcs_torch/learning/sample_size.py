"""Plan how many samples to collect so that a `DecisionRule` can meet a limit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, log, prod

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.concern.limits import BETS, LimitedRate
from mpcs_torch.functional.inputs.confidence import check_confidence
from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1
from mpcs_torch.learning.rule_fit import calibration_units, total_units
from mpcs_torch.learning.rule_limit import CLUSTER, REFERRALS, SAMPLES, Limit

Array = NDArray[np.float64]
START, MAX_SAMPLES = 2**10, 2**17
"""The start and the upper bound of the search for a number of counted samples."""
SIMULATIONS, BATCH, TINY = 2000, 100, 1e-6
"""The number of simulations for clusters, the number of them at once in memory, and a bound for Beta parameters."""


@dataclass(frozen=True)
class LimitPlan:
    """The number of samples, or of clusters, that a limit needs: the result of `plan_limit`."""

    limit: Limit
    given: int
    """The number of samples or clusters to collect, including the fifth that fits the calibration."""
    counted: tuple[int, ...]
    """The expected number, in each group, of samples or clusters that the limit counts, such as those of its class."""
    judging: int
    """The number of samples or clusters that choose the threshold: ``given`` without the fifth for calibration."""
    fewest: int
    """The minimum number of counted samples or clusters, in each group, that can guarantee the limit without errors."""
    cluster_sizes: tuple[int, ...]
    shares: tuple[float, ...] = field(repr=False)
    """The share of samples that count, for each group."""
    chances: Array = field(repr=False, compare=False)
    """The chances that a group meets the limit with 0, 1, 2, ... counted samples or clusters."""

    def chance_with(self, given: int) -> float:
        """Return the chance to decide all samples under the limit if ``given`` samples or clusters are collected."""
        return _chance(self.chances, given - calibration_units(given), self.shares) if given > 1 else 0.0

    def __str__(self) -> str:
        low, high, of = min(self.cluster_sizes), max(self.cluster_sizes), self.limit.of
        is_single, sizes = high == 1, f"{high}" if low == high else f"{low} to {high}"
        parts = [f"{self.given:_} " + ("samples" if is_single else f"clusters of {sizes} samples")]
        if of != SAMPLES:
            parts.append(f"{sum(self.counted):_} of them {of if is_single else f'with {of} samples'}")
        if self.limit.by is not None:
            parts.append(f"{min(self.counted):_} of these of the rarest {self.limit.by}")
        least = "at least " if self.limit.is_of_decided else ""  # the tests with few decided samples must pass, too
        return f"Collect {least}{', '.join(parts)}.".replace("_", " ")


def plan_limit(
    limit: Limit,
    expected: float,
    *,
    chance: float = 0.9,
    share: float = 1.0,
    group_shares: Sequence[float] = (1.0,),
    cluster_size: int | Sequence[int] = 1,
    shared: float = 0.0,
) -> LimitPlan:
    r"""Compute how many validation samples a `DecisionRule` needs to meet a limit without referring any sample.

    A sample is counted if the limit is about its class or decision. With n counted samples, the test of the limit
    passes if there are at most :math:`k_n` errors. If each counted sample is an error with probability p, the chance to
    pass is :math:`P[\mathrm{Bin}(n, p) \le k_n]`. The chance goes up and down as n grows, so the plan is the smallest
    n such that the chance is sufficient for n and all higher numbers. For clusters, tests are simulated; the error
    rates of clusters are drawn from a Beta distribution.

    The chance is that of one test, with all samples decided. A limit on decided samples, or one of several limits, must
    pass other tests first, so its chance is lower.

    Args:
        limit: The limit. It must not be on costs or referrals.
        expected: p, the error rate of the model among the counted samples, at least 0 and below the limit. If some
            samples may be referred, p is the rate among the other samples.
        chance: The required chance that the test passes, above 0 and below 1.
        share: The share of samples that are counted, such as the share of the limit's class. For clusters, the share of
            clusters with counted samples.
        group_shares: If the limit is ``by`` a column, the share of each group; the limit must then hold in all groups.
        cluster_size: The number of counted samples per cluster, or a list of such numbers, all equally frequent.
        shared: :math:`\rho`, from 0 to 1: the intracluster correlation of errors.

    Raises:
        ValueError: If an argument is invalid, or if more than about 100 000 counted samples are needed.

    Example:
        >>> plan = plan_limit(Limit(0.01, of="malignant"), 0.003, share=0.05)
        >>> print(plan)
        Collect 29 800 samples, 1 490 of them malignant.
        >>> plan.fewest  # if there is no error
        299
    """
    group_shares = tuple(group_shares)
    sizes = torch.as_tensor(cluster_size).double().reshape(-1)
    _check(limit, expected, chance, share, group_shares, sizes, shared)
    shares, is_single, empty = tuple(share * of_group for of_group in group_shares), sizes.max() == 1, torch.empty(0, 1)
    largest = 1.0 if limit.per == CLUSTER else float(sizes.max())
    rate = LimitedRate(
        str(limit), limit.at_most, limit.confidence, empty, empty, per_cluster=limit.per == CLUSTER, largest=largest
    )
    fewest = ceil(len(sizes) / rate.attained(limit.at_most, rate.rates(sizes, sizes)[1]) - 1e-9)
    # The chance of the highest number also stands for all higher numbers, so it must be nearly 1.
    enough, most = 1 - 0.1 * (1 - chance) / len(shares), max(4, START if is_single else 2 * fewest)
    while (chances := _chances(rate, expected, most, sizes, shared))[-(most // 4) :].min() < enough:
        most *= 2
        if most * sizes.mean() > MAX_SAMPLES:
            rule = f"expected must be far enough below the limit to need at most {MAX_SAMPLES} counted samples"
            raise ValueError(f"{rule}, but got {expected:g} for '{limit}'.")
    judging = ceil((1 + np.flatnonzero(chances < chance)[-1]) / min(shares))
    step = int(1 / min(shares))
    while _chance(chances, judging, shares) < chance:
        judging += step
    while _chance(chances, judging - step, shares) >= chance:
        judging -= step
    given = total_units(judging)
    counted, of = tuple(round(given * of_group) for of_group in shares), tuple(map(int, sizes.tolist()))
    return LimitPlan(limit, given, counted, judging, fewest, of, shares, chances)


def _chances(rate: LimitedRate, expected: float, most: int, sizes: Tensor, shared: float) -> Array:
    """Return, for each n from 0 to ``most``, the chance that the test passes if n samples or clusters are counted.

    A sample is counted if the limit is about its class or decision; a cluster, if it has such samples.
    """
    from scipy.stats import binom

    numbers = np.arange(1, most + 1)
    if sizes.max() > 1:
        chances = _simulated(rate, expected, torch.from_numpy(numbers), sizes, shared)
    elif rate.confidence is None:
        chances = binom.cdf(np.floor(rate.at_most * (numbers + 1) - 1 + 1e-9), numbers, expected)
    else:
        level, errors = 1 - rate.confidence, binom.ppf(1 - rate.confidence, numbers, rate.at_most)
        errors -= binom.cdf(errors, numbers, rate.at_most) > level * (1 + 1e-12)
        chances = binom.cdf(errors, numbers, expected)
    return np.concatenate([[0.0], chances])


def _simulated(rate: LimitedRate, expected: float, numbers: Tensor, sizes: Tensor, shared: float) -> Array:
    """Return, for each number of clusters in ``numbers``, the share of simulated tests that pass."""
    random, alike, bets = np.random.default_rng(0), max(TINY, 1 / max(shared, TINY) - 1), torch.ones(len(numbers))
    if rate.confidence is None:
        wanted = (1 - rate.at_most) * rate.largest
    else:
        wanted, (_, of) = -log(1 - rate.confidence) * (1 - 1e-12), rate.rates(sizes, sizes)
        right, wrong = (rate.gain(BETS, errors, of).mean(dim=1, keepdim=True) * numbers for errors in (0 * of, of))
        bets = rate.roomiest(right, wrong)
    passing = torch.zeros(len(numbers))
    for _ in range(SIMULATIONS // BATCH):
        of = sizes[random.integers(len(sizes), size=(BATCH, len(numbers)))]
        rates = (
            expected if not shared else random.beta(max(TINY**2, expected * alike), (1 - expected) * alike, of.shape)
        )
        errors, of = rate.rates(torch.from_numpy(random.binomial(of.long().numpy(), rates)), of)
        for bet in bets.unique().tolist():  # type: ignore[no-untyped-call]
            gain = rate.at_most * of - errors if rate.confidence is None else rate.gain(bet, errors, of)
            passing += ((gain.cumsum(dim=1) >= wanted) & (bets == bet)).sum(dim=0)
    return (passing / SIMULATIONS).double().numpy()


def _chance(chances: Array, judging: int, shares: Sequence[float]) -> float:
    """Return the chance that all groups pass; of ``judging`` samples or clusters, each group gets a random share."""
    from scipy.stats import binom

    def group_chance(share: float) -> float:
        middle, width = judging * share, 8 * (judging * share * (1 - share)) ** 0.5 + 1
        numbers = np.arange(max(0, int(middle - width)), int(middle + width) + 1)
        return float(binom.pmf(numbers, judging, share) @ chances[numbers.clip(max=len(chances) - 1)])

    return prod(map(group_chance, shares))


def _check(
    limit: Limit,
    expected: float,
    chance: float,
    share: float,
    group_shares: Sequence[float],
    sizes: Tensor,
    shared: float,
) -> None:
    of_groups = "be left out" if limit.by is None else "be given"
    below = f"below the limit {limit.at_most:g} (with more errors, samples must be referred: use the rate of the rest)"
    is_whole = sums_to_1(torch.tensor(group_shares))
    require(limit.errors not in ("cost", REFERRALS), "limit must be on a rate of errors", f"'{limit}'")
    require(0 <= expected < limit.at_most, f"expected must be at least 0 and {below}", expected)
    check_confidence(chance, "chance")
    require(0 < share <= 1, "share must be above 0 and at most 1", share)
    require(limit.of != SAMPLES or share == 1, "share must be 1 for a limit of all samples", share)
    is_fitting = (limit.by is None) == (group_shares == (1.0,))
    require(is_fitting, f"group_shares must {of_groups} for '{limit}'", group_shares)
    require(is_whole and min(group_shares) > 0, "group_shares must be above 0 and add up to 1", group_shares)
    are_sizes = len(sizes) > 0 and bool(((sizes >= 1) & (sizes == sizes.round())).all())
    require(are_sizes, "cluster_size must be one or more whole numbers of at least 1", sizes.tolist())
    require(0 <= shared <= 1, "shared must be from 0 to 1", shared)
