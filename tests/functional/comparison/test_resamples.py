"""The draws of resamples, and the data that they refuse."""

import re
from typing import Any

import pytest
import torch

from mpcs_torch.functional import Resamples
from mpcs_torch.functional.comparison import resamples as module


def all_of(resamples: Resamples) -> torch.Tensor:
    return torch.cat(list(resamples))


def test_each_stratum_keeps_its_size() -> None:
    labels = torch.arange(50) % 5 == 0
    weights = all_of(Resamples(50, number=40, strata=labels))
    assert weights.shape == (40, 50)
    assert (weights[:, labels].sum(1) == 10).all()
    assert (weights[:, ~labels].sum(1) == 40).all()
    assert Resamples(50, strata=labels).independent == 10


def test_each_sample_is_drawn_once_on_average_and_independently() -> None:
    weights = all_of(Resamples(20, number=4000)).double()
    assert weights.mean(0).sub(1).abs().max() < 0.08
    assert weights.var(0).sub(0.95).abs().max() < 0.1  # binomial: 20 draws with probability 1/20
    assert torch.corrcoef(weights.T).fill_diagonal_(0).abs().max() < 0.12


def test_whole_clusters_are_drawn() -> None:
    clusters = torch.tensor([-7, 3, 3, 99, 99, 99])
    resamples = Resamples(6, number=100, clusters=clusters)
    weights = all_of(resamples)
    assert (resamples.independent, resamples.is_clustered, resamples.drawn_again) == (3, True, 0)
    assert (weights[:, [0, 1, 3]].sum(1) == 3).all()
    for members in ([1, 2], [3, 4, 5]):
        assert (weights[:, members] == weights[:, members[:1]]).all()


def test_resamples_without_a_target_are_drawn_again() -> None:
    labels = torch.arange(30) < 3
    resamples = Resamples(30, number=500, strata=labels, clusters=torch.arange(30))
    weights = all_of(resamples)
    assert len(weights) == 500
    assert weights[:, labels].any(1).all()
    assert resamples.independent == 3
    assert 10 < resamples.drawn_again < 40  # (27 / 30)^30 = 4 %
    assert torch.equal(weights, all_of(resamples))


def test_too_few_clusters_with_targets_are_refused() -> None:
    resamples = Resamples(30, number=500, strata=torch.arange(30) < 2, clusters=torch.arange(30))
    with pytest.raises(ValueError, match="more than 10 % of the resamples of clusters lack one"):
        all_of(resamples)


def test_batches_have_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BATCH", 64)
    batches = list(Resamples(20, number=10, strata=torch.arange(20) % 2))
    assert [len(batch) for batch in batches] == [3, 3, 3, 1]
    monkeypatch.setattr(module, "BATCH", 1)
    assert [len(batch) for batch in Resamples(20, number=2)] == [1, 1]


def test_seeds_give_other_resamples() -> None:
    assert not torch.equal(all_of(Resamples(20, number=5)), all_of(Resamples(20, number=5, seed=1)))


@pytest.mark.parametrize(
    ("size", "settings", "message"),
    [
        (3, {"number": 0}, "number must be at least 1, but got 0."),
        (1, {}, "a bootstrap needs at least 2 samples of each stratum, but got 1."),
        (0, {}, "a bootstrap needs at least 2 samples of each stratum, but got 0."),
        (3, {"strata": torch.tensor([0, 1, 1])}, "a bootstrap needs at least 2 samples of each stratum, but got 1."),
        (3, {"clusters": torch.tensor([4, 4, 4])}, "a bootstrap needs at least 2 clusters of each stratum, but got 1."),
        (3, {"clusters": torch.ones(3)}, "clusters must be integer codes of shape (3,), but got torch.float32 (3,)."),
        (3, {"strata": torch.tensor([1])}, "strata must be integer codes of shape (3,), but got torch.int64 (1,)."),
    ],
)
def test_wrong_arguments_are_refused(size: int, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        Resamples(size, **settings)
