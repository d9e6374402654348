"""Ranges of costs, against plain Python over all ends and 10 000 draws of costs."""

import pytest
import torch
from torch import Tensor

from mpcs_torch.functional import mean_cost_range
from tests.refused import Refused

DRAWS = 10_000
COSTS = (0.0, 0.25, 0.5, 1.0, 1.0, 3.0)
"""Of few values, so that costs, columns and expected costs are often equal."""


def draw_bounds(
    seed: int, boxes: int = 2, classes: int = 3, further: int = 1
) -> tuple[Tensor, Tensor]:
    """Return boxes of costs, some of whose ranges have no width."""
    generator = torch.Generator().manual_seed(seed)
    shape = (boxes, classes, classes + further)
    values = torch.tensor(COSTS, dtype=torch.float64)
    places = torch.randint(0, len(values), (2, *shape), generator=generator)
    low, high = values[places].sort(0).values
    is_known = torch.rand(shape, generator=generator) < 0.3
    low = torch.where(is_known, high, low)
    for ends in (low, high):
        ends[:, 0, 1] = ends[:, 0, 1].clamp(min=0.25)
    return low, high


def drawn_costs(low: Tensor, high: Tensor, draws: int, seed: int) -> Tensor:
    """Draw matrices of the hull of boxes, many of them corners and mixtures of two: (draws, C, K)."""
    generator = torch.Generator().manual_seed(seed)
    shape = (draws, *low.shape)
    where = torch.rand(shape, generator=generator, dtype=torch.float64)
    where = torch.where(
        torch.rand(draws, 1, 1, 1, generator=generator) < 0.5, where.round(), where
    )
    shares = torch.rand(draws, len(low), generator=generator, dtype=torch.float64) ** 4
    shares = shares / shares.sum(1, keepdim=True)
    costs = (shares[..., None, None] * (low + where * (high - low))).sum(1)
    diagonal = torch.eye(*low.shape[1:], dtype=torch.bool)
    return torch.where(diagonal, 0.0, costs)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("boxes", "further"), [(1, 0), (1, 1), (3, 1), (2, 2)])
def test_the_range_holds_the_totals_of_ten_thousand_draws(
    seed: int, boxes: int, further: int
) -> None:
    low, high = draw_bounds(seed, boxes, further=further)
    generator = torch.Generator().manual_seed(seed)
    counts = torch.randint(-3, 4, low.shape[1:], generator=generator)
    lowest, highest = mean_cost_range(counts, low, high)
    totals = (counts * drawn_costs(low, high, DRAWS, seed)).sum((1, 2))
    assert totals.min() >= lowest - 1e-12
    assert totals.max() <= highest + 1e-12


def test_the_range_of_a_cost_is_reached_at_its_ends() -> None:
    low, high = draw_bounds(3, 2, further=0)
    counts = torch.tensor([[5, -2, 1], [0, 3, -4], [2, 2, 2]])
    ends = counts * (1 - torch.eye(3)) * torch.stack([low, high])
    lowest, highest = ends.amin(0).sum((1, 2)).min(), ends.amax(0).sum((1, 2)).max()
    expected = torch.stack([lowest, highest])
    torch.testing.assert_close(mean_cost_range(counts, low, high), expected)


def test_each_matrix_of_a_batch_has_the_range_that_it_has_alone() -> None:
    low, high = draw_bounds(5, 3)
    counts = torch.randint(-3, 4, (4, 2, 3, 4), generator=torch.Generator().manual_seed(5))
    ranges = mean_cost_range(counts, low, high)
    assert ranges.shape == (4, 2, 2)
    for matrices, of_matrices in zip(counts, ranges, strict=True):
        alone = [mean_cost_range(matrix, low, high) for matrix in matrices]
        assert of_matrices.equal(torch.stack(alone))


@pytest.mark.parametrize(
    ("low", "high", "refusal"),
    [
        (
            torch.ones(3, 3),
            torch.ones(3, 4),
            Refused("same_shape", "low and high", shape="(C, K) or (V, C, K)"),
        ),
        (
            torch.full((3, 3), 2.0),
            torch.ones(3, 3),
            Refused("nowhere_above", "low", other="high"),
        ),
        (
            -torch.ones(3, 3),
            torch.ones(3, 3),
            Refused("costs_off_diagonal", "concern", -1.0),
        ),
        (torch.ones(0, 3, 3), torch.ones(0, 3, 3), Refused("same_shape", "low and high")),
    ],
    ids=range(4),
)
def test_bad_bounds_are_refused(low: Tensor, high: Tensor, refusal: Refused) -> None:
    with refusal:
        mean_cost_range(torch.ones(3, 3), low, high)
    with Refused("shape", "counts", shape="(..., 3, 3)"):
        mean_cost_range(torch.ones(2, 2), torch.ones(3, 3), torch.ones(3, 3))


def test_costs_of_any_dtype_are_added_in_float64_and_stay_as_they_are() -> None:
    counts = torch.tensor([[3, 1], [2, 4]]) / 10
    low = torch.tensor([[7, 1], [2, 7]])
    high = low + torch.tensor([[0, 1], [3, 0]])
    before = high.clone()
    found = mean_cost_range(counts, low, high)
    assert found.dtype == torch.float64
    assert found.tolist() == pytest.approx([0.1 + 0.4, 0.2 + 1.0])
    assert high.equal(before)
