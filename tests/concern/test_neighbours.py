"""Drafts of concern specs from the neighbours in an embedding."""

import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from mpcs_torch.concern.suggest import count_releases, neighbour_shares, spec_from_neighbours

NAMES = [f"class {i}" for i in range(5)]


def random_shares(seed: int, *, runs: int = 1) -> Tensor:
    counts = torch.randint(0, 6, (runs, 5, 5), generator=torch.Generator().manual_seed(seed)).double()
    return counts / counts.sum(dim=2, keepdim=True).clamp(min=1)


def test_only_classes_that_overlap_are_released() -> None:
    generator = torch.Generator().manual_seed(0)
    middles = torch.tensor([[0.0, 0.0], [1.5, 0.0], [50.0, 0.0]])
    labels = torch.arange(300) % 3
    embedding = middles[labels] + torch.randn(300, 2, generator=generator)
    shares = neighbour_shares(embedding, labels, 3)
    assert torch.allclose(shares.sum(dim=1), torch.ones(3, dtype=torch.float64))
    assert shares[2].tolist() == [0, 0, 1]
    spec = spec_from_neighbours(shares, ["a", "b", "c"], factor=0.25)
    assert spec.releases == ((0, 1), (1, 0))
    assert spec.factor == 0.25


@given(seed=st.integers(0, 2**31), half=st.integers(1, 10))
def test_the_asked_number_of_pairs_with_the_most_common_neighbours_is_released(seed: int, half: int) -> None:
    shares = random_shares(seed)[0]
    mutual = torch.maximum(shares, shares.t())
    neighbours = int((mutual.triu(1) > 0).sum())
    if half > neighbours:
        with pytest.raises(ValueError, match=f"^pairs must be at most {2 * neighbours}, the pairs of classes"):
            spec_from_neighbours(shares, NAMES, pairs=2 * half)
        return
    released = spec_from_neighbours(shares, NAMES, pairs=2 * half).released()
    assert int(released.sum()) == 2 * half
    assert torch.equal(released, released.t())
    others = mutual.masked_fill(released, 0).fill_diagonal_(0)
    assert mutual[released].min() >= others.max()


@given(seed=st.integers(0, 2**31))
def test_asking_for_as_many_pairs_as_are_released_by_default_gives_the_same(seed: int) -> None:
    by_share = spec_from_neighbours(random_shares(seed)[0], NAMES)
    pairs = int(by_share.released().sum())
    if pairs:
        by_number = spec_from_neighbours(random_shares(seed)[0], NAMES, pairs=pairs)
        assert torch.equal(by_number.released(), by_share.released())


@given(seed=st.integers(0, 2**31))
def test_the_count_is_that_of_the_drafts_of_the_single_runs(seed: int) -> None:
    runs = random_shares(seed, runs=3)
    drafts = [spec_from_neighbours(run, NAMES, pairs=2).released() for run in runs]
    assert torch.equal(count_releases(runs, pairs=2), sum(drafts, torch.zeros(5, 5, dtype=torch.int64)))


def test_a_run_with_too_few_neighbours_counts_those_it_has() -> None:
    runs = torch.tensor([[[1, 0, 0], [0, 0.5, 0.5], [0, 0, 1]], [[0.8, 0.2, 0], [0, 0.9, 0.1], [0, 0, 1]]])
    assert count_releases(runs, pairs=4).tolist() == [[0, 1, 0], [1, 0, 2], [0, 2, 0]]
    assert spec_from_neighbours(runs.mean(dim=0), ["a", "b", "c"], pairs=4).releases == ((0, 1), (1, 0, 2), (2, 1))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"pairs": 3}, "pairs must be even and at least 2, as both directions are released, but got 3."),
        ({"pairs": 0}, "pairs must be even and at least 2, as both directions are released, but got 0."),
    ],
)
def test_a_rule_that_cannot_be_met_is_refused(rule: dict[str, int], message: str) -> None:
    shares = torch.full((3, 3), 1 / 3)
    for call in (lambda: spec_from_neighbours(shares, NAMES[:3], **rule), lambda: count_releases(shares[None], **rule)):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            call()


def test_neighbours_need_more_samples_than_neighbours() -> None:
    with pytest.raises(ValueError, match="embedding must have more than 10 samples, but has 10"):
        neighbour_shares(torch.zeros(10, 2), torch.zeros(10, dtype=torch.int64), 2)
