"""Dangerous errors, counted one by one in plain Python."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.functional import dangerous_errors

LABELS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


@given(LABELS, st.lists(st.booleans(), min_size=16, max_size=16))
def test_counts_are_those_of_a_loop(pairs: list[tuple[int, int]], released: list[bool]) -> None:
    preds, target = torch.tensor(pairs).t()
    counts = dangerous_errors(preds, target, released=torch.tensor(released).reshape(4, 4))
    errors = [(predicted, true) for predicted, true in pairs if predicted != true]
    assert counts.samples == len(pairs)
    assert counts.errors == len(errors)
    assert counts.dangerous == sum(not released[4 * true + predicted] for predicted, true in errors)


def test_scores_predict_their_highest_class_the_lower_of_equals() -> None:
    released = torch.zeros(3, 3, dtype=torch.bool)
    scores = torch.tensor([[-1.0, -1.0, -5.0], [0.0, 3.0, 3.0]])
    assert dangerous_errors(scores, torch.tensor([0, 1]), released=released).errors == 0


def test_ignored_samples_count_for_nothing() -> None:
    released = torch.zeros(2, 2, dtype=torch.bool)
    counts = dangerous_errors(torch.tensor([0, 1, 1]), torch.tensor([0, 0, -1]), released=released, ignore_index=-1)
    assert tuple(map(int, counts)) == (1, 1, 2)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"released": torch.ones(2, 2)}, r"released must be a bool \(C, C\) matrix, but got torch.float32"),
        ({"released": torch.ones(2, 3).bool()}, r"released must be a bool \(C, C\) matrix, .* shape \(2, 3\)"),
        ({"target": torch.tensor([0, 2])}, "target must hold class indices from 0 to 1 .*, but sample 1 has 2"),
        ({"preds": torch.tensor([5, 0])}, "preds must hold class indices from 0 to 1, .* but sample 0 has 5"),
        ({"preds": torch.tensor([[0.1, float("nan")], [0, 1]])}, "preds must hold .* scores without NaN, but sample 0"),
        ({"preds": torch.tensor([0, 1, 0])}, r"target must have shape \(3,\) to match preds, but got \(2,\)"),
        ({"preds": torch.rand(2, 3)}, "preds must have 2 classes in dimension 1"),
    ],
)
def test_wrong_input_is_named(changed: dict[str, Any], message: str) -> None:
    released = torch.zeros(2, 2, dtype=torch.bool)
    arguments = {"preds": torch.tensor([0, 1]), "target": torch.tensor([0, 1]), "released": released, **changed}
    with pytest.raises(ValueError, match=message):
        dangerous_errors(**arguments)
