"""Regret and ranges of costs, against plain Python over all corners and 10 000 draws of costs."""

import re
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch.functional import least_concern_decision, mean_cost_range, minimax_regret_decision, worst_regret
from mpcs_torch.functional.concern.regret import checked_bounds, least_regret

DRAWS = 10_000
COSTS = (0.0, 0.25, 0.5, 1.0, 1.0, 3.0)
"""Of few values, so that costs, columns and expected costs are often equal."""


def draw_case(seed: int, boxes: int = 2, classes: int = 3, further: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Return probabilities with zeros and ties, and boxes of costs, some of whose ranges have no width."""
    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(0, 4, (40, classes), generator=generator).double()
    counts[:, int(torch.randint(0, classes, (1,), generator=generator))] *= seed % 3 > 0  # an absent class
    counts[counts.sum(1) == 0, 0] = 1
    shape = (boxes, classes, classes + further)
    values = torch.tensor(COSTS, dtype=torch.float64)
    ends = [values[torch.randint(0, len(values), shape, generator=generator)] for _ in range(2)]
    low, high = torch.minimum(*ends), torch.maximum(*ends)
    is_known = torch.rand(shape, generator=generator) < 0.3
    low = torch.where(is_known, high, low)
    low[:, 0, 1], high[:, 0, 1] = low[:, 0, 1].clamp(min=0.25), high[:, 0, 1].clamp(min=0.25)
    if seed % 4 == 0:  # two columns that are always the same
        for bound in (low, high):
            bound[..., 1] = bound[..., 0]
            bound[:, 0, 1] = bound[:, 1, 0] = 0.25
    return counts / counts.sum(1, keepdim=True), low, high


def drawn_costs(low: Tensor, high: Tensor, draws: int, seed: int) -> Tensor:
    """Draw matrices of the hull of boxes, many of them corners and mixtures of two: (draws, C, K)."""
    generator = torch.Generator().manual_seed(seed)
    shape = (draws, *low.shape)
    where = torch.rand(shape, generator=generator, dtype=torch.float64)
    where = torch.where(torch.rand(draws, 1, 1, 1, generator=generator) < 0.5, where.round(), where)
    shares = torch.rand(draws, len(low), generator=generator, dtype=torch.float64) ** 4
    shares = shares / shares.sum(1, keepdim=True)
    costs = (shares[..., None, None] * (low + where * (high - low))).sum(1)
    diagonal = torch.eye(*low.shape[1:], dtype=torch.bool)
    return torch.where(diagonal, 0.0, costs)


def naive_worst_regrets(row: list[float], low: list, high: list) -> list[float]:
    """Return the worst regret of each decision over all corners of all boxes."""
    classes, columns = len(low[0]), len(low[0][0])
    cells = [(i, j) for i in range(classes) for j in range(columns) if i != j]
    worst = [0.0] * columns
    for box in range(len(low)):
        for corner in product(*(sorted({low[box][i][j], high[box][i][j]}) for i, j in cells)):
            costs = [0.0] * columns
            for (i, j), cost in zip(cells, corner, strict=True):
                costs[j] += row[i] * cost
            worst = [max(old, cost - min(costs)) for old, cost in zip(worst, costs, strict=True)]
    return worst


@given(seed=st.integers(0, 10**6))
@settings(max_examples=25)
def test_the_worst_regret_is_that_of_all_corners(seed: int) -> None:
    probs, low, high = draw_case(seed)
    regrets = worst_regret(probs, low, high, from_logits=False)
    for row, found in zip(probs[:3].tolist(), regrets.tolist(), strict=False):
        assert found == pytest.approx(naive_worst_regrets(row, low.tolist(), high.tolist()), abs=1e-12)


@given(seed=st.integers(0, 10**6), boxes=st.integers(1, 3), further=st.sampled_from([0, 1, 2]))
def test_a_range_without_width_gives_the_decision_of_least_cost(seed: int, boxes: int, further: int) -> None:
    probs, _, high = draw_case(seed, 1, further=further)
    same = high.expand(boxes, -1, -1)
    usual = least_concern_decision(probs, concern=high[0], from_logits=False)
    assert torch.equal(minimax_regret_decision(probs, same, same, from_logits=False), usual)
    logits = probs.clamp(min=1e-30).log().float()
    usual = least_concern_decision(logits, concern=high[0])
    assert torch.equal(minimax_regret_decision(logits, same, same), usual)
    assert least_regret(probs, *checked_bounds(same, same, probs.device)).is_settled.all()


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("boxes", "further"), [(1, 0), (1, 1), (3, 1), (2, 2)])
def test_what_is_said_for_all_costs_holds_for_ten_thousand_draws(seed: int, boxes: int, further: int) -> None:
    probs, low, high = draw_case(seed, boxes, further=further)
    low, high = checked_bounds(low, high, probs.device)
    decided = least_regret(probs, low, high)
    costs = drawn_costs(low, high, DRAWS, seed)
    expected = torch.einsum("nc,dck->dnk", probs, costs)
    cost = expected.gather(-1, decided.decision.expand(DRAWS, -1).unsqueeze(-1)).squeeze(-1)
    regret = cost - expected.amin(-1)
    assert (regret <= decided.regret + 1e-12).all()
    assert (regret[:, decided.is_settled] < 1e-12).all()
    # If it is not settled, some costs of the set are against every decision: here, corners of the boxes.
    others = worst_regret(probs, low, high, from_logits=False)[~decided.is_settled]
    assert (others > 0).all()
    middle = (low + high).mean(0) / 2
    usual = least_concern_decision(probs, concern=middle, from_logits=False)
    ours = minimax_regret_decision(probs, low, high, from_logits=False)
    assert torch.equal(usual[decided.is_settled], ours[decided.is_settled])

    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(-3, 4, low.shape[1:], generator=generator)
    lowest, highest = mean_cost_range(counts, low, high)
    totals = (counts * costs).sum((1, 2))
    assert totals.min() >= lowest - 1e-12
    assert totals.max() <= highest + 1e-12


def test_the_range_of_a_cost_is_reached_at_its_ends() -> None:
    _, low, high = draw_case(3, 2)
    counts = torch.tensor([[5, -2, 1], [0, 3, -4], [2, 2, 2]])
    for place, choose in ((0, min), (1, max)):
        ends = [
            sum(
                choose(int(counts[i, j]) * low[box, i, j].item(), int(counts[i, j]) * high[box, i, j].item())
                for i in range(3)
                for j in range(3)
                if i != j
            )
            for box in range(2)
        ]
        assert mean_cost_range(counts, low[..., :3], high[..., :3])[place].item() == pytest.approx(choose(ends))


@given(seed=st.integers(0, 10**6))
def test_of_two_decisions_and_one_box_the_middle_costs_decide_alike(seed: int) -> None:
    probs, low, high = draw_case(seed, 1, classes=2, further=0)
    usual = least_concern_decision(probs, concern=(low[0] + high[0]) / 2, from_logits=False)
    assert torch.equal(minimax_regret_decision(probs, low, high, from_logits=False), usual)


def test_scales_and_orders_of_boxes_change_no_decision() -> None:
    probs, low, high = draw_case(5, 3)
    decided = minimax_regret_decision(probs, low, high, from_logits=False)
    for scale in (1e-300, 1e290):
        assert torch.equal(minimax_regret_decision(probs, low * scale, high * scale, from_logits=False), decided)
    assert torch.equal(minimax_regret_decision(probs, low.flip(0), high.flip(0), from_logits=False), decided)


def test_extra_dimensions_stay() -> None:
    low, high = torch.ones(3, 4), torch.full((3, 4), 2.0)
    assert minimax_regret_decision(torch.zeros(2, 3, 5), low, high).shape == (2, 5)
    assert worst_regret(torch.zeros(2, 3, 5), low, high).shape == (2, 5, 4)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        (torch.ones(3, 3), torch.ones(3, 4), "low and high must have one shape, (C, K) or (V, C, K), but got (3, 3)"),
        (torch.full((3, 3), 2.0), torch.ones(3, 3), "low must nowhere be above high, but is."),
        (-torch.ones(3, 3), torch.ones(3, 3), "concern must hold finite costs >= 0 off its diagonal, but got -1."),
        (torch.ones(0, 3, 3), torch.ones(0, 3, 3), "low and high must have one shape"),
    ],
    ids=range(4),
)
def test_bad_bounds_are_refused(low: Tensor, high: Tensor, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        minimax_regret_decision(torch.zeros(2, 3), low, high)
    with pytest.raises(ValueError, match=re.escape("counts must have shape (..., 3, 3), but got (2, 2).")):
        mean_cost_range(torch.ones(2, 2), torch.ones(3, 3), torch.ones(3, 3))
