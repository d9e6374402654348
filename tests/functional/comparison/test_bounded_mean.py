"""Gaffke's interval against Clopper and Pearson's, against drawn weights, and against rare dear errors."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mpcs_torch.functional import bounded_mean_interval, clopper_pearson

COSTS = torch.tensor([0.0, 1.0, 100.0])


@settings(max_examples=40)
@given(st.integers(1, 10**5), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
@example(200, 0.0, 0.95)
@example(10**6, 0.0, 0.95)
@example(10**6, 3e-6, 0.95)
@example(1, 1.0, 0.95)
def test_rates_have_the_interval_of_clopper_and_pearson(trials: int, share: float, confidence: float) -> None:
    errors = round(share * trials)
    found = bounded_mean_interval(torch.tensor([0, 1]), torch.tensor([trials - errors, errors]), confidence=confidence)
    exact = clopper_pearson(errors, trials, confidence=confidence)
    assert found == pytest.approx(exact, abs=2e-3 * (exact[1] - exact[0]))


@pytest.mark.parametrize("seed", range(6))
def test_ends_are_quantiles_of_means_with_uniform_weights(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = np.concatenate([[-1.0, 9.0], 8 * generator.random(5) ** 3])
    counts = np.concatenate([[0, 0], generator.integers(1, 2 + 4**seed, 5)])
    per = generator.random(7) if seed % 2 else np.ones(7)
    low, high = bounded_mean_interval(*(torch.from_numpy(each) for each in (values, counts)), per=torch.from_numpy(per))
    for end, sign in ((low, -1), (high, 1)):
        surplus = sign * (values - end * per)
        weights = generator.gamma(np.append(counts, 1), size=(200_000, 8))
        beyond = (weights @ np.append(surplus, surplus.max()) > 0).mean()
        assert beyond == pytest.approx(0.025, abs=4 * (0.025 / 200_000) ** 0.5)


def test_the_interval_moves_with_the_values() -> None:
    counts = torch.tensor([180, 17, 3])
    low, high = bounded_mean_interval(COSTS, counts)
    assert bounded_mean_interval(5 + 2 * COSTS, counts) == pytest.approx((5 + 2 * low, 5 + 2 * high))
    assert bounded_mean_interval(-COSTS, counts) == pytest.approx((-high, -low))
    assert bounded_mean_interval(COSTS, counts, per=torch.full((3,), 4.0)) == pytest.approx((low / 4, high / 4))
    assert low < (COSTS @ counts.float()).item() / 200 < high


@pytest.mark.parametrize(("rows", "dear"), [(200, 0.4), (1000, 1.0), (500, 2.5)])
def test_errors_that_are_too_rare_to_be_seen_are_within_the_interval(rows: int, dear: float) -> None:
    """A resample of rows never holds an error that the rows do not hold."""
    shares = np.array([0.9 - dear / rows, 0.1, dear / rows])
    drawn = np.random.default_rng(0).multinomial(rows, shares, size=60)
    ends = [bounded_mean_interval(COSTS, torch.from_numpy(counts)) for counts in drawn]
    mean = (shares * COSTS.numpy()).sum()
    assert sum(low <= mean <= high for low, high in ends) >= 55, "57 or more of 60 are expected"


def test_a_ratio_of_nothing_is_unknown() -> None:
    found = bounded_mean_interval(torch.tensor([0.0, 1.0]), torch.tensor([3, 0]), per=torch.tensor([0.0, 1.0]))
    assert found == (-torch.inf, torch.inf)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"values": torch.tensor([0.0, torch.nan, 2.0])}, "values must be finite numbers (K,)"),
        ({"counts": torch.tensor([1, 2])}, "counts must be finite numbers (K,), as many as values"),
        ({"counts": torch.tensor([1.5, 2.0, 0.0])}, "counts must be whole numbers from 0 on"),
        ({"counts": torch.tensor([-1, 2, 0])}, "counts must be whole numbers from 0 on"),
        ({"counts": torch.zeros(3)}, "counts must be whole numbers from 0 on, of which one is above 0."),
        ({"per": torch.tensor([1.0, 1.0, -2.0])}, "per must be at least 0, but got -2."),
        ({"confidence": 1.0}, "confidence must be above 0 and below 1, but got 1.0."),
    ],
)
def test_wrong_arguments_are_refused(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        bounded_mean_interval(**{"values": COSTS, "counts": torch.tensor([1, 1, 0]), **changed})
