"""Intervals of costs hold the cost, in a short form of `benchmarks.cost_intervals`."""

import pytest

from benchmarks import cost_intervals
from mpcs_torch.functional import OperatingPoint
from tests.oracles import naive_detection


def test_the_cost_interval_holds_the_cost_with_its_confidence() -> None:
    held, width, bonferroni = cost_intervals.coverage_of(
        30, 100, 0.1, 0.03, OperatingPoint(0.1)
    )
    assert held >= 0.95
    assert width < bonferroni


def test_the_simulated_cost_intervals_are_those_of_the_oracle() -> None:
    point = OperatingPoint(0.1)
    low, high, _ = cost_intervals.ends_of(range(3, 5), 30, range(7, 9), 100, point)
    assert (low[1, 1], high[1, 1]) == pytest.approx(
        naive_detection.cost_interval((4, 30), (8, 100), (0.1, 0.9))
    )
