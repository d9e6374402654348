"""Picking the best turn of a column."""

import pytest

from mpcs_torch.trainer.records import pick


def test_accuracy_is_picked_high_and_mpcs_low() -> None:
    records = [{"turn": 1, "accuracy": 0.5, "mpcs": 0.2}, {"turn": 2, "accuracy": 0.9, "mpcs": 0.8}]
    assert pick(records, "accuracy") == 2
    assert pick(records, "mpcs") == 1


def test_the_first_of_equals_is_picked() -> None:
    assert pick([{"turn": turn, "mpcs": 0.5} for turn in (1, 2, 3)], "mpcs") == 1


def test_nan_is_never_picked() -> None:
    records = [{"turn": 1, "mpcs": float("nan")}, {"turn": 2, "mpcs": 3.0}]
    assert pick(records, "mpcs") == 2
    with pytest.raises(ValueError, match=r"column mpcs must hold a number in some turn, but is NaN in all 1"):
        pick(records[:1], "mpcs")
