"""Thresholds with a guarantee: against scipy's binomial distribution, brute force, and simulated worlds."""

import re
from fractions import Fraction
from itertools import accumulate
from math import ceil, comb

import numpy as np
import pytest
import torch
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.stats import binom

from mpcs_torch.learning import UnattainableLimitError
from mpcs_torch.learning.threshold_testing import RiskPath
from tests.learning.risk_threshold import risk_threshold

SCORES = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.9, np.inf]), st.booleans()),
    min_size=1,
    max_size=60,
)


def most_losses(samples: int, rate: float, confidence: float) -> int:
    """Return how many of the samples are decided if all of their decisions are wrong; -1 if no limit is possible."""
    risk = torch.arange(samples, dtype=torch.float64)
    try:
        found = risk_threshold(
            risk, torch.ones(samples), max_loss=rate, confidence=confidence
        )
    except UnattainableLimitError:
        return -1
    return int((risk < found).sum())


@given(st.integers(1, 5000), st.floats(0.001, 0.9), st.floats(0.1, 0.999))
def test_the_binomial_bound_is_that_of_scipy(
    samples: int, rate: float, confidence: float
) -> None:
    k, level = most_losses(samples, rate, confidence), 1 - confidence
    assert k < 0 or binom.cdf(k, samples, rate) <= level * (1 + 1e-9)
    assert binom.cdf(k + 1, samples, rate) > level * (1 - 1e-9)


RATES = st.integers(2, 60).flatmap(
    lambda q: st.integers(1, q - 1).map(lambda p: Fraction(p, q))
)


@given(st.integers(0, 40), st.integers(1, 80), RATES)
@example(0, 2, Fraction(1, 2))
@example(5, 12, Fraction(1, 2))
@example(3, 40, Fraction(1, 10))
@example(3, 4997, Fraction(1, 1000))
def test_a_binomial_probability_that_meets_the_level_exactly_is_within_it(
    k: int, others: int, rate: Fraction
) -> None:
    """In whole numbers; a level that is lower by a billionth allows one loss less."""
    samples = k + others
    parts = [comb(samples, i) * rate**i * (1 - rate) ** (samples - i) for i in range(k + 1)]
    level = sum(parts, Fraction(0))
    assume(Fraction(1, 1000) < level < 1 - Fraction(1, 10**6))
    assume(parts[-1] > level / 10**6)
    assert most_losses(samples, float(rate), float(1 - level)) == k
    assert (
        most_losses(samples, float(rate), float(1 - level * (1 - Fraction(1, 10**9))))
        == k - 1
    )


LOSSES = st.sampled_from(
    [
        Fraction(n, d)
        for n, d in ((0, 1), (1, 10**6), (1, 10), (1, 4), (3, 10), (2, 3), (1, 1))
    ]
)


@given(
    RATES,
    st.lists(LOSSES, max_size=60),
    st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(10)]),
)
@example(Fraction(29, 100), [Fraction(1)] * 99, Fraction(1))
@example(Fraction(1, 49), [Fraction(0)] * 48, Fraction(1))
@example(Fraction(1, 49), [Fraction(0)] * 47, Fraction(1))
@example(Fraction(1, 5), [Fraction(1), Fraction(1, 10**6), *[Fraction(0)] * 7], Fraction(1))
def test_losses_that_meet_the_limit_in_expectation_exactly_are_within_it(
    share: Fraction, losses: list[Fraction], highest: Fraction
) -> None:
    """In whole numbers; a millionth more is not."""
    risk = torch.arange(len(losses)).double()
    loss = torch.tensor([float(loss * highest) for loss in losses], dtype=torch.float64)
    budget = share * (len(losses) + 1) - 1
    settings = {"max_loss": float(share * highest), "highest_loss": float(highest)}
    if budget < 0:
        with pytest.raises(UnattainableLimitError):
            risk_threshold(risk, loss, **settings)
        return
    decided = sum(total <= budget for total in accumulate(losses))
    assert (risk < risk_threshold(risk, loss, **settings)).sum() == decided


@given(
    RATES, st.integers(1, 40), st.sampled_from([Fraction(1, 3), Fraction(1), Fraction(10)])
)
@example(Fraction(1, 2), 2, Fraction(1))
@example(Fraction(1, 4), 3, Fraction(1))
@example(Fraction(1, 49), 1, Fraction(1))
@example(Fraction(1, 50), 1, Fraction(1))
def test_a_message_asks_for_no_sample_too_many_or_too_few(
    share: Fraction, samples: int, highest: Fraction
) -> None:
    """In whole numbers, where so many samples meet the limit exactly."""

    def needed(**settings: float) -> int:
        with pytest.raises(UnattainableLimitError) as told:
            risk_threshold(torch.rand(0), torch.rand(0), **settings)
        return told.value.needed

    assert (
        needed(max_loss=float(share * highest), highest_loss=float(highest))
        == ceil(1 / share) - 1
    )
    level = (1 - share) ** samples
    if level > Fraction(1, 1000):
        assert needed(max_loss=float(share), confidence=float(1 - level)) == samples
        assert (
            needed(max_loss=float(share), confidence=float(1 - level * Fraction(999, 1000)))
            == samples + 1
        )


def brute(
    pairs: list[tuple[float, bool]], *, max_loss: float, confidence: float | None
) -> float | None:
    """Look at every threshold that makes a difference."""
    n = len(pairs)
    best = None
    for threshold in [*sorted({risk for risk, _ in pairs}), np.inf]:
        losses = sum(loss for risk, loss in pairs if risk < threshold)
        if confidence is None:
            holds = losses + 1 <= max_loss * (n + 1) + 1e-9
        else:
            # SciPy may round a tie up.
            holds = binom.cdf(losses, n, max_loss) <= (1 - confidence) * (1 + 1e-12)
        if holds:
            best = threshold
    return best


@given(
    SCORES, st.sampled_from([0.05, 0.1, 0.25, 0.5]), st.sampled_from([None, 0.5, 0.8, 0.95])
)
@example([(0.0, False)] * 8 + [(0.0, True)] * 7, 0.5, 0.5).via(
    "a tie, whose probability is rounded up"
)
def test_the_threshold_is_the_highest_that_holds(
    pairs: list[tuple[float, bool]], max_loss: float, confidence: float | None
) -> None:
    risk = torch.tensor([risk for risk, _ in pairs], dtype=torch.float64)
    loss = torch.tensor([loss for _, loss in pairs])
    expected = brute(pairs, max_loss=max_loss, confidence=confidence)
    if expected is None:
        with pytest.raises(
            ValueError,
            match=f"max_loss {max_loss:g} .* cannot be guaranteed by {len(pairs)} samples",
        ):
            risk_threshold(risk, loss, max_loss=max_loss, confidence=confidence)
        return
    alone = torch.randperm(len(pairs))
    for clusters in (None, alone):
        found = risk_threshold(
            risk, loss, max_loss=max_loss, confidence=confidence, clusters=clusters
        )
        assert torch.equal(risk < found, risk < expected)
    assert not (risk == found)[risk.isfinite()].any(), "it is midway between two risks"


@given(st.integers(0, 600), st.sampled_from([None, 0.5, 0.95, 0.999]))
def test_the_limit_that_a_message_offers_can_be_guaranteed(
    samples: int, confidence: float | None
) -> None:
    def guarantee(max_loss: float, number: int) -> None:
        risk_threshold(
            torch.rand(number),
            torch.zeros(number),
            max_loss=max_loss,
            confidence=confidence,
        )

    with pytest.raises(UnattainableLimitError) as told:
        guarantee(0.001, samples)
    offered = re.search(r"They can guarantee ([0-9.e-]+)\.", str(told.value))
    assert offered is not None
    if float(offered[1]) < 1:
        guarantee(float(offered[1]), samples)


def test_a_path_uses_all_limits_alike() -> None:
    risk = torch.stack(
        [torch.linspace(0, 1, 101), torch.linspace(0, 1, 101) ** 2], dim=1
    ).double()
    path = RiskPath(risk, torch.tensor([0.1, 0.02]), [False, False])
    places = path.first_place(risk)
    assert (places.diff() >= 0).all()
    for place in (0.1, 0.5, 2.0):
        thresholds = path.thresholds_at(place)
        used = (risk * (risk < thresholds)).mean(dim=0)
        assert used.tolist() == pytest.approx([0.1 * place, 0.02 * place], rel=0.2)
        # Deciding up to a place is the same as deciding below all thresholds.
        assert torch.equal(places < place, (risk < thresholds).all(dim=1))
