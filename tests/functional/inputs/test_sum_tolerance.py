"""A row of probabilities that one way of reading it accepts is accepted by all."""

from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.evaluation.files.predictions import Predictions
from mpcs_torch.evaluation.files.read_options import ReadOptions
from mpcs_torch.functional import brier_score, shift_priors
from mpcs_torch.functional.inputs.faults import look_like_probabilities
from tests.refused import Refused, refused_file


def is_accepted(thousandths: list[int], dtype: torch.dtype) -> bool:
    probs = torch.tensor([thousandths], dtype=dtype) / 1000
    try:
        brier_score(
            probs, torch.tensor([0]), num_classes=len(thousandths), from_logits=False
        )
    except ValueError:
        return False
    return True


@given(st.lists(st.integers(0, 100), min_size=2, max_size=9), st.integers(-3, 3))
def test_tensors_accept_sums_that_are_off_by_one_thousandth_in_any_type(
    parts: list[int], off: int
) -> None:
    row = [*parts, 1000 + off - sum(parts)]
    for dtype in (torch.float32, torch.float64):
        assert is_accepted(row, dtype) == (abs(off) <= 1)


@pytest.mark.parametrize(
    ("last", "is_fine"), [(334, True), (333, True), (335, True), (300, False)]
)
def test_files_and_priors_accept_the_same_sums(
    last: int, is_fine: bool, tmp_path: Path
) -> None:
    path = tmp_path / "three.csv"
    first = "".join(f"{name},0.3331,0.3329,0.334\n" for name in 200 * "abc")
    path.write_text(f"label,prob_a,prob_b,prob_c\n{first}a,0.3331,0.3329,0.{last}\n")
    priors = torch.tensor([0.3331, 0.3329, last / 1000], dtype=torch.float64)
    even = torch.full((3,), 1 / 3)
    if is_fine:
        rows = Predictions(path, ReadOptions()).rows()
        assert rows.scores.sum(1).tolist() == pytest.approx([1.0] * 601)
        shift_priors(even.unsqueeze(0), training_priors=even, priors=priors)
    else:
        with refused_file("probabilities, row 601"):
            Predictions(path, ReadOptions()).rows()
        with Refused("distribution", "priors"):
            shift_priors(even.unsqueeze(0), training_priors=even, priors=priors)
    assert is_accepted([333, 333, last], torch.float32) == is_fine


@pytest.mark.parametrize(("rows", "expected"), [(1, False), (2, True)])
def test_several_rows_that_sum_to_1_look_like_probabilities(
    rows: int, expected: bool
) -> None:
    logits = torch.tensor([[0.25, 0.75]]).repeat(rows, 1)
    assert look_like_probabilities(logits) == expected
    assert not look_like_probabilities(-logits)
