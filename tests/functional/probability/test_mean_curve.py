"""Generalized means over their power and their floor."""

import math
import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mpcs_torch.functional import (
    decisiveness,
    generalized_mean,
    generalized_mean_curve,
    geometric_accuracy,
    robustness,
)
from tests.conftest import load_oracle
from tests.functional.probability.test_generalized import bins_of
from tests.oracles import naive

TABLE_2 = load_oracle("generalized_cases")["paper_table2_identity"]
LOGITS = 3 * torch.randn(200, 4, generator=torch.Generator().manual_seed(0)).double()
TARGET = torch.arange(200) % 4


def test_the_curve_passes_through_the_three_means_of_the_paper() -> None:
    curve = generalized_mean_curve(LOGITS, TARGET, num_classes=4, powers=(-2 / 3, 0, 1))
    measured = bins_of(LOGITS, TARGET, num_classes=4).means
    for place, mean in enumerate((robustness, geometric_accuracy, decisiveness)):
        assert curve.reported[place].item() == pytest.approx(mean(LOGITS, TARGET, num_classes=4).item())
        assert curve.measured[place].item() == pytest.approx(getattr(measured, mean.__name__).item())


def test_other_powers_are_those_of_the_definition_and_both_curves_rise() -> None:
    settings: dict[str, Any] = {"epsilon": 0.01, "n_bins": 7, "delta": None, "span": "unit"}
    curve = generalized_mean_curve(LOGITS, TARGET, num_classes=4, **settings)
    probs = LOGITS.softmax(1)[torch.arange(200), TARGET].tolist()
    bins = bins_of(LOGITS, TARGET, num_classes=4, **settings)
    for power, reported, measured in zip(*(values.tolist() for values in curve), strict=True):
        assert reported == pytest.approx(naive.generalized_mean(probs, power, 0.01))
        assert measured == pytest.approx(
            naive.generalized_mean(bins.rate.tolist(), power, 0.01, weights=bins.correct.tolist())
        )
    assert 0 in curve.power.tolist()
    assert (curve.reported.diff() > 0).all()
    assert (curve.measured.diff() > 0).all()


def test_ignored_samples_do_not_count_and_the_mean_of_none_is_nan() -> None:
    spoilt = torch.cat([TARGET[:100], torch.full((100,), -1)])
    ours = generalized_mean_curve(LOGITS, spoilt, num_classes=4, ignore_index=-1)
    for value, alone in zip(ours, generalized_mean_curve(LOGITS[:100], TARGET[:100], num_classes=4), strict=True):
        assert torch.allclose(value, alone)
    none = generalized_mean_curve(LOGITS[:0], TARGET[:0], num_classes=4)
    assert none.reported.isnan().all()
    assert none.measured.isnan().all()


@pytest.mark.parametrize(("power", "mean"), [(1e-15, 0.6), (-1e-9, 0.6), (1e5, 0.9), (-2000.0, 0.4)])
def test_tiny_and_huge_powers_keep_their_means(power: float, mean: float) -> None:
    assert generalized_mean(torch.tensor([0.9, 0.4]).double(), power).item() == pytest.approx(mean, rel=1e-3)


def shares(epsilon: list[float], robust: list[float], geometric: list[float]) -> list[list[float]]:
    """The share of probabilities that a floor lifts, from the change of log G, and from that of R^(-2/3)."""
    found = []
    for values, of in ((geometric, math.log), (robust, lambda x: x ** (-2 / 3))):
        means, floors = [of(value) for value in values], [of(value) for value in epsilon]
        pairs = zip(means, means[1:], floors, floors[1:], strict=False)
        found.append([(high - low) / (above - below) for high, low, above, below in pairs])
    return found


def test_floors_in_the_papers_table_2_lift_one_to_two_percent_of_the_probabilities() -> None:
    of_geometric, of_robust = shares(TABLE_2["eps"], TABLE_2["R"], TABLE_2["G"])
    assert of_geometric == pytest.approx(TABLE_2["share_from_G"], abs=5e-5)
    assert of_robust == pytest.approx(TABLE_2["share_from_R"], abs=5e-5)


@given(seed=st.integers(0, 10**6))
def test_a_floor_changes_the_means_by_the_share_that_it_lifts(seed: int) -> None:
    probs = torch.rand(500, generator=torch.Generator().manual_seed(seed)).double() ** 4
    robust, geometric = (
        [generalized_mean(probs, power, epsilon).item() for epsilon in TABLE_2["eps"]] for power in (-2 / 3, 0.0)
    )
    lifted = [(probs < epsilon).double().mean().item() for epsilon in TABLE_2["eps"]]
    for found in shares(TABLE_2["eps"], robust, geometric):
        for share, most, fewest in zip(found, lifted, lifted[1:], strict=False):
            assert fewest - 1e-9 <= share <= most + 1e-9


@pytest.mark.parametrize("powers", [(), (1.0, math.inf)])
def test_powers_are_checked(powers: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match=re.escape(f"powers must be finite and at least one, but got {powers}.")):
        generalized_mean_curve(LOGITS, TARGET, num_classes=4, powers=powers)
