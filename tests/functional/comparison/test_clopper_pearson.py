"""Intervals of error rates against the oracle and scipy."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from mpcs_torch.functional import clopper_pearson, meets_rule_of_30
from tests.conftest import load_oracle

ROWS = load_oracle("detection_cases")["meta"]


@pytest.mark.parametrize("row", ROWS["clopper_pearson"]["rows"], ids=lambda row: f"{row['errors']} of {row['trials']}")
def test_clopper_pearson_equals_the_oracle(row: dict[str, Any]) -> None:
    ours = clopper_pearson(row["errors"], row["trials"], confidence=1 - row["alpha"])
    assert ours == pytest.approx(row["interval"], abs=1e-9)


def test_thirty_errors_are_enough() -> None:
    assert [meets_rule_of_30(errors) for errors in (0, 29, 30, 31)] == [False, False, True, True]


@given(st.data(), st.floats(0.01, 0.99))
def test_clopper_pearson_equals_that_of_scipy(data: st.DataObject, confidence: float) -> None:
    trials = data.draw(st.integers(1, 10**7))
    errors = data.draw(st.one_of(st.integers(0, trials), st.sampled_from([0, trials])))
    expected = binomtest(errors, trials).proportion_ci(confidence, method="exact")
    found = clopper_pearson(errors, trials, confidence=confidence)
    assert found == pytest.approx((expected.low, expected.high), rel=1e-9, abs=1e-11)  # theirs is a root to 2e-12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: clopper_pearson(0, 0), "trials must be at least 1, but got 0."),
        (lambda: clopper_pearson(4, 3), "errors must be from 0 to trials (3), but got 4."),
        (lambda: clopper_pearson(-1, 3), "errors must be from 0 to trials (3), but got -1."),
        (lambda: clopper_pearson(1, 3, confidence=95), "confidence must be above 0 and below 1, but got 95."),
    ],
)
def test_wrong_arguments_are_refused(call: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
