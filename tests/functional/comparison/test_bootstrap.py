"""Intervals against scipy's bootstrap, and the t-test of differences against its formula."""

import re
from math import inf, sqrt
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from torch import Tensor

from mpcs_torch.functional import (
    Resamples,
    bootstrap_interval,
    cllr_statistic,
    equal_error_statistic,
    mcnemar_test,
    mean_statistic,
    paired_bootstrap,
)


def two_systems(samples: int = 200, gain: float = 0.3) -> tuple[Tensor, Tensor]:
    normal = torch.randn(3, samples, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return normal[0] + normal[1], normal[0] + normal[2] + gain


def test_a_paired_difference_is_close_to_that_of_scipy() -> None:
    first, second = two_systems()

    def statistic(a: Any, b: Any, axis: int) -> Any:
        return np.mean(b, axis=axis) - np.mean(a, axis=axis)

    theirs = stats.bootstrap(
        (first.numpy(), second.numpy()), statistic, paired=True, n_resamples=4000, method="percentile", rng=0
    ).confidence_interval
    found = paired_bootstrap(mean_statistic(first), mean_statistic(second), Resamples(200, number=4000))
    assert (found.low, found.high) == pytest.approx(tuple(theirs), abs=0.02)
    expected = stats.ttest_rel(second.numpy(), first.numpy())
    assert found.difference == pytest.approx((second - first).mean().item())
    assert found.p_value == pytest.approx(expected.pvalue, rel=0.35)  # the spread of 4000 resamples is a little off
    ends = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=0.01)


def test_few_clusters_have_the_t_interval_of_their_means() -> None:
    """Ten clusters of equal size: their means are independent, and their t-interval is exact."""
    values = torch.randn(10, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    clusters = torch.arange(10).repeat_interleave(50)
    resamples = Resamples(500, number=20000, clusters=clusters)
    found = paired_bootstrap(mean_statistic(torch.zeros(500)), mean_statistic(values[clusters]), resamples)
    expected = stats.ttest_1samp(values.numpy(), 0)
    ends = expected.confidence_interval()
    assert (found.low, found.high) == pytest.approx((ends.low, ends.high), abs=0.02)
    assert found.p_value == pytest.approx(expected.pvalue, rel=0.1)
    low, high = bootstrap_interval(mean_statistic(values[clusters]), resamples)
    width = 2 * 1.96 * values.std().item() / sqrt(10)
    assert high - low > 1.05 * width


def test_interval_and_p_value_agree() -> None:
    first, second = two_systems()
    statistics, resamples = (mean_statistic(first), mean_statistic(second)), Resamples(200)
    p_value = paired_bootstrap(*statistics, resamples).p_value
    just = paired_bootstrap(*statistics, resamples, confidence=1 - p_value)
    assert just.low == pytest.approx(0, abs=1e-9)


def test_the_same_system_twice_does_not_differ() -> None:
    labels = torch.arange(100) % 3 == 0
    statistic = equal_error_statistic(torch.randn(100, generator=torch.Generator().manual_seed(0)), labels)
    found = paired_bootstrap(statistic, statistic, Resamples(100, strata=labels))
    assert found[2:] == (0, 0, 0, 1)


def test_a_constant_difference_has_the_p_value_of_the_sign_test() -> None:
    clusters = torch.tensor([0, 0, 1, 1, 2, 2, 3, 3])
    statistics = mean_statistic(torch.zeros(8)), mean_statistic(torch.full((8,), 0.1))
    found = paired_bootstrap(*statistics, Resamples(8, clusters=clusters))
    assert found.p_value == 1 / 8
    assert found.low == found.high == pytest.approx(0.1)


def test_rare_errors_need_the_exact_test() -> None:
    """Of 8 samples that one system alone got wrong, the same one has 7 or all in 7 %, if both are wrong as often."""
    one, seven = torch.arange(300) == 299, torch.arange(300) < 7
    assert paired_bootstrap(mean_statistic(one), mean_statistic(seven), Resamples(300)).p_value < 0.04
    assert mcnemar_test(one, seven).p_value == pytest.approx(0.0703125)


def test_infinite_costs_show_no_difference() -> None:
    labels = torch.arange(40) % 2 == 0
    scores = torch.where(labels, 2.0, -2.0)
    worse = scores.clone()
    worse[0] = -inf
    drawn = Resamples(40, strata=labels)
    found = paired_bootstrap(cllr_statistic(scores, labels), cllr_statistic(worse, labels), drawn)
    assert found[2:] == (inf, -inf, inf, 1)
    assert bootstrap_interval(cllr_statistic(worse, labels), drawn)[1] == inf


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_no_confidence_is_refused(confidence: float) -> None:
    statistic, message = mean_statistic(torch.ones(4)), re.escape("confidence must be between 0 and 1")
    with pytest.raises(ValueError, match=message):
        bootstrap_interval(statistic, Resamples(4), confidence=confidence)
    with pytest.raises(ValueError, match=message):
        paired_bootstrap(statistic, statistic, Resamples(4), confidence=confidence)
