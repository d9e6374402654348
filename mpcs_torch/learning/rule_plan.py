"""Plan the number of samples that a limit takes, before they are collected."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil, log, prod
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import quoted, require
from mpcs_torch.functional.concern.limited_rate import BETS, LimitedRate, UnattainableLimitError
from mpcs_torch.functional.inputs.confidence import check_confidence
from mpcs_torch.functional.inputs.groups import codes_by_column, group_codes
from mpcs_torch.functional.inputs.sum_tolerance import sums_to_1
from mpcs_torch.learning.decision_rule import IS_LIMITED, DecisionRule
from mpcs_torch.learning.rule_limit import CLUSTER, REFERRALS, SAMPLES, Limit
from mpcs_torch.learning.rule_samples import calibration_units, checked_logits, given_units
from mpcs_torch.tables import in_percent

Array = NDArray[np.float64]
FIRST, MAX_SAMPLES = 2**10, 2**17
"""Of the numbers of samples that count, the first and the highest to look at."""
SCOUTING, COUNTED, MAX_TIMES = 100, 400, 64
"""The fits that choose a number and those that count its chance, and the most by the size of the pilot."""
SIMULATED, PART, TINY = 2000, 100, 1e-6
"""The simulations of a test of clusters, how many are in memory at once, and what keeps a Beta above 0."""


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
    cluster_sizes: tuple[int, ...]
    shares: tuple[float, ...] = field(repr=False)
    """The share of those given that counts, of each group."""
    chances: Array = field(repr=False, compare=False)
    """The chance that a group attains the limit if 0, 1, 2, ... of it count and judge."""

    def chance_with(self, given: int) -> float:
        """Return the chance to decide all samples under the limit with another number in all."""
        return _chance(self.chances, given - calibration_units(given), self.shares) if given > 1 else 0.0

    def __str__(self) -> str:
        """Say what to collect."""
        low, high, of = min(self.cluster_sizes), max(self.cluster_sizes), self.limit.of
        is_single, sizes = high == 1, f"{high}" if low == high else f"{low} to {high}"
        parts = [f"{self.given:_} " + ("samples" if is_single else f"clusters of {sizes} samples")]
        if of != SAMPLES:
            parts.append(f"{sum(self.counted):_} of them {of if is_single else f'with {of} samples'}")
        if self.limit.by is not None:
            parts.append(f"{min(self.counted):_} of these of the rarest {self.limit.by}")
        least = "at least " if self.limit.is_of_decided else ""  # it must pass tests where few are decided, too
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
    r"""Compute how many validation samples a `DecisionRule` needs to keep a limit without referring any.

    Of n samples that count, at most :math:`k_n` may be errors, the most with which the test of the limit passes. If
    each is an error with probability p, the chance of that is :math:`P[\mathrm{Bin}(n, p) \le k_n]`, a saw tooth in n:
    the plan is the smallest n from which on it is kept. Tests of clusters are simulated, with a rate of errors in each
    that has a Beta distribution. How many of those given count is a matter of chance, too.

    The chance is that of the last test, of all samples. A limit of decided samples, or one of several limits, must pass
    tests before it, too, and is attained more rarely: `plan_like` plans by fits to samples of a pilot.

    Args:
        limit: The limit; not of costs.
        expected: p, the rate of errors of the model among the samples that count, at least 0 and below the limit. If
            some samples may be referred: the rate that is left.
        chance: The chance wanted, above 0 and below 1.
        share: The share of samples that count: those of the class, or those decided. With clusters, the share of
            clusters that hold any.
        group_shares: The share of each group, for a limit ``by`` a column; all of them must keep it.
        cluster_size: How many samples of a cluster count; or of several clusters, all equally frequent.
        shared: :math:`\rho`, from 0 to 1: the intracluster correlation of errors.

    Raises:
        ValueError: If an argument breaks its rule, or if it takes more than about 100 000 samples that count.

    Example:
        >>> plan = plan_limit(Limit(0.01, of="malignant"), 0.003, share=0.05)
        >>> print(plan)
        Collect 29 800 samples, 1 490 of them malignant.
        >>> plan.fewest  # without an error
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
    # Numbers far beyond the plan count as the highest one, which must hardly ever fail.
    enough, most = 1 - 0.1 * (1 - chance) / len(shares), max(4, FIRST if is_single else 2 * fewest)
    while (chances := _chances(rate, expected, most, sizes, shared))[-(most // 4) :].min() < enough:
        most *= 2
        if most * sizes.mean() > MAX_SAMPLES:
            rule = f"expected must be so far below the limit that {MAX_SAMPLES} samples that count are enough"
            raise ValueError(f"{rule}, but got {expected:g} for '{limit}'.")
    judging = ceil((1 + np.flatnonzero(chances < chance)[-1]) / min(shares))
    step = int(1 / min(shares))
    while _chance(chances, judging, shares) < chance:
        judging += step
    while _chance(chances, judging - step, shares) >= chance:
        judging -= step
    given = given_units(judging)
    counted, of = tuple(round(given * of_group) for of_group in shares), tuple(map(int, sizes.tolist()))
    return LimitPlan(limit, given, counted, judging, fewest, of, shares, chances)


class PilotPlan(NamedTuple):
    """The number of samples or clusters like those of a pilot that limits take, as `plan_like` returns it."""

    given: int
    """To collect: those that judge, and the fifth that calibrates."""
    chance: float
    """The share of fits to so many that refer as little as wanted, counted on fits that did not choose the number."""
    pilot: int
    """The number of samples or clusters of the pilot."""
    errors: int
    """The errors in the pilot that a limit counts, without any referral: of several limits, the fewest."""
    coverage: float
    unit: str

    def __str__(self) -> str:
        """Say what to collect, and what that rests on."""
        many = "all of them" if self.coverage == 1 else f"at least {100 * self.coverage:g} %"
        text = (
            f"Collect {self.given:_} {self.unit} like these {self.pilot:_}: then limits let {many} be decided in "
            f"{in_percent(self.chance)} of fits. This takes the pilot for the truth, with {self.errors} of the errors "
            "that are limited: few of them make the plan too high or too low."
        )
        return text.replace("_", " ")


@torch.no_grad()
def plan_like(
    rule: DecisionRule,
    preds: Tensor,
    target: Tensor,
    *,
    clusters: Sequence[object] | Tensor | None = None,
    groups: Mapping[str, Sequence[object] | Tensor] | None = None,
    chance: float = 0.9,
    coverage: float = 1.0,
) -> PilotPlan:
    """Compute how many samples or clusters like those of a pilot a rule needs, by fits to samples of the pilot.

    Limits of decided samples, several limits, groups and clusters of any sizes are planned for as they are tested.
    Every fit is to samples or clusters drawn from the pilot with replacement.

    Args:
        rule: A rule with limits, which is not changed.
        preds: ``(N, C)`` logits of the pilot.
        target: ``(N,)`` integer class indices in ``[0, C)``.
        clusters: As of `DecisionRule.fit`.
        groups: As of `DecisionRule.fit`.
        chance: The chance wanted, above 0 and below 1.
        coverage: The share of the pilot that limits must let be decided, above 0 and at most 1.

    Raises:
        ValueError: If an argument breaks its rule, or if even 64 times the pilot is not enough.
    """
    require(bool(rule.limits), "rule must have limits", quoted(list(map(str, rule.limits))))
    check_confidence(chance, "chance")
    require(0 < coverage <= 1, "coverage must be above 0 and at most 1", coverage)
    preds, target = checked_logits(preds, target, len(rule.costs), calibrates=True)
    codes = torch.arange(len(target)) if clusters is None else group_codes("clusters", clusters, len(target)).codes
    of_columns = {column: of.codes for column, of in codes_by_column(groups, len(target)).items()}
    order, sizes = codes.argsort(stable=True), codes.bincount()
    ends, pilot = sizes.cumsum(0), len(sizes)

    def share_of_fits(units: int, fits: int, seed: int) -> float:
        attained, generator = 0, torch.Generator().manual_seed(seed)
        for fit in range(fits):
            chosen = torch.randint(pilot, (units,), generator=generator)
            of = torch.arange(units).repeat_interleave(sizes[chosen])
            rank = torch.arange(len(of)) - (sizes[chosen].cumsum(0) - sizes[chosen])[of]
            rows = order[(ends - sizes)[chosen][of] + rank]
            settings: Any = {"calibration": rule.calibration_method, "priors": rule.priors, "seed": fit}
            one = DecisionRule(rule.concern, rule.limits, **settings)
            by = {column: code[rows] for column, code in of_columns.items()}
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of rare classes and of fits that refer all, which fail here
                try:
                    one.fit(preds[rows], target[rows], clusters=None if clusters is None else of, groups=by)
                except UnattainableLimitError:
                    continue
            attained += (one.assess(preds).reason < IS_LIMITED).double().mean().item() >= coverage
        return attained / fits

    low, high = 0, pilot
    while (best := share_of_fits(high, SCOUTING, high)) < chance:
        low, high = high, 2 * high
        if high > MAX_TIMES * pilot:
            few = f"limits let {100 * coverage:g} % be decided in {in_percent(best)} of fits to {low} like these"
            raise ValueError(f"{few}: ask for a lower coverage or chance, or a higher limit.")
    while high - low > max(1, high // 32):
        middle = (low + high) // 2
        low, high = (low, middle) if share_of_fits(middle, SCOUTING, middle) >= chance else (middle, high)
    while (attained := share_of_fits(high, COUNTED, high + 1)) < chance:
        high += high // 32 + 1
    decided = DecisionRule(rule.concern, calibration=None).assess(preds).best
    wrong = min(int((limit.losses(rule.concern)[target, decided] > 0).sum()) for limit in rule.limits)
    unit = SAMPLES if clusters is None else "clusters"
    return PilotPlan(high, attained, pilot, wrong, coverage, unit)


def _chances(rate: LimitedRate, expected: float, most: int, sizes: Tensor, shared: float) -> Array:
    """Return the chance to pass the test with 0, 1, 2, ... clusters, or samples, that count: (most + 1,)."""
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
    """Return the share of simulations that pass the test with 1, 2, ... clusters, whose rates have a Beta."""
    random, alike, bets = np.random.default_rng(0), max(TINY, 1 / max(shared, TINY) - 1), torch.ones(len(numbers))
    if rate.confidence is None:
        wanted = (1 - rate.at_most) * rate.largest
    else:
        wanted, (_, of) = -log(1 - rate.confidence) * (1 - 1e-12), rate.rates(sizes, sizes)
        right, wrong = (rate.gain(BETS, errors, of).mean(dim=1, keepdim=True) * numbers for errors in (0 * of, of))
        bets = rate.roomiest(right, wrong)
    passing = torch.zeros(len(numbers))
    for _ in range(SIMULATED // PART):
        of = sizes[random.integers(len(sizes), size=(PART, len(numbers)))]
        rates = (
            expected if not shared else random.beta(max(TINY**2, expected * alike), (1 - expected) * alike, of.shape)
        )
        errors, of = rate.rates(torch.from_numpy(random.binomial(of.long().numpy(), rates)), of)
        for bet in bets.unique().tolist():  # type: ignore[no-untyped-call]
            gain = rate.at_most * of - errors if rate.confidence is None else rate.gain(bet, errors, of)
            passing += ((gain.cumsum(dim=1) >= wanted) & (bets == bet)).sum(dim=0)
    return (passing / SIMULATED).double().numpy()


def _chance(chances: Array, judging: int, shares: Sequence[float]) -> float:
    """Return the chance that all groups pass, if what counts of each is drawn with its share from those that judge."""
    from scipy.stats import binom

    def of_group(share: float) -> float:
        middle, width = judging * share, 8 * (judging * share * (1 - share)) ** 0.5 + 1
        numbers = np.arange(max(0, int(middle - width)), int(middle + width) + 1)
        return float(binom.pmf(numbers, judging, share) @ chances[numbers.clip(max=len(chances) - 1)])

    return prod(map(of_group, shares))


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
    below = f"below the limit {limit.at_most:g} (with more errors, samples must be referred: expect the rate left then)"
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
