"""Thresholds with a guarantee: against scipy's binomial distribution, brute force, and simulated worlds."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom
from torch import Tensor

from mpcs_torch.functional import risk_threshold
from mpcs_torch.functional.concern.risk_control import UnattainableLimitError, _binomial_quantile

SCORES = st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.5, 0.9]), st.booleans()), min_size=1, max_size=60)


@given(st.integers(1, 5000), st.floats(0.001, 0.9), st.floats(0.001, 0.9))
def test_the_binomial_bound_is_that_of_scipy(samples: int, rate: float, level: float) -> None:
    k = _binomial_quantile(samples, rate, level)
    assert k < 0 or binom.cdf(k, samples, rate) <= level * (1 + 1e-9)
    assert binom.cdf(k + 1, samples, rate) > level * (1 - 1e-9)


def brute(pairs: list[tuple[float, bool]], *, max_loss: float, confidence: float | None) -> float | None:
    """Look at every threshold that makes a difference."""
    n = len(pairs)
    best = None
    for threshold in [*sorted({risk for risk, _ in pairs}), np.inf]:
        losses = sum(loss for risk, loss in pairs if risk < threshold)
        if confidence is None:
            holds = losses + 1 <= max_loss * (n + 1) + 1e-9
        else:
            holds = binom.cdf(losses, n, max_loss) <= 1 - confidence
        if holds:
            best = threshold
    return best


@given(SCORES, st.sampled_from([0.05, 0.1, 0.25, 0.5]), st.sampled_from([None, 0.5, 0.8, 0.95]))
def test_the_threshold_is_the_highest_that_holds(
    pairs: list[tuple[float, bool]], max_loss: float, confidence: float | None
) -> None:
    risk = torch.tensor([risk for risk, _ in pairs], dtype=torch.float64)
    loss = torch.tensor([loss for _, loss in pairs])
    expected = brute(pairs, max_loss=max_loss, confidence=confidence)
    if expected is None:
        with pytest.raises(ValueError, match=f"max_loss {max_loss:g} cannot be guaranteed .* by {len(pairs)} samples"):
            risk_threshold(risk, loss, max_loss=max_loss, confidence=confidence)
        return
    found = risk_threshold(risk, loss, max_loss=max_loss, confidence=confidence)
    assert found.threshold == expected
    assert found.coverage.item() == pytest.approx((risk < expected).double().mean().item())
    assert found.loss.item() == pytest.approx((loss & (risk < expected)).double().mean().item())


def world(samples: int, generator: np.random.Generator) -> tuple[Tensor, Tensor]:
    """Errors whose probability is not what the estimate says: its square root, over 5."""
    risk = generator.random(samples)
    return torch.tensor(risk), torch.tensor(generator.random(samples) < np.sqrt(risk) / 5)


def true_loss(threshold: float) -> float:
    t = min(threshold, 1.0)
    return t**1.5 * 2 / 3 / 5


def test_with_confidence_the_true_loss_exceeds_the_limit_in_few_worlds() -> None:
    generator, worlds, delta = np.random.default_rng(0), 1000, 0.1
    broken = 0
    for _ in range(worlds):
        found = risk_threshold(*world(400, generator), max_loss=0.05, confidence=1 - delta)
        broken += true_loss(found.threshold.item()) > 0.05
    assert broken / worlds <= delta + 2 * np.sqrt(delta * (1 - delta) / worlds)
    assert broken > 0, "a bound that is never reached would refer too much"


def test_in_expectation_the_true_loss_meets_the_limit_closely() -> None:
    generator = np.random.default_rng(1)
    losses = [true_loss(risk_threshold(*world(200, generator), max_loss=0.05).threshold.item()) for _ in range(2000)]
    error = 2 * np.std(losses) / np.sqrt(len(losses))
    assert 0.05 - 1 / 201 - error <= np.mean(losses) <= 0.05 + error


def test_what_cannot_be_met_says_what_can() -> None:
    risk, loss = torch.rand(500), torch.zeros(500)
    with pytest.raises(ValueError, match=r"confidence 0.95 by 500 .* guarantee 0.00598, and 0.002 takes 1497"):
        risk_threshold(risk, loss, max_loss=0.002, confidence=0.95)
    assert risk_threshold(torch.rand(1497), torch.zeros(1497), max_loss=0.002, confidence=0.95).coverage == 1
    with pytest.raises(ValueError, match=r"in expectation by 499 .* guarantee 0.002, and 0.001 takes 999"):
        risk_threshold(torch.rand(499), torch.zeros(499), max_loss=0.001)
    assert risk_threshold(torch.rand(999), torch.zeros(999), max_loss=0.001).coverage == 1


@given(st.integers(0, 600), st.sampled_from([None, 0.5, 0.95, 0.999]))
def test_the_limit_that_a_message_offers_can_be_guaranteed(samples: int, confidence: float | None) -> None:
    def guarantee(max_loss: float, number: int) -> None:
        risk_threshold(torch.rand(number), torch.zeros(number), max_loss=max_loss, confidence=confidence)

    with pytest.raises(UnattainableLimitError) as told:
        guarantee(0.001, samples)
    offered = re.search(r"they can guarantee ([0-9.e-]+), and 0.001 takes (\d+) samples", str(told.value))
    assert offered is not None
    if float(offered[1]) < 1:
        guarantee(float(offered[1]), samples)
    guarantee(0.001, int(offered[2]))
    with pytest.raises(UnattainableLimitError):
        guarantee(0.001, int(offered[2]) - 1)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"risk": torch.zeros(3, 1)}, r"risk must be floating point of shape \(N,\) without NaN, but got"),
        ({"risk": torch.tensor([0.1, torch.nan, 0.2])}, r"risk must be .* without NaN"),
        ({"loss": torch.zeros(2)}, r"loss must have the shape of risk \(3,\), but got \(2,\)"),
        (
            {"loss": torch.tensor([0.0, 0.5, 1.0])},
            r"loss must be 0 or 1 \(confidence takes no other losses\), but",
        ),
        ({"loss": torch.tensor([0.0, 2.0, 1.0]), "confidence": None}, r"loss must be from 0 to 1, but got 2"),
        ({"max_loss": 0.0}, r"max_loss must be above 0 and below the highest loss 1, but got 0.0"),
        ({"max_loss": 1.5}, r"max_loss must be above 0 and below the highest loss 1, but got 1.5"),
        ({"confidence": 1.0}, r"confidence must be above 0 and below 1, but got 1.0"),
        ({"highest_loss": 0.0}, r"highest_loss must be finite and above 0, but got 0.0"),
    ],
)
def test_errors_name_the_wrong_argument(changed: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "risk": torch.rand(3),
        "loss": torch.tensor([0, 1, 0]),
        "max_loss": 0.5,
        "confidence": 0.5,
        **changed,
    }
    with pytest.raises(ValueError, match=message):
        risk_threshold(**arguments)
