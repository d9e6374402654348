"""Plans of limits against brute force, simulation, the errors of fits and fits of rules."""

from math import ceil, log, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import betabinom, binom

from benchmarks import planned_limits
from mpcs_torch.learning import Limit, UnattainableLimitError, plan_limit
from mpcs_torch.learning.guaranteed_limits import LimitedRate
from mpcs_torch.learning.rule_fit import calibration_units, total_units
from tests.refused import Refused

OF_CLASS = Limit(0.01, of="malignant")


def brute_force(limit: Limit, expected: float, chance: float, most: int) -> int:
    """Return the smallest number from which on the chance is kept, looking at every number of errors."""
    assert limit.confidence is not None
    last = 0
    for n in range(1, most):
        passing = np.flatnonzero(
            binom.cdf(np.arange(n), n, limit.at_most) <= 1 - limit.confidence
        )
        if not len(passing) or binom.cdf(passing[-1], n, expected) < chance:
            last = n
    return last + 1


@pytest.mark.parametrize(
    ("at_most", "confidence", "expected", "chance"),
    [
        (0.05, 0.95, 0.01, 0.9),
        (0.1, 0.9, 0.05, 0.8),
        (0.1, 0.95, 0.05, 0.95),
        (0.02, 0.99, 0.002, 0.7),
    ],
)
def test_the_chance_is_kept_from_the_planned_number_on(
    at_most: float, confidence: float, expected: float, chance: float
) -> None:
    limit = Limit(at_most, confidence=confidence)
    plan = plan_limit(limit, expected, chance=chance)
    assert (
        plan.judging == brute_force(limit, expected, chance, 2 * plan.judging) > plan.fewest
    )
    assert plan.given == total_units(plan.judging)
    assert plan.given - calibration_units(plan.given) == plan.judging
    assert plan.chance_with(plan.given) >= chance


@settings(max_examples=20)
@given(st.floats(0.005, 0.3), st.floats(0.5, 0.99), st.sampled_from([1, 4]))
def test_fewer_than_the_fewest_are_refused_by_the_test_itself(
    at_most: float, confidence: float, size: int
) -> None:
    limit = Limit(at_most, confidence=confidence)
    clusters = None if size == 1 else torch.arange(1).repeat_interleave(size)
    one = torch.ones(size, 1, dtype=torch.bool)
    rate = LimitedRate(
        "", at_most, limit.confidence, torch.zeros(size, 1), one, clusters=clusters
    ).over_all()
    with pytest.raises(UnattainableLimitError) as refused:
        rate.check_attainable()
    assert plan_limit(limit, 0, cluster_size=size).fewest == refused.value.needed


def test_what_counts_is_drawn_by_chance() -> None:
    plan = plan_limit(Limit(0.1, of="malignant", by="site"), 0.02, share=0.1)
    judging = plan.given - calibration_units(plan.given)
    numbers = np.arange(judging + 1)
    allowed = [
        int(np.sum(binom.cdf(np.arange(n + 1), n, 0.1) <= 0.05)) - 1 for n in numbers
    ]
    passing = binom.cdf(allowed, numbers, 0.02)
    assert plan.chance_with(plan.given) == pytest.approx(
        binom.pmf(numbers, judging, 0.1) @ passing, abs=1e-6
    )
    assert 0.9 <= plan.chance_with(plan.given) < 0.91
    assert plan.chance_with(plan.given - 20) < 0.9
    assert plan.counted == round(0.1 * plan.given)
    assert plan_limit(OF_CLASS, 0, share=0.05).given > total_units(ceil(299 / 0.05)), (
        "299 on average are too few"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("size", "shared"), [(1, 0.0), (5, 0.3), (10, 0.5), (20, 0.1), (5, 1.0)]
)
def test_clusters_pass_the_test_as_often_as_in_simulations(
    size: int, shared: float
) -> None:
    plan = plan_limit(Limit(0.05), 0.015, cluster_size=size, shared=shared)
    clusters, random = plan.judging, np.random.default_rng(0)
    counts = random.binomial(1, 0.015, (4000, clusters)) * size
    if 0 < shared < 1:
        counts = betabinom.rvs(
            size,
            0.015 * (1 / shared - 1),
            0.985 * (1 / shared - 1),
            size=(4000, clusters),
            random_state=random,
        )
    if size == 1:
        passing = binom.cdf(counts.sum(axis=1), clusters, 0.05) <= 0.05
    else:
        passing = wealth(counts / size, clusters) >= 20
    attained = np.mean(passing)
    assert attained == pytest.approx(plan.chance_with(plan.given), abs=0.02)
    assert attained >= 0.9 - 3 * sqrt(0.09 / 4000)


def wealth(rates: Any, clusters: int) -> Any:
    """Return the product of what a bet that an error is less likely than 5 % pays for each cluster, (N,)."""
    bets = np.arange(1, 21) / 20
    room = [
        (clusters * log(1 + bet / 19) - log(20)) / -log(max(1 - bet, 1e-12)) for bet in bets
    ]
    return np.prod(1 + bets[np.argmax(room)] * (0.05 - rates) / 0.95, axis=1)


def test_sizes_that_differ_take_more_clusters_of_samples_but_not_per_cluster() -> None:
    given = {
        (per, sizes): plan_limit(
            Limit(0.1, per=per), 0.02, cluster_size=sizes, shared=0.3
        ).given
        for per in ("sample", "cluster")
        for sizes in ((4,), (1, 2, 3, 10))
    }
    assert given["sample", (1, 2, 3, 10)] > 1.5 * given["sample", (4,)]
    assert (
        given["cluster", (1, 2, 3, 10)]
        < 1.4 * given["cluster", (4,)]
        == 1.4 * given["sample", (4,)]
    )


@pytest.mark.parametrize(
    ("limit", "arguments", "text"),
    [
        (Limit(0.02), {}, "{} samples."),
        (
            Limit(0.05, of="skin_cancer", by="site"),
            {"share": 0.04},
            "{} samples, {} of them skin_cancer of the rarest site.",
        ),
        (
            Limit(0.05, by="site"),
            {"share": 0.2},
            "{} samples, {} of them of the rarest site.",
        ),
        (
            Limit(0.05, of="malignant"),
            {"share": 0.1, "cluster_size": 4, "shared": 0.5},
            "{} clusters of 4 samples, {} of them with malignant samples.",
        ),
    ],
)
def test_plans_say_what_to_collect(
    limit: Limit, arguments: dict[str, Any], text: str
) -> None:
    plan = plan_limit(limit, 0.005, **arguments)
    numbers = [f"{n:_}".replace("_", " ") for n in (plan.given, plan.counted)]
    assert str(plan) == f"Collect {text.format(*numbers)}"


@pytest.mark.parametrize(
    ("limit", "expected", "arguments", "refusal"),
    [
        (Limit(0.5, "cost", confidence=None), 0.1, {}, Refused("has_confidence", "limit")),
        (
            OF_CLASS,
            0.01,
            {},
            Refused("below_limit", "expected", 0.01, limit=0.01),
        ),
        (OF_CLASS, -0.1, {}, Refused("below_limit", "expected")),
        (
            OF_CLASS,
            0.00999,
            {"cluster_size": 1000},
            Refused("far_below_limit", "expected", 0.00999, maximum=131072),
        ),
        (
            OF_CLASS,
            0.001,
            {"chance": 1.0},
            Refused("open_between", "chance", 1.0, minimum=0, maximum=1),
        ),
        (
            OF_CLASS,
            0.001,
            {"share": 0.0},
            Refused("above_at_most", "share", 0.0, minimum=0, maximum=1),
        ),
        (Limit(0.01), 0.001, {"share": 0.5}, Refused("share_of_all", "share", 0.5)),
        (
            OF_CLASS,
            0.001,
            {"cluster_size": 0},
            Refused("sizes", "cluster_size", [0.0]),
        ),
        (
            OF_CLASS,
            0.001,
            {"shared": 1.5},
            Refused("between", "shared", 1.5, minimum=0, maximum=1),
        ),
    ],
)
def test_wrong_arguments_are_refused(
    limit: Limit, expected: float, arguments: dict[str, Any], refusal: Refused
) -> None:
    with refusal:
        plan_limit(limit, expected, **arguments)


def test_fits_attain_the_limit_as_often_as_planned() -> None:
    case, fits = planned_limits.CASES["dangerous of a class"], 40
    plan = case.plan()
    planned = plan.chance_with(plan.given)
    assert 0.9 <= planned < 0.95
    attained = planned_limits.share_attained(case, fits)
    assert attained == pytest.approx(planned, abs=3 * sqrt(planned * (1 - planned) / fits))
