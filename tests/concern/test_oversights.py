"""A concern is warned of if it is allowed, but rarely meant."""

from typing import Any

import pytest

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.spec import MAX_PAIRS, oversights

BOTH = [["a", "b"], ["b", "a"]]
MISSED = {"classes": ["a", "b"], "weights": [[0, 1], [50, 0]], "dangerous": 50}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"releases": BOTH}, []),
        ({}, ["no error is released"]),
        ({"classes": ["a", "b"], "releases": BOTH}, ["every error is released"]),
        ({"releases": BOTH, "factor": 1.0}, ["the factor is 1"]),
        (
            {"releases": BOTH[:1]},
            ["a for b is tolerable, b for a is dangerous: one direction"],
        ),
        (
            {"weights": [[0, 1, 0], [1, 0, 1], [1, 1, 0]]},
            ["a for c costs nothing, c for a is dangerous"],
        ),
        ({"weights": [[0, 1, 2], [3, 0, 1], [3, 3, 0]], "dangerous": [["c", "a"]]}, []),
        ({"weights": [[0, 1, 2], [3, 0, 1], [3, 3, 0]], "dangerous": 3}, []),
        (
            {"releases": BOTH, "refer": 1.0},
            ["deciding a never costs more than a referral"],
        ),
        ({**MISSED, "refer": 1}, ["deciding b never costs more than a referral"]),
        ({**MISSED, "refer": 0.9}, []),
        (
            {
                "weights": [[0, 1, 9], [9, 0, 9], [0.2, 0.2, 0]],
                "dangerous": 9,
                "refer": 0.9,
                "answers": {"a or b": 0.3},
            },
            ["deciding a or b never costs more than a referral"],
        ),
        ({"releases": BOTH, "refer": 0}, ["a referral costs nothing"]),
        ({"releases": BOTH, "refer": [0.1, 0.1, 3]}, []),
        (
            {"releases": BOTH, "refer": [0.1, 2, 3]},
            ["deciding a never costs more than a referral"],
        ),
    ],
)
def test_an_oversight_is_named(settings: dict[str, Any], expected: list[str]) -> None:
    found = list(oversights(ConcernSpec(**{"classes": ["a", "b", "c"], **settings})))
    assert len(found) == len(expected)
    assert all(start in sentence for start, sentence in zip(expected, found, strict=True))


def test_a_long_list_is_cut() -> None:
    found = list(
        oversights(ConcernSpec(20, releases=[[0, other] for other in range(1, 20)]))
    )
    assert len(found) == MAX_PAIRS + 1
    assert found[-1] == "... and 9 more pairs are released in one direction only"
