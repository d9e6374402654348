"""The interval of a cost, against the intervals of its rates."""

import re
from typing import Any

import pytest
from scipy.stats import binomtest

from mpcs_torch.functional import OperatingPoint, cost_interval

POINT = OperatingPoint(0.1, c_miss=2)


def test_with_one_kind_of_error_alone_it_is_the_interval_of_that_rate() -> None:
    """False alarms that weigh next to nothing leave the interval of the miss rate."""
    theirs = binomtest(7, 50).proportion_ci(method="exact")
    found = cost_interval(7, 50, 3, 50, point=OperatingPoint(1 - 1e-12), normalize=False)
    assert found == pytest.approx((theirs.low, theirs.high), abs=1e-9)


def test_distances_to_the_ends_add_as_squares() -> None:
    miss, alarm = (binomtest(k, n).proportion_ci(confidence_level=0.9, method="exact") for k, n in ((7, 50), (3, 200)))
    low, high = cost_interval(7, 50, 3, 200, point=POINT, normalize=False, confidence=0.9)
    cost = 0.2 * 0.14 + 0.9 * 0.015
    assert low == pytest.approx(cost - ((0.2 * (0.14 - miss.low)) ** 2 + (0.9 * (0.015 - alarm.low)) ** 2) ** 0.5)
    assert high == pytest.approx(cost + ((0.2 * (miss.high - 0.14)) ** 2 + (0.9 * (alarm.high - 0.015)) ** 2) ** 0.5)
    normalized = cost_interval(7, 50, 3, 200, point=POINT, confidence=0.9)
    assert normalized == pytest.approx((low / 0.2, high / 0.2))


def test_no_errors_and_nothing_else_have_closed_ends() -> None:
    assert cost_interval(0, 20, 0, 20, point=OperatingPoint(0.5))[0] == 0
    assert cost_interval(20, 20, 20, 20, point=OperatingPoint(0.5))[1] == pytest.approx(2)


@pytest.mark.parametrize(
    ("counts", "settings", "message"),
    [
        ((3, 2, 0, 5), {}, "errors must be from 0 to trials (2), but got 3."),
        ((0, 2, 0, 0), {}, "trials must be at least 1, but got 0."),
        ((0, 2, 0, 2), {"confidence": 1.0}, "confidence must be above 0 and below 1, but got 1.0."),
    ],
)
def test_wrong_arguments_are_refused(counts: tuple[int, int, int, int], settings: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        cost_interval(*counts, point=POINT, **settings)
