"""The concession in confidence, against its definition in exact arithmetic and Table I of the paper."""

from fractions import Fraction
from math import floor
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.functional import concession_intervals, meta_pattern_concern_score
from tests.conftest import load_oracle
from tests.refused import Refused


def forgives(t: int, concession: Fraction) -> bool:
    """Whether a right class at 1 - concession and a wrong one at concession are both at the top level (Eq. 5, 6)."""
    return floor(t * (1 - concession)) >= t - 1 and floor(t * concession) == 0


@given(st.integers(3, 10**4), st.integers(1, 4999))
def test_it_is_the_largest_number_of_intervals_that_forgives_the_concession(
    denominator: int, numerator: int
) -> None:
    concession = Fraction(numerator, denominator)
    if concession >= Fraction(1, 2):
        return
    t = concession_intervals(float(concession))
    assert forgives(t, concession)
    assert not forgives(t + 1, concession)


@pytest.mark.parametrize("concession", [0.5, 0, -0.1, 1e-9, float("nan"), True, "0.02"])
def test_other_concessions_are_refused(concession: Any) -> None:
    with Refused("from_below", "concession", maximum=0.5):
        concession_intervals(concession)


def test_t_and_concession_are_not_given_together() -> None:
    with Refused("not_with", "concession", 0.02, other="t"):
        meta_pattern_concern_score(
            torch.zeros(1, 3), torch.tensor([0]), num_classes=3, t=50, concession=0.02
        )


@pytest.mark.parametrize("k", [1, 2, 3])
def test_table_i_prefers_b_with_a_concession_and_a_without(k: int) -> None:
    table = load_oracle("paper_tables")["table_1"]
    confidences = {"A": torch.tensor([0.99] * 99 + [0.49]), "B": torch.tensor([0.98] * 100)}
    target = torch.zeros(100, dtype=torch.int64)
    scores: dict[tuple[str, float | None], float] = {}
    for name, confidence in confidences.items():
        # The sum of -log10 is what Table I calls cross entropy.
        assert -confidence.double().log10().sum().item() == pytest.approx(
            table[name]["value"], abs=1e-6
        )
        # The second class has the rest: in A's last sample it is the most probable one.
        probs = torch.stack([confidence, 1 - confidence, torch.zeros(100)], dim=1)
        for concession in (None, 0.02):
            score = meta_pattern_concern_score(
                probs, target, num_classes=3, k=k, concession=concession, from_logits=False
            )
            scores[name, concession] = score.item()
    assert scores["B", 0.02] == 0 < scores["A", 0.02]
    assert scores["A", None] < scores["B", None]
