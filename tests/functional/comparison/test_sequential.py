"""Evidence and intervals at any time: exact against scipy, and valid however often one looks."""

from math import log, sqrt

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import betaln, xlogy

from mpcs_torch.functional import anytime_evidence, anytime_interval
from mpcs_torch.functional.comparison.sequential import chernoff_interval
from tests.refused import Refused

STREAMS, LENGTH = 400, 4000
DELTA = 0.05
MAX_FALSE_ALARMS = DELTA + 2 * sqrt(DELTA * (1 - DELTA) / STREAMS)
"""The share of streams that may be rejected or left out: `DELTA`, and two standard errors."""


def streams(kind: str, mean: float, seed: int = 0) -> torch.Tensor:
    """Draw losses (STREAMS, LENGTH): errors, or costs of 0, 0.1 and 1."""
    random = np.random.default_rng(seed)
    uniform = random.random((STREAMS, LENGTH))
    if kind == "errors":
        return torch.from_numpy((uniform < mean).astype(float))
    # A tenth as likely to cost 1 as to cost 0.1: mean / 2 * 1 + 5 * mean * 0.1.
    costs = np.zeros((STREAMS, LENGTH))
    costs[uniform < 5.5 * mean] = 0.1
    costs[uniform < mean / 2] = 1.0
    return torch.from_numpy(costs)


def sums(losses: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return losses.cumsum(dim=1), torch.arange(1.0, LENGTH + 1).expand(STREAMS, -1)


@pytest.mark.parametrize("kind", ["errors", "costs"])
def test_a_mean_at_the_limit_is_hardly_ever_rejected_however_often_one_looks(
    kind: str,
) -> None:
    alarms = (anytime_evidence(*sums(streams(kind, 0.01)), limit=0.01) >= 1 / DELTA).any(
        dim=1
    )
    assert alarms.double().mean() <= MAX_FALSE_ALARMS


@pytest.mark.parametrize("kind", ["errors", "costs"])
def test_the_interval_holds_the_mean_at_all_times(kind: str) -> None:
    loss, samples = sums(streams(kind, 0.02, seed=1))
    low, high = anytime_interval(loss[:, ::20], samples[:, ::20])
    assert ((low <= 0.02) & (high >= 0.02)).all(
        dim=1
    ).double().mean() >= 1 - MAX_FALSE_ALARMS


@pytest.mark.parametrize(("factor", "labels"), [(4, 2000), (10, 600)])
def test_a_higher_rate_is_seen_about_as_early_as_a_test_that_knows_it_could(
    factor: float, labels: int
) -> None:
    limit, rate = 0.005, 0.005 * factor
    divergence = rate * log(factor) + (1 - rate) * log((1 - rate) / (1 - limit))
    evidence = (
        anytime_evidence(*sums(streams("errors", rate, seed=2)), limit=limit) >= 1 / DELTA
    )
    delays = torch.where(evidence.any(dim=1), evidence.int().argmax(dim=1) + 1, LENGTH)
    assert delays.double().median() <= min(labels, 1.3 * log(1 / DELTA) / divergence)


@given(st.integers(0, 300), st.integers(0, 300), st.floats(0.5, 0.99))
def test_ends_are_where_the_mixture_rejects(
    errors: int, others: int, confidence: float
) -> None:
    samples = errors + others
    interval = anytime_interval(
        torch.tensor(errors), torch.tensor(samples), confidence=confidence
    )
    if samples == 0:
        assert [end.item() for end in interval] == [0, 1]
        return

    def excess(rate: float) -> float:
        mixed = betaln(errors + 0.5, others + 0.5) - betaln(0.5, 0.5)
        return float(
            mixed - xlogy(errors, rate) - xlogy(others, 1 - rate) + log(1 - confidence)
        )

    mean, (low, high) = errors / samples, interval
    expected_low = brentq(excess, 1e-300, mean) if errors else 0.0
    expected_high = brentq(excess, mean, 1 - 1e-16) if others else 1.0
    assert (low.item(), high.item()) == pytest.approx(
        (expected_low, expected_high), rel=1e-6, abs=1e-9
    )


def test_losses_out_of_range_are_refused() -> None:
    for loss in (-1.0, 3.0):
        with Refused("sums_of_losses", "loss"):
            anytime_evidence(torch.tensor(loss), torch.tensor(2), limit=0.1)
    with Refused("open_between", "limit", 1.0, minimum=0, maximum=1):
        anytime_evidence(torch.tensor(0), torch.tensor(2), limit=1.0)
    with Refused("open_between", "confidence", 0.0, minimum=0, maximum=1):
        anytime_interval(torch.tensor(0), torch.tensor(2), confidence=0.0)


@pytest.mark.parametrize(("loss", "samples"), [(1, 10), (7.5, 20), (0, 5), (5, 5)])
def test_the_ends_of_a_number_that_is_fixed_are_where_the_divergence_says(
    loss: float, samples: int
) -> None:
    def surplus(mean: float) -> float:
        share = loss / samples
        divergence = xlogy(share, share / mean) + xlogy(1 - share, (1 - share) / (1 - mean))
        return float(samples * divergence - log(2 / 0.05))

    ends = chernoff_interval(torch.tensor(loss), torch.tensor(samples), confidence=0.95)
    low = brentq(surplus, 1e-12, loss / samples - 1e-12) if loss else 0.0
    high = brentq(surplus, loss / samples + 1e-12, 1 - 1e-12) if loss < samples else 1.0
    assert ends.low.item() == pytest.approx(low, abs=1e-9)
    assert ends.high.item() == pytest.approx(high, abs=1e-9)
