"""Intervals of rates, of bounded means and by the jackknife, against oracles, scipy, and simulated truths."""

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, ttest_1samp

from mpcs_torch.functional import (
    bounded_mean_interval,
    clopper_pearson,
    jackknife_interval,
    soft_f1,
)
from mpcs_torch.functional.comparison.means import estimate_mean
from tests.refused import Refused


@given(st.data(), st.floats(0.01, 0.99))
def test_clopper_pearson_equals_that_of_scipy(
    data: st.DataObject, confidence: float
) -> None:
    trials = data.draw(st.integers(1, 10**7))
    errors = data.draw(st.one_of(st.integers(0, trials), st.sampled_from([0, trials])))
    expected = binomtest(errors, trials).proportion_ci(confidence, method="exact")
    found = clopper_pearson(errors, trials, confidence=confidence)
    # SciPy finds the root to 2e-12.
    assert found == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-11)


COSTS = torch.tensor([0.0, 1.0, 100.0])


@settings(max_examples=40)
@given(st.integers(1, 10**5), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
@example(200, 0.0, 0.95)
@example(10**6, 0.0, 0.95)
@example(10**6, 3e-6, 0.95)
@example(1, 1.0, 0.95)
def test_rates_have_the_interval_of_clopper_and_pearson(
    trials: int, share: float, confidence: float
) -> None:
    errors = round(share * trials)
    found = bounded_mean_interval(
        torch.tensor([0, 1]), torch.tensor([trials - errors, errors]), confidence=confidence
    )
    exact = clopper_pearson(errors, trials, confidence=confidence)
    assert found == pytest.approx(exact, abs=2e-3 * (exact[1] - exact[0]))


def test_changes_of_1_or_minus_1_have_the_interval_of_a_rate_scaled_to_their_range() -> (
    None
):
    changes = torch.tensor([1.0] * 7 + [-1.0] * 13, dtype=torch.float64)
    rate = binomtest(7, 20).proportion_ci(0.9, method="exact")
    found = estimate_mean(changes, (-1.0, 1.0), None).interval(0.9)
    assert found == pytest.approx((2 * rate.low - 1, 2 * rate.high - 1))


@pytest.mark.parametrize("seed", range(6))
def test_ends_are_quantiles_of_means_with_uniform_weights(seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = np.concatenate([[-1.0, 9.0], 8 * generator.random(5) ** 3])
    counts = np.concatenate([[0, 0], generator.integers(1, 2 + 4**seed, 5)])
    per = generator.random(7) if seed % 2 else np.ones(7)
    low, high = bounded_mean_interval(
        *(torch.from_numpy(each) for each in (values, counts)), per=torch.from_numpy(per)
    )
    # Under Dirichlet weights, of which one more is for the worst value, a mean is beyond each end with 2.5 %: the sum
    # of weight * (value - end * per) has the sign of the side.
    for end, sign in ((low, -1), (high, 1)):
        surplus = sign * (values - end * per)
        weights = generator.gamma(np.append(counts, 1), size=(200_000, 8))
        beyond = (weights @ np.append(surplus, surplus.max()) > 0).mean()
        assert beyond == pytest.approx(0.025, abs=4 * (0.025 / 200_000) ** 0.5)


def test_the_interval_moves_with_the_values() -> None:
    counts = torch.tensor([180, 17, 3])
    low, high = bounded_mean_interval(COSTS, counts)
    assert bounded_mean_interval(5 + 2 * COSTS, counts) == pytest.approx(
        (5 + 2 * low, 5 + 2 * high)
    )
    assert bounded_mean_interval(-COSTS, counts) == pytest.approx((-high, -low))
    assert bounded_mean_interval(COSTS, counts, per=torch.full((3,), 4.0)) == pytest.approx(
        (low / 4, high / 4)
    )
    assert low < (COSTS @ counts.float()).item() / 200 < high


@pytest.mark.parametrize("unit", [1e-140, 1e-9, 1e9, 1e140])
def test_the_unit_of_costs_does_not_matter(unit: float) -> None:
    counts = torch.tensor([180, 17, 3])
    low, high = bounded_mean_interval(COSTS, counts)
    scaled = bounded_mean_interval(unit * COSTS.double(), counts)
    assert [end / unit for end in scaled] == pytest.approx([low, high], rel=1e-9)


@pytest.mark.parametrize(("rows", "dear"), [(200, 0.4), (1000, 1.0), (500, 2.5)])
def test_errors_that_are_too_rare_to_be_seen_are_within_the_interval(
    rows: int, dear: float
) -> None:
    """A resample of rows never holds an error that the rows do not hold."""
    shares = np.array([0.9 - dear / rows, 0.1, dear / rows])
    drawn = np.random.default_rng(0).multinomial(rows, shares, size=60)
    ends = [bounded_mean_interval(COSTS, torch.from_numpy(counts)) for counts in drawn]
    mean = (shares * COSTS.numpy()).sum()
    assert sum(low <= mean <= high for low, high in ends) >= 55, (
        "57 or more of 60 are expected"
    )


def test_a_ratio_of_nothing_is_unknown() -> None:
    found = bounded_mean_interval(
        torch.tensor([0.0, 1.0]), torch.tensor([3, 0]), per=torch.tensor([0.0, 1.0])
    )
    assert found == (-torch.inf, torch.inf)


def test_a_ratio_by_hand() -> None:
    """The F1 of three recordings is 3/4, and 1/2, 6/7 and 4/5 without one of them."""
    preds = torch.tensor([1.0, 0.0, 1.0, 1.0, 0.0, 0.0]).double()
    target = torch.tensor([1.0, 1.0, 1.0, 1.0, 1.0, 0.0]).double()
    interval = jackknife_interval(
        partial(f_of, preds, target), torch.tensor([7, 7, 3, 3, 5, 5])
    )
    without = np.array([1 / 2, 6 / 7, 4 / 5])
    estimate = 3 * 3 / 4 - 2 * without.mean()
    width = 4.302652729911275 * (2 * without.var()) ** 0.5
    expected = estimate, estimate - width, estimate + width
    assert [value.item() for value in interval] == pytest.approx(expected, abs=1e-9)


def test_the_interval_of_a_mean_is_the_t_interval_whatever_its_shape() -> None:
    values = torch.randn(12, 3, generator=torch.Generator().manual_seed(0)).double()
    found = jackknife_interval(
        lambda kept: values[kept].mean(dim=0), torch.arange(12), confidence=0.9
    )
    theirs = ttest_1samp(values.numpy(), 0).confidence_interval(0.9)
    assert found.estimate.tolist() == pytest.approx(values.mean(dim=0).tolist())
    assert found.low.tolist() == pytest.approx(theirs.low.tolist())
    assert found.high.tolist() == pytest.approx(theirs.high.tolist())


def f_of(preds: torch.Tensor, target: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
    return soft_f1(preds[kept], target[kept], num_classes=1)


def test_intervals_of_soft_f_over_recordings_hold_the_truth_about_as_often_as_they_say() -> (
    None
):
    """Frames of one recording share an offset: intervals of single frames would be far too narrow."""
    generator = torch.Generator().manual_seed(0)

    def draw(recordings: int) -> tuple[torch.Tensor, torch.Tensor]:
        target = torch.rand(recordings, 20, generator=generator)
        offset = torch.randn(recordings, 1, generator=generator) / 4
        return (target + offset).clamp(0, 1).flatten(), target.flatten()

    truth = soft_f1(*draw(20_000), num_classes=1).item()

    def hits(groups: torch.Tensor, times: int) -> int:
        """Count the intervals that hold the truth."""
        number = 0
        for _ in range(times):
            preds, target = draw(15)
            found = jackknife_interval(partial(f_of, preds, target), groups)
            number += found.low.item() <= truth <= found.high.item()
        return number

    assert hits(torch.arange(15).repeat_interleave(20), times=100) >= 88
    assert hits(torch.arange(300), times=15) <= 10


RATE: dict[str, Any] = {"errors": 1, "trials": 3}
MEAN: dict[str, Any] = {"values": COSTS, "counts": torch.tensor([1, 1, 0])}
GROUPS: dict[str, Any] = {"statistic": torch.sum, "groups": torch.arange(3)}


@pytest.mark.parametrize(
    ("interval", "arguments", "refusal"),
    [
        (clopper_pearson, {**RATE, "trials": 0}, Refused("at_least", "trials", 0)),
        (clopper_pearson, {**RATE, "errors": 4}, Refused("between", "errors", maximum=3)),
        (clopper_pearson, {**RATE, "errors": -1}, Refused("between", "errors", minimum=0)),
        (
            bounded_mean_interval,
            {**MEAN, "values": torch.tensor([0.0, torch.nan, 2.0])},
            Refused("as_many_numbers", "values", other="values"),
        ),
        (
            bounded_mean_interval,
            {**MEAN, "counts": torch.tensor([1, 2])},
            Refused("as_many_numbers", "counts", other="values"),
        ),
        *(
            (bounded_mean_interval, {**MEAN, "counts": counts}, Refused("counts", "counts"))
            for counts in (torch.tensor([1.5, 2, 0]), torch.tensor([-1, 2, 0]), 0 * COSTS)
        ),
        (
            bounded_mean_interval,
            {**MEAN, "per": torch.tensor([1.0, 1.0, -2.0])},
            Refused("at_least", "per", -2.0, minimum=0),
        ),
        (
            jackknife_interval,
            {**GROUPS, "groups": torch.zeros(3)},
            Refused("integer_shape", "groups", shape="(N,)"),
        ),
        (
            jackknife_interval,
            {**GROUPS, "groups": torch.zeros(3).long()},
            Refused("holds_at_least", "groups", 1, minimum=2, unit="groups"),
        ),
        *(
            (interval, {**arguments, "confidence": 1.0}, Refused("open_between"))
            for interval, arguments in (
                (clopper_pearson, RATE),
                (bounded_mean_interval, MEAN),
                (jackknife_interval, GROUPS),
            )
        ),
    ],
)
def test_wrong_arguments_are_refused(
    interval: Any, arguments: dict[str, Any], refusal: Refused
) -> None:
    with refusal:
        interval(**arguments)
