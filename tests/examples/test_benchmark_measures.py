"""Effects over seeds."""

import numpy as np
import pytest
from scipy.stats import ttest_rel

from examples.benchmark.measures import difference, geometric_mean, reduction

GENERATOR = np.random.default_rng(0)


def test_a_difference_has_the_interval_of_the_paired_t_test() -> None:
    ours, theirs = GENERATOR.normal(size=(2, 8))
    interval = ttest_rel(ours, theirs).confidence_interval()
    found = difference(ours.tolist(), theirs.tolist())
    assert found == pytest.approx((np.mean(ours - theirs), interval.low, interval.high))


def test_intervals_of_reductions_hold_as_often_as_they_say() -> None:
    hits, truth = 0, 0.2
    for _ in range(400):
        hard = GENERATOR.gamma(20, size=20)  # some seeds are harder for both
        theirs = GENERATOR.poisson(2 * hard)
        ours = GENERATOR.poisson(2 * hard * (1 - truth))
        effect = reduction(ours.tolist(), theirs.tolist())
        hits += effect.low <= truth <= effect.high
    # 95 % and about three standard errors of 400 intervals.
    assert 0.91 <= hits / 400 <= 0.985


def test_reductions_of_nothing() -> None:
    assert reduction([0, 0], [0, 0]).value == 0
    assert reduction([1, 0], [0, 0]).value == -np.inf


def test_the_geometric_mean_of_one_task_is_its_reduction() -> None:
    ours, theirs = GENERATOR.uniform(100, 200, size=(2, 20))
    assert geometric_mean([(ours, theirs)]).value == pytest.approx(
        1 - ours.mean() / theirs.mean(), abs=0.01
    )
    halved = geometric_mean([(theirs / 2, theirs), (theirs, theirs)])
    assert halved.value == pytest.approx(1 - 0.5**0.5, abs=0.01)
    assert halved.low < halved.value < halved.high
