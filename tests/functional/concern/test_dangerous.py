"""Dangerous errors, counted one by one in plain Python."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch import DangerousErrors
from mpcs_torch.functional import dangerous_errors
from tests.conftest import details
from tests.refused import Refused

LABELS = st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=1, max_size=30)
PAIRS = st.lists(st.booleans(), min_size=16, max_size=16)


@given(LABELS, PAIRS)
def test_counts_and_rates_equal_those_of_a_loop(
    pairs: list[tuple[int, int]], concern: list[bool]
) -> None:
    preds, target = torch.tensor(pairs).t()
    settings: dict[str, Any] = {
        "num_classes": 4,
        "concern": torch.tensor(concern).reshape(4, 4),
    }
    decided = [(predicted, true) for predicted, true in pairs if predicted >= 0]
    errors = [(predicted, true) for predicted, true in decided if predicted != true]
    # The matrix was drawn row by row.
    dangerous = sum(concern[4 * true + predicted] for predicted, true in errors)
    assert details(DangerousErrors(**settings), preds, target) == (
        dangerous,
        len(errors),
        len(decided),
        len(pairs),
    )
    totals: dict[Any, int] = {None: 1, "samples": len(pairs), "errors": max(len(errors), 1)}
    if decided:
        totals["decided"] = len(decided)
    for normalize, total in totals.items():
        value = dangerous_errors(preds, target, **settings, normalize=normalize)
        assert value == dangerous / total


def test_without_concern_every_error_is_dangerous() -> None:
    assert (
        dangerous_errors(torch.tensor([0, 1, 2]), torch.tensor([0, 0, 0]), num_classes=3)
        == 2
    )


def test_a_rate_of_no_errors_is_0_and_one_of_no_samples_is_nan() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    assert dangerous_errors(nothing, nothing, num_classes=2, normalize="errors") == 0
    assert dangerous_errors(nothing, nothing, num_classes=2, normalize="samples").isnan()
    assert dangerous_errors(
        torch.tensor([-1]), torch.tensor([0]), num_classes=2, normalize="decided"
    ).isnan()


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        (
            {"concern": torch.ones(2, 2)},
            Refused("pairs", "concern"),
        ),
        (
            {"sample_weight": torch.tensor([1, -1])},
            Refused("finite_at_least", "sample_weight", -1.0, sample=1, minimum=0),
        ),
        ({"normalize": "all"}, Refused("one_of", "normalize", "all")),
        (
            {"preds": torch.tensor([[0.1, float("nan")], [0, 1]])},
            Refused("decisions_or_scores", "preds", float("nan"), sample=0),
        ),
        ({"preds": torch.tensor([0, 1, 0])}, Refused("shape", "target", shape=(3,))),
    ],
)
def test_errors_name_the_wrong_argument(changed: dict[str, Any], refusal: Refused) -> None:
    arguments = {
        "preds": torch.tensor([0, 1]),
        "target": torch.tensor([0, 1]),
        "num_classes": 2,
        **changed,
    }
    with refusal:
        dangerous_errors(**arguments)
