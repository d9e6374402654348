"""MPCS against exact arithmetic, Algorithm 1 in plain Python, and properties known from theory."""

import math
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounter

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.functional import (
    dangerous_errors,
    expected_concern,
    least_concern_decision,
    meta_pattern_concern_score,
)
from mpcs_torch.functional.concern import mpcs
from mpcs_torch.functional.inputs.probabilities import flatten_samples
from mpcs_torch.metrics.named_metrics import ENTRIES
from tests.conftest import load_oracle
from tests.refused import Refused

CASES = load_oracle("mpcs_cases")["cases"]


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_what_is_no_probability_is_refused_by_every_reduction(reduction: Any) -> None:
    preds = torch.tensor([[torch.nan, 0.5], [0.5, 0.5]])
    target = torch.tensor([0, 1])
    settings = {"num_classes": 2, "from_logits": False, "reduction": reduction}
    with Refused("probabilities", "preds"):
        meta_pattern_concern_score(preds, target, **settings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_score_equals_exact_arithmetic(case: dict[str, Any], dtype: torch.dtype) -> None:
    preds, target = torch.tensor(case["probs"], dtype=dtype), torch.tensor(case["target"])
    concern = torch.ones(preds.shape[1], preds.shape[1], dtype=torch.float64)
    for true, *predicted in case["releases"]:
        concern[true, predicted] = case["release_factor"]
    score = partial(
        meta_pattern_concern_score,
        preds,
        target,
        num_classes=preds.shape[1],
        k=case["k"],
        t=case["t"],
        concern=concern,
        from_logits=False,
    )
    by_sample = case["per_sample"]
    for settings, expected in (
        ({"reduction": "none"}, by_sample),
        ({"reduction": "sum"}, sum(by_sample)),
        ({"correct_concern": "sum"}, case["mpcs"]),
        ({"correct_concern": "count"}, case["mpcs_count_rule"]),
    ):
        value = score(**settings)  # type: ignore[arg-type]
        assert value.tolist() == pytest.approx(expected, rel=1e-12, abs=0)


def test_k_is_5_or_fewer_and_t_is_200_by_default() -> None:
    for num_classes in (3, 7):
        preds, target = torch.randn(20, num_classes), torch.randint(0, num_classes, (20,))
        score = meta_pattern_concern_score(preds, target, num_classes=num_classes)
        assert score == meta_pattern_concern_score(
            preds, target, num_classes=num_classes, k=min(5, num_classes), t=200
        )


def test_the_worst_score_is_the_one_of_the_register() -> None:
    """The share of a class in the concern is at most 1, so no score exceeds the highest penalty."""
    surely_wrong = torch.tensor([[0.0, 1.0]])
    worst = meta_pattern_concern_score(
        surely_wrong, torch.tensor([0]), num_classes=2, from_logits=False
    )
    [said] = [entry.computes for entry in ENTRIES if entry.name == "mpcs"]
    assert f"the surest error has {worst:.1f} by default" in said


def test_binary_scores_of_class_1_stand_for_both_classes() -> None:
    logits, target = torch.tensor([-2.0, 0.5, 3.0]), torch.tensor([0, 1, 0])
    probs = logits.sigmoid()
    for scores, of_class_0, from_logits in (
        (logits, torch.zeros_like(logits), True),
        (probs, 1 - probs, False),
    ):
        settings: dict[str, Any] = {"num_classes": 2, "from_logits": from_logits}
        of_both = torch.stack([of_class_0, scores], dim=1)
        both = meta_pattern_concern_score(of_both, target, **settings)
        assert meta_pattern_concern_score(scores, target, **settings) == both
        assert expected_concern(scores, target, **settings) == 1.0
    with Refused("binary_scores", "preds"):
        dangerous_errors(logits, target, num_classes=2)


def test_functions_take_a_spec() -> None:
    spec = ConcernSpec(3, releases=[[0, 1]], factor=0.2, concession=0.02)
    logits = torch.tensor([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0], [1.5, 1.0, 0.0]])
    target = torch.tensor([0, 0, 2])
    cases: list[tuple[Any, Tensor, dict[str, float]]] = [
        (meta_pattern_concern_score, spec.mpcs_weights(), {"concession": 0.02}),
        (dangerous_errors, spec.dangerous_pairs(), {}),
        (expected_concern, spec.costs(), {}),
    ]
    for function, matrix, settings in cases:
        of_spec = function(logits, target, num_classes=3, concern=spec)
        assert of_spec == function(
            logits, target, num_classes=3, concern=matrix, **settings
        )
    decided = least_concern_decision(logits, concern=spec)
    assert torch.equal(decided, least_concern_decision(logits, concern=spec.costs()))


def test_functions_take_a_spec_of_many_classes() -> None:
    spec = ConcernSpec(20_000, releases=[[0, 1]], factor=0.2)
    logits = torch.zeros(2, 20_000).index_fill_(1, torch.tensor([1]), 20.0)
    target = torch.tensor([0, 2])
    found = meta_pattern_concern_score(logits, target, num_classes=20_000, concern=spec)
    assert found == MetaPatternConcernScore(num_classes=20_000, concern=spec)(
        logits, target
    )


def test_mean_over_no_weight_is_nan() -> None:
    score = meta_pattern_concern_score(
        torch.randn(2, 3), torch.tensor([-1, -1]), num_classes=3, k=2, t=20, ignore_index=-1
    )
    assert math.isnan(score)


def test_half_probabilities_may_be_rounded() -> None:
    probs, target = torch.randn(100, 10).softmax(dim=1).bfloat16(), torch.arange(100) % 10
    assert meta_pattern_concern_score(probs, target, num_classes=10, from_logits=False) > 0


@pytest.mark.parametrize(
    "logits", [torch.randn(200, 2, dtype=torch.float64), torch.tensor([[0.9, 0.1]])]
)
def test_cross_entropy_is_the_limit_for_two_classes(logits: Tensor) -> None:
    """One row between 0 and 1 has logits, too."""
    target = torch.arange(len(logits)) % 2
    score = meta_pattern_concern_score(logits, target, num_classes=2, k=1, t=10**7)
    expected = torch.nn.functional.cross_entropy(logits, target)
    assert score.item() == pytest.approx(expected.item(), rel=1e-5)


def test_cross_entropy_is_bounded_below_by_the_limit() -> None:
    logits, target = torch.randn(400, 5, dtype=torch.float64), torch.randint(0, 5, (400,))
    limit = meta_pattern_concern_score(
        logits, target, num_classes=5, k=1, t=10**7, reduction="none"
    )
    cross_entropy = torch.nn.functional.cross_entropy(logits, target, reduction="none")
    first = logits.argmax(dim=1) == target
    assert first.any()
    assert not first.all()
    assert limit[first].tolist() == pytest.approx(cross_entropy[first].tolist(), rel=1e-4)
    assert (limit[~first] < cross_entropy[~first]).all()


@pytest.mark.parametrize("num_classes", [5, 40])
def test_the_core_compiles_once_for_all_batch_sizes(num_classes: int) -> None:
    def core(preds: Tensor, target: Tensor) -> Tensor:
        samples = flatten_samples(
            preds,
            target,
            num_classes=num_classes,
            scale="logits",
            ignore_index=None,
            sample_weight=None,
        )
        return mpcs.MetaPatternConcernScore(num_classes, k=3, t=20).term(samples)

    counter = CompileCounter()
    compiled = torch.compile(core, fullgraph=True, dynamic=True, backend=counter)
    for size in (8, 9, 2000):
        preds = torch.randn(size, num_classes)
        target = torch.randint(0, num_classes, (size,))
        assert compiled(preds, target).tolist() == pytest.approx(
            core(preds, target).tolist(), rel=1e-12
        )
    assert counter.frame_count == 1


PREDS, TARGET = torch.tensor([[0.5, 0.25, 0.25], [0.1, 0.7, 0.2]]), torch.tensor([0, 1])


@pytest.mark.parametrize(
    ("changed", "refusal"),
    [
        ({"k": 0}, Refused("rank", "k", 0, classes=3)),
        ({"t": 1}, Refused("at_least", "t", 1, minimum=2)),
        (
            {"t": 2**30},
            Refused("at_most", "t", 1073741824, maximum=536870912),
        ),
        ({"t": 2.5}, Refused("whole", "t", 2.5)),
        ({"k": True}, Refused("whole", "k", True)),
        ({"concern": "lights"}, Refused("spec_or_tensor", "concern", "lights")),
        ({"correct_concern": "mean"}, Refused("one_of", "correct_concern", "mean")),
        ({"reduction": "max"}, Refused("one_of", "reduction", "max")),
        (
            {"concern": torch.ones(2, 2)},
            Refused("shape", "concern", shape="(3, 3)"),
        ),
        ({"concern": torch.eye(3)}, Refused("weights_off_diagonal", "concern", 0.0)),
        (
            {"concern": torch.full((3, 3), math.inf)},
            Refused("weights_off_diagonal", "concern", float("inf")),
        ),
        (
            {"target": torch.tensor([-1, 0])},
            Refused("class_indices", "target", -1, sample=0, last=2),
        ),
        ({"target": torch.tensor([0.0, 1.0])}, Refused("labels", "target")),
        ({"target": torch.tensor([0])}, Refused("shape", "target", shape=(2,))),
        (
            {"preds": torch.tensor([0.1, 0.9])},
            Refused("shape", "preds", shape="(N, C) or (N, C, ...)"),
        ),
        ({"preds": [["a", "b", "c"]] * 2}, Refused("numbers", "preds")),
        ({"num_classes": 1}, Refused("at_least", "num_classes", 1, minimum=2)),
        ({"num_classes": 4}, Refused("class_dimension", "preds", classes=4)),
        ({"preds": torch.ones(2, 3, dtype=torch.int64)}, Refused("floating", "preds")),
        (
            {"preds": PREDS * torch.tensor([[1.0], [2.0]])},
            Refused("probabilities", "preds", [0.2, 1.4, 0.4], sample=1),
        ),
        (
            {"preds": PREDS * math.nan, "from_logits": True},
            Refused(
                "logits",
                "preds",
                [math.nan] * 3,
                sample=0,
                column=0,
            ),
        ),
        (
            {"sample_weight": torch.ones(3)},
            Refused("shape", "sample_weight", shape=(2,)),
        ),
        (
            {"sample_weight": torch.tensor([1.0, -1.0])},
            Refused("finite_at_least", "sample_weight", -1.0, sample=1, minimum=0),
        ),
    ],
)
def test_errors_name_the_wrong_argument(changed: dict[str, Any], refusal: Refused) -> None:
    arguments = {
        "preds": PREDS,
        "target": TARGET,
        "num_classes": 3,
        "k": 3,
        "t": 20,
        "from_logits": False,
        **changed,
    }
    with refusal:
        meta_pattern_concern_score(**arguments)
