"""A short form of `tests.benchmarks.comparisons`: tests keep their level, and trials that share need clusters."""

import pytest

from mpcs_torch.functional import OperatingPoint, cost_interval
from tests.benchmarks import comparisons, cost_intervals


def test_equal_systems_are_rarely_called_different_and_better_ones_often() -> None:
    null = comparisons.rejections(60, 200, is_null=True)
    assert max(null.values()) <= 0.15  # 0.05, plus more than three standard errors
    power = comparisons.rejections(20, 200, is_null=False)
    assert all(power[name] >= 0.6 for name in ("equal error rate", "Cllr", "MPCS"))


def test_intervals_of_trials_that_share_speakers_need_clusters() -> None:
    held = comparisons.cluster_coverage(50, 40, 200)
    assert held["Cllr, speakers"] >= 0.85
    assert held["Cllr, speakers"] > held["Cllr, trials"] + 0.03


def test_the_cost_interval_holds_the_cost_with_its_confidence() -> None:
    held, width, bonferroni = cost_intervals.coverage_of(30, 100, 0.1, 0.03, OperatingPoint(0.1))
    assert held >= 0.95
    assert width < bonferroni


def test_the_simulated_cost_intervals_are_those_of_the_function() -> None:
    point = OperatingPoint(0.1)
    low, high, _ = cost_intervals.ends_of(range(3, 5), 30, range(7, 9), 100, point)
    assert (low[1, 1], high[1, 1]) == pytest.approx(cost_interval(4, 30, 8, 100, point=point, normalize=False))
