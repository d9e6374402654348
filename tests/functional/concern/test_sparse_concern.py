"""A sparse concern means what the dense one does, and is refused where it cannot be used."""

import copy
import pickle
from pathlib import Path

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.functional import least_concern_decision, meta_pattern_concern_score
from mpcs_torch.processes import World
from tests.processes.forked import forked_world, succeeded
from tests.refused import Refused

PAIRS = [[0, 1], [1, 0], [3, 2, 4], [7, 0]]


@pytest.mark.parametrize("classes", [10, 40, 2000])
def test_sparse_and_dense_concern_give_the_same_scores(classes: int) -> None:
    spec = ConcernSpec(classes, releases=PAIRS, factor=0.3)
    preds, target = torch.randn(300, classes), torch.randint(0, 8, (300,))
    preds[:, :8] += 8  # released classes are in the patterns
    settings = {"num_classes": classes, "reduction": "none"}
    dense = meta_pattern_concern_score(
        preds, target, concern=spec.mpcs_weights(), **settings
    )
    assert not torch.equal(dense, meta_pattern_concern_score(preds, target, **settings))
    assert torch.equal(
        dense,
        meta_pattern_concern_score(preds, target, concern=spec.sparse_matrix(), **settings),
    )
    metric = MetaPatternConcernScore(classes, concern=spec)
    for held in (
        metric,
        copy.deepcopy(metric),
        pickle.loads(pickle.dumps(metric)),
        metric.float(),
    ):
        held.reset()
        held.update(preds, target)
        assert held.compute().item() == pytest.approx(dense.mean().item(), rel=1e-12)


def test_a_spec_without_releases_weighs_all_pairs_1() -> None:
    preds, target = torch.randn(50, 40), torch.randint(0, 40, (50,))
    concern = ConcernSpec(40).sparse_matrix()
    assert meta_pattern_concern_score(
        preds, target, num_classes=40, concern=concern
    ) == meta_pattern_concern_score(preds, target, num_classes=40)


def test_repeated_pairs_are_released_once() -> None:
    spec = ConcernSpec(5, releases=[[0, 1, 2], [0, 1]], factor=0.5)
    assert spec.sparse_matrix().values().tolist() == [0.5, 0.5]


def test_many_classes_need_no_matrix_of_all_pairs() -> None:
    classes = 50257
    spec = ConcernSpec(
        classes, releases=[[i, (7 * i + 1) % classes] for i in range(1, 1000)]
    )
    metric = MetaPatternConcernScore(classes, concern=spec)
    metric.update(torch.randn(2, classes), torch.tensor([1, 2]))
    assert metric.compute() >= 0
    with Refused("dense_classes", "classes", 50257, maximum=10000):
        spec.mpcs_weights()


def test_a_model_that_holds_such_a_metric_trains_in_several_processes(
    tmp_path: Path,
) -> None:
    """DistributedDataParallel sends buffers at each step, and no sparse ones."""

    def train(_: World) -> None:
        model = torch.nn.Linear(4, 2000)
        model.metric = MetaPatternConcernScore(
            2000, concern=ConcernSpec(2000, releases=PAIRS)
        )
        parallel, target = DistributedDataParallel(model), torch.arange(8)
        for _ in range(2):
            logits = parallel(torch.randn(8, 4))
            torch.nn.functional.cross_entropy(logits, target).backward()
            model.metric.update(logits.detach(), target)
        assert model.metric.update_count == 2
        assert model.metric.weights.is_sparse

    assert succeeded(forked_world(tmp_path, 2, train))


def test_a_spec_of_weights_has_no_sparse_matrix() -> None:
    for spec in (
        ConcernSpec(2, weights=[[0, 1], [2, 0]]),
        ConcernSpec(3, dangerous=[[0, 1]]),
    ):
        with Refused("only_releases", "sparse_matrix"):
            spec.sparse_matrix()


def test_sparse_weights_follow_the_rules() -> None:
    bad = torch.sparse_coo_tensor(
        torch.tensor([[0], [1]]), torch.tensor([0.0]), (40, 40), check_invariants=True
    )
    with Refused("weights_off_diagonal", "concern", 0.0):
        meta_pattern_concern_score(
            torch.randn(2, 40), torch.tensor([0, 1]), num_classes=40, concern=bad
        )
    sparse = ConcernSpec(40, releases=PAIRS).sparse_matrix()
    with Refused("layout", "concern"):
        least_concern_decision(torch.randn(2, 40), concern=sparse)
