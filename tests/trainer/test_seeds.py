"""Means over seeds and their intervals."""

from math import inf, nan
from statistics import NormalDist

import pytest
from scipy import stats

from mpcs_torch.trainer.seeds import mean_over_seeds


@pytest.mark.parametrize("seeds", [3, 5, 20])
def test_the_interval_of_a_mean_is_that_of_students_t(seeds: int) -> None:
    values = NormalDist(3, 2).samples(seeds, seed=seeds)
    mean, count, interval = mean_over_seeds(values)
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert count == seeds
    assert mean == pytest.approx(sum(values) / seeds)
    assert interval == pytest.approx(tuple(expected))


@pytest.mark.parametrize("values", [[1.0], [1.0, 2.0], [2.0, 2.0, 2.0], [1.0, 2.0, inf], [1.0, nan, 2.0]])
def test_few_equal_or_infinite_values_have_no_interval(values: list[float]) -> None:
    assert mean_over_seeds(values).interval is None
