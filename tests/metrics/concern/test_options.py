"""The options of single metrics, and every path of their updates under fake CUDA tensors."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torchmetrics import Metric, MetricCollection

from mpcs_torch import (
    ConcernSpec,
    DangerousErrors,
    ExpectedConcern,
    MetaPatternConcernScore,
    SoftF1,
)
from mpcs_torch.functional import meta_pattern_concern_score
from mpcs_torch.metrics import BrierScore
from tests.metrics.batches import random_batch
from tests.refused import Refused

LOGITS, TARGET = random_batch(30, seed=3)


@pytest.mark.parametrize(
    ("kind", "name", "choices"),
    [
        (DangerousErrors, "normalize", [None, "samples", "errors"]),
        (ExpectedConcern, "normalize", [True, False]),
        (BrierScore, "over_classes", ["sum", "mean"]),
        (SoftF1, "average", ["micro", "macro"]),
    ],
)
def test_metrics_share_states_that_do_not_depend_on_their_settings(
    kind: Any, name: str, choices: list[Any]
) -> None:
    target = torch.nn.functional.one_hot(TARGET, 4).float() if kind is SoftF1 else TARGET
    preds = LOGITS.softmax(dim=1) if kind is SoftF1 else LOGITS
    collection = MetricCollection(
        {str(choice): kind(4, **{name: choice}) for choice in choices}
    )
    for batch in (slice(0, 11), slice(11, 30)):
        collection.update(preds[batch], target[batch])
    assert len(collection.compute_groups) == 1
    values = collection.compute()
    for choice in choices:
        alone = kind(4, **{name: choice})(preds, target)
        assert values[str(choice)].item() == pytest.approx(alone.item(), rel=1e-12)
    assert len({value.item() for value in values.values()}) == len(choices)


def test_a_concern_of_ones_is_no_concern() -> None:
    without, ones = (
        MetaPatternConcernScore(4),
        MetaPatternConcernScore(4, concern=torch.ones(4, 4)),
    )
    collection = MetricCollection({"without": without, "ones": ones})
    collection.update(LOGITS, TARGET)
    assert len(collection.compute_groups) == 1
    without.merge_state(ones)
    other = MetaPatternConcernScore(4, concern=torch.full((4, 4), 0.5))
    with Refused("other_settings", "the state"):
        without.merge_state(other)


@pytest.mark.parametrize("dangerous", [None, 10])
def test_the_scale_of_costs_does_not_matter_for_dangerous_errors(
    dangerous: int | None,
) -> None:
    costs = [[0, 10, 50, 1], [10, 0, 10, 50], [50, 1, 0, 10], [1, 1, 1, 0]]
    raw = ConcernSpec(4, weights=costs, dangerous=dangerous)
    small = ConcernSpec(
        4,
        weights=[[cost / 50 for cost in row] for row in costs],
        dangerous=None if dangerous is None else dangerous / 50,
    )
    counts = [DangerousErrors(4, concern=spec)(LOGITS, TARGET) for spec in (raw, small)]
    assert counts[0] == counts[1]


def test_mpcs_takes_its_concession_from_the_spec_unless_it_is_told_otherwise() -> None:
    spec = ConcernSpec(4, concession=0.02)
    assert MetaPatternConcernScore(4, concern=spec).t == 49
    assert MetaPatternConcernScore(4, concern=spec, concession=0.1).t == 9
    assert MetaPatternConcernScore(4, concern=spec, t=200).t == 200
    assert MetaPatternConcernScore(4).t == 200


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (
            lambda: MetaPatternConcernScore(3, t=50, concession=0.02),
            Refused("not_with", "concession", other="t"),
        ),
        (
            lambda: MetaPatternConcernScore(
                2, concern=ConcernSpec(2, weights=[[0, 1], [0, 0]])
            ),
            Refused("weights_off_diagonal", "concern"),
        ),
        (
            lambda: DangerousErrors(3, concern=ConcernSpec(2)),
            Refused("shape", "concern", shape="(3, 3)"),
        ),
        (
            lambda: DangerousErrors(3, concern=torch.ones(2, 2).bool()),
            Refused("shape", "concern", shape="(3, 3)"),
        ),
        (
            lambda: DangerousErrors(3, normalize="all"),
            Refused("one_of", "normalize"),
        ),
    ],
)
def test_errors_name_the_wrong_setting(make: Any, refusal: Refused) -> None:
    with refusal:
        make()


def fake(shape: tuple[int, ...], dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.zeros(shape, dtype=dtype, device="cuda")


@pytest.mark.parametrize(
    ("metric", "shapes"),
    [
        (
            MetaPatternConcernScore(40, k=40),
            [((5, 40), torch.float32), ((5,), torch.int64)],
        ),
        (
            MetaPatternConcernScore(3, ignore_index=-1),
            [((5, 3, 2), torch.bfloat16), ((5, 2), torch.int32)],
        ),
        (
            MetaPatternConcernScore(3, from_logits=False),
            [((5, 3), torch.float64)] + 2 * [((5,), torch.int64)],
        ),
        (
            DangerousErrors(3, ignore_index=-1),
            [((5, 2), torch.int64), ((5, 2), torch.int64)],
        ),
        (DangerousErrors(3), [((5, 3, 2), torch.float16), ((5, 2), torch.int64)]),
    ],
)
def test_no_path_of_update_waits_for_a_gpu(
    metric: Metric, shapes: list[tuple[tuple[int, ...], torch.dtype]]
) -> None:
    with FakeTensorMode(allow_non_fake_inputs=True):
        metric.to("cuda")
        metric.update(*(fake(shape, dtype) for shape, dtype in shapes))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA GPU")
def test_ties_go_to_the_lower_class_on_a_gpu_too() -> None:
    for num_classes in (4, 40):
        probs = torch.randint(0, 3, (500, num_classes)).double() + 1
        probs /= probs.sum(dim=1, keepdim=True)
        target = torch.randint(0, num_classes, (500,))
        settings: dict[str, Any] = {
            "num_classes": num_classes,
            "k": 3,
            "t": 20,
            "from_logits": False,
            "reduction": "none",
        }
        here = meta_pattern_concern_score(probs, target, **settings)
        there = meta_pattern_concern_score(probs.cuda(), target.cuda(), **settings)
        assert torch.allclose(here, there.cpu())
