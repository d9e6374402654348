"""McNemar's test against scipy's binomial test, and Holm's correction against its definition."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from torch import Tensor

from mpcs_torch.functional import holm_adjusted, mcnemar_test


def wrong(both: int, only_first: int, only_second: int) -> tuple[Tensor, Tensor]:
    kinds = torch.tensor([3] * both + [1] * only_first + [2] * only_second + [0] * 5)
    return kinds % 2 == 1, kinds >= 2


@given(st.integers(0, 4), st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_a_binomial_test_of_the_samples_that_one_system_got_wrong(both: int, b: int, c: int) -> None:
    found = mcnemar_test(*wrong(both, b, c))
    assert (found.only_first, found.only_second) == (b, c)
    expected = binomtest(b, b + c).pvalue if b + c else 1.0
    assert found.p_value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        (torch.ones(2), torch.ones(2, dtype=torch.bool), "first must be bools (N,), but got torch.float32 (2,)."),
        (torch.ones(2) > 0, torch.ones(2, 1) > 0, "second must be bools (N,), but got torch.bool (2, 1)."),
        (torch.ones(2) > 0, torch.ones(3) > 0, "first and second must hold the same samples, but got 2 and 3."),
    ],
)
def test_mcnemar_refuses_other_tensors(first: Tensor, second: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        mcnemar_test(first, second)


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


@pytest.mark.parametrize(("p_values", "given"), [([0.1, float("nan")], "nan"), ([-0.1], "-0.1"), ([0.2, 1.5], "1.5")])
def test_holm_refuses_values_that_are_no_probabilities(p_values: list[float], given: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"p_values must be in [0, 1], but got {given}.")):
        holm_adjusted(torch.tensor(p_values))


def test_holm_refuses_a_matrix() -> None:
    with pytest.raises(ValueError, match=re.escape("p_values must be floating point (M,)")):
        holm_adjusted(torch.ones(2, 2))


def test_mcnemar_takes_arrays() -> None:
    first, second = torch.tensor([True, True, False]), torch.tensor([False, False, True])
    assert mcnemar_test(first.numpy(), second.numpy()) == mcnemar_test(first, second)
