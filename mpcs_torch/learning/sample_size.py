"""Plan how many samples to collect so that a `DecisionRule` can meet a limit."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil, log

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.inputs.confidence import check_confidence
from mpcs_torch.learning.guaranteed_limits import BETS, ENOUGH, LimitedRate
from mpcs_torch.learning.rule_fit import calibration_units, total_units
from mpcs_torch.learning.rule_limit import ALL_SAMPLES, PER_CLUSTER, Limit

Array = NDArray[np.float64]
START = 2**10
"""The start of the search for a number of counted samples."""
MAX_SAMPLES = 2**17
"""The upper bound of this search."""
SIMULATIONS = 2000
"""The number of simulations for clusters."""
BATCH = 100
"""The number of simulations that are in memory at once."""
TINY = 1e-6
"""The lower bound of the parameters of beta distributions."""


@dataclass(frozen=True)
class LimitPlan:
    """The number of samples, or of clusters, that a limit needs: the result of `plan_limit`."""

    limit: Limit
    given: int
    """The number of samples or clusters to collect, including the fifth that fits the calibration."""
    counted: int
    """The expected number of samples or clusters that the limit counts, such as those of its class."""
    judging: int
    """The number of samples or clusters that choose the threshold: ``given`` without the fifth for calibration."""
    fewest: int
    """The minimum number of counted samples or clusters that can guarantee the limit without errors."""
    cluster_sizes: tuple[int, ...]
    share: float = field(repr=False)
    """The share of samples or clusters that count."""
    chances: Array = field(repr=False, compare=False)
    """The chances that the limit is met with 0, 1, 2, ... counted samples or clusters."""

    def chance_with(self, given: int) -> float:
        """Return the chance to decide all samples under the limit if ``given`` samples or clusters are collected."""
        if given < 2:
            return 0.0
        return _chance(self.chances, given - calibration_units(given), self.share)

    def __str__(self) -> str:
        of = self.limit.of
        low = min(self.cluster_sizes)
        high = max(self.cluster_sizes)
        text = "samples"
        if high > 1:
            sizes = f"{high}" if low == high else f"{low} to {high}"
            text = f"clusters of {sizes} samples"
        group = "" if self.limit.by is None else f" of the rarest {self.limit.by}"
        if of != ALL_SAMPLES or group:
            kind = "" if of == ALL_SAMPLES else f" {of}"
            if high > 1 and kind:
                kind = f" with {of} samples"
            text += f", {_grouped(self.counted)} of them{kind}{group}"
        # The tests with few decided samples must pass, too.
        least = "at least " if self.limit.is_of_decided else ""
        return f"Collect {least}{_grouped(self.given)} {text}."


def _grouped(number: int) -> str:
    """Return a whole number with a space before each three digits."""
    return f"{number:_}".replace("_", " ")


def plan_limit(
    limit: Limit,
    expected: float,
    *,
    chance: float = 0.9,
    share: float = 1.0,
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
    pass other tests first, so its chance is lower. So is the chance of a limit ``by`` a column: each group must pass.

    Args:
        limit: The limit, with a confidence.
        expected: p, the error rate of the model among the counted samples, at least 0 and below the limit. If some
            samples may be referred, p is the rate among the other samples.
        chance: The required chance that the test passes, above 0 and below 1.
        share: The share of samples that are counted, such as the share of the limit's class. If the limit is ``by`` a
            column, the share of counted samples in the rarest group. For clusters, the share of clusters with counted
            samples.
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
    sizes = torch.as_tensor(cluster_size).double().reshape(-1)
    _check(limit, expected, chance, share, sizes, shared)
    rate = _rate(limit, sizes)
    _, of = rate.rates(sizes, sizes)
    fewest = rate.fewest_units(of)
    # The chance of the highest number also stands for all higher numbers, so it must be nearly 1.
    enough = 1 - 0.1 * (1 - chance)
    most = max(4, START if sizes.max() == 1 else 2 * fewest)
    chances = _chances(rate, expected, most, sizes, shared)
    while chances[-(most // 4) :].min() < enough:
        most *= 2
        if most * sizes.mean() > MAX_SAMPLES:
            raise InvalidValueError(
                "far_below_limit",
                "expected",
                expected,
                maximum=MAX_SAMPLES,
                limit=str(limit),
            )
        chances = _chances(rate, expected, most, sizes, shared)
    # The number of counted samples is random, so the search begins where it is sufficient on average.
    judging = ceil((1 + np.flatnonzero(chances < chance)[-1]) / share)
    step = int(1 / share)
    while _chance(chances, judging, share) < chance:
        judging += step
    while _chance(chances, judging - step, share) >= chance:
        judging -= step
    given = total_units(judging)
    cluster_sizes = tuple(int(size) for size in sizes.tolist())
    return LimitPlan(
        limit, given, round(given * share), judging, fewest, cluster_sizes, share, chances
    )


def _rate(limit: Limit, sizes: Tensor) -> LimitedRate:
    """Return the rate of ``limit``, without samples, for clusters of the given sizes."""
    per_cluster, empty = limit.per == PER_CLUSTER, torch.empty(0, 1)
    largest = 1.0 if per_cluster else float(sizes.max())
    return LimitedRate(
        str(limit),
        limit.at_most,
        limit.confidence,
        empty,
        empty,
        per_cluster=per_cluster,
        largest=largest,
    )


def _chances(
    rate: LimitedRate, expected: float, most: int, sizes: Tensor, shared: float
) -> Array:
    """Return, for each n from 0 to ``most``, the chance that the test passes if n samples or clusters are counted.

    A sample is counted if the limit is about its class or decision; a cluster, if it has such samples.
    """
    from scipy.stats import binom

    assert rate.confidence is not None
    numbers = np.arange(1, most + 1)
    if sizes.max() > 1:
        chances = _simulated(rate, expected, torch.from_numpy(numbers), sizes, shared)
    else:
        level = 1 - rate.confidence
        errors = binom.ppf(level, numbers, rate.at_most)
        errors -= binom.cdf(errors, numbers, rate.at_most) > level * (1 + 1e-12)
        chances = binom.cdf(errors, numbers, expected)
    return np.concatenate([[0.0], chances])


def _simulated(
    rate: LimitedRate, expected: float, numbers: Tensor, sizes: Tensor, shared: float
) -> Array:
    """Return, for each number of clusters in ``numbers``, the share of simulated tests that pass."""
    assert rate.confidence is not None
    random = np.random.default_rng(0)
    alike = max(TINY, 1 / max(shared, TINY) - 1)
    beta = max(TINY**2, expected * alike), (1 - expected) * alike
    _, of = rate.rates(sizes, sizes)
    right = rate.gain(BETS, torch.zeros_like(of), of).mean(dim=1, keepdim=True)
    wrong = rate.gain(BETS, of, of).mean(dim=1, keepdim=True)
    bets = rate.most_tolerant(right * numbers, wrong * numbers)
    needed = -log(1 - rate.confidence) * ENOUGH
    passing = torch.zeros(len(numbers))
    for _ in range(SIMULATIONS // BATCH):
        counts = sizes[random.integers(len(sizes), size=(BATCH, len(numbers)))]
        error_rates = random.beta(*beta, counts.shape) if shared else expected
        errors = torch.from_numpy(random.binomial(counts.long().numpy(), error_rates))
        errors, of = rate.rates(errors, counts)
        for bet in bets.unique().tolist():  # type: ignore[no-untyped-call]
            log_wealth = rate.gain(bet, errors, of).cumsum(dim=1)
            passing += ((log_wealth >= needed) & (bets == bet)).sum(dim=0)
    return (passing / SIMULATIONS).double().numpy()


def _chance(chances: Array, judging: int, share: float) -> float:
    """Return the chance to pass with ``judging`` samples or clusters, of which a random ``share`` counts."""
    from scipy.stats import binom

    mean, width = judging * share, 8 * (judging * share * (1 - share)) ** 0.5 + 1
    numbers = np.arange(max(0, int(mean - width)), int(mean + width) + 1)
    return float(
        binom.pmf(numbers, judging, share) @ chances[numbers.clip(max=len(chances) - 1)]
    )


def _check(
    limit: Limit, expected: float, chance: float, share: float, sizes: Tensor, shared: float
) -> None:
    require(limit.confidence is not None, "has_confidence", "limit", str(limit))
    require(
        0 <= expected < limit.at_most,
        "below_limit",
        "expected",
        expected,
        limit=limit.at_most,
    )
    check_confidence(chance, "chance")
    require(0 < share <= 1, "above_at_most", "share", share, minimum=0, maximum=1)
    is_of_all = limit.of == ALL_SAMPLES and limit.by is None
    require(not is_of_all or share == 1, "share_of_all", "share", share)
    are_sizes = len(sizes) > 0 and bool(((sizes >= 1) & (sizes == sizes.round())).all())
    require(are_sizes, "sizes", "cluster_size", sizes.tolist())
    require(0 <= shared <= 1, "between", "shared", shared, minimum=0, maximum=1)
