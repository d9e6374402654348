"""Sign flips against scipy's tests, and Holm's correction against its definition."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test

from mpcs_torch.functional import holm_adjusted, sign_flip_test
from tests.refused import Refused


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 5))
def test_sign_flips_of_errors_are_mcnemars_test(
    only_first: int, only_second: int, same: int
) -> None:
    found = sign_flip_test(
        torch.tensor([1.0, -1.0, 0.0]), torch.tensor([only_first, only_second, same + 1])
    )
    differ = only_first + only_second
    assert found == pytest.approx(
        binomtest(only_first, differ).pvalue if differ else 1.0, rel=1e-9
    )


def flipped(values: list[float], draws: float = np.inf) -> float:
    by_chance = permutation_test(
        (values,),
        np.sum,
        permutation_type="samples",
        n_resamples=draws,
        rng=np.random.default_rng(0),
    )
    return float(by_chance.pvalue)


SIXTEENTHS = st.integers(-144, 144).map(lambda count: count / 16)
"""Values whose sums are exact, so that scipy and we agree on which sums are equal."""


@given(st.lists(SIXTEENTHS, min_size=2, max_size=10))
def test_few_sign_flips_are_enumerated(values: list[float]) -> None:
    assert sign_flip_test(torch.tensor(values, dtype=torch.float64)) == pytest.approx(
        flipped(values), abs=1e-9
    )


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("shift", [0.02, 0.2, 0.5])
def test_many_sign_flips_are_those_that_are_drawn(shift: float, is_whole: bool) -> None:
    values = (
        torch.randn(80, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        + shift
    )
    values = (3 * values).round() if is_whole else values
    drawn = flipped(values.tolist(), 100_000)
    deviation = (drawn * (1 - drawn) / 100_000) ** 0.5
    assert sign_flip_test(values) == pytest.approx(drawn, abs=4 * deviation + 2e-5)


def test_a_unit_that_gets_worse_leaves_no_less_evidence() -> None:
    """Of 1 200 patients, 40 are worse by a seventh; then one of them is wrong in all images (a t test: 8e-7)."""
    values = torch.zeros(1200, dtype=torch.float64)
    values[:40] = 1 / 7
    before = sign_flip_test(values)
    values[0] = 1.0
    assert before == pytest.approx(2.0**-39)
    assert sign_flip_test(values) == pytest.approx(before, rel=1e-6)


@pytest.mark.parametrize("counts", [[1, -1], [0, 0], [0.5, 1.0]])
def test_sign_flips_need_whole_counts(counts: list[float]) -> None:
    with Refused("counts", "counts"):
        sign_flip_test(torch.ones(2), torch.tensor(counts))


def naive_holm(p_values: list[float]) -> list[float]:
    """Return the lowest level at which the step-down procedure rejects each hypothesis."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, highest = [0.0] * len(p_values), 0.0
    for rank, place in enumerate(order):
        highest = max(highest, (len(p_values) - rank) * p_values[place])
        adjusted[place] = min(1.0, highest)
    return adjusted


@given(st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.5, 1.0]), max_size=12))
def test_holm_steps_down(p_values: list[float]) -> None:
    given_values = torch.tensor(p_values, dtype=torch.float64)
    adjusted = holm_adjusted(given_values)
    assert adjusted.tolist() == pytest.approx(naive_holm(p_values))
    assert ((adjusted >= given_values) & (adjusted <= 1)).all()
    assert (adjusted[given_values.argsort()].diff() >= 0).all()


@pytest.mark.parametrize("p_values", [[0.1, float("nan")], [-0.1], [0.2, 1.5]])
def test_holm_refuses_values_that_are_no_probabilities(p_values: list[float]) -> None:
    with Refused("between", "p_values", p_values[-1], minimum=0, maximum=1):
        holm_adjusted(torch.tensor(p_values))


def test_holm_refuses_a_matrix() -> None:
    with Refused("float_shape", "p_values", shape="(M,)"):
        holm_adjusted(torch.ones(2, 2))
