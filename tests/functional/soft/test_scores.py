"""Soft precision, recall and F against an oracle, torchmetrics for hard labels, and numerical gradients."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import one_hot
from torchmetrics.functional.classification import binary_f1_score, multilabel_fbeta_score
from torchvision.transforms import v2

from mpcs_torch.functional import (
    hard_f1,
    soft_f1,
    soft_fbeta,
    soft_kl_divergence,
    soft_precision,
    soft_recall,
)
from mpcs_torch.metrics import SoftF1, SoftKLDivergence
from tests.conftest import load_oracle
from tests.refused import Refused

ORACLE = load_oracle("soft_cases")
AVERAGES: tuple[Any, ...] = ("micro", "macro", "weighted", "none")


SCORES: dict[str, Callable[..., Tensor]] = {
    "precision": soft_precision,
    "recall": soft_recall,
    "f1": soft_f1,
    "fbeta_0_5": partial(soft_fbeta, beta=0.5),
    "fbeta_2": partial(soft_fbeta, beta=2.0),
}
"""Functions by the names of their values in the oracle."""


def near(value: Any) -> Any:
    """Compare with a value of the oracle, whose NaN is null, or with a list of them."""
    return pytest.approx(np.array(value, dtype=float), abs=1e-6, nan_ok=True)


@pytest.mark.parametrize(
    "case", ORACLE["cases"], ids=lambda case: f"{case['name']}-{case['zero_division']}"
)
def test_every_case_of_the_oracle(case: dict[str, Any]) -> None:
    preds, target = [
        torch.tensor(case[key], dtype=torch.float64) for key in ("preds", "target")
    ]
    expected = case["expected"]
    settings: dict[str, Any] = {
        "num_classes": preds.shape[1] if preds.ndim > 1 else 1,
        "zero_division": float(case["zero_division"]),
    }
    for average in AVERAGES:
        for name, function in SCORES.items():
            value = function(preds, target, average=average, **settings)
            assert value.tolist() == near(expected[average][name]), (average, name)
    for average in AVERAGES[:2]:
        value = hard_f1(preds, target, average=average, **settings)
        assert value.item() == near(expected["hard_gt_0.5"][average]["f1"])
    assert soft_kl_divergence(preds, target).item() == near(expected["kld_mean"])
    clamped = soft_kl_divergence(preds, target, epsilon=1e-7).item()
    assert clamped == near(expected["kld_mean_preds_clamped_1e-7"])


@pytest.mark.parametrize(
    "point", ORACLE["figure1"]["points"], ids=lambda point: f"eps={point['eps']}"
)
def test_figure_1_of_the_paper(point: dict[str, Any]) -> None:
    preds = torch.tensor(point["preds"], dtype=torch.float64)
    target = torch.tensor([0.8, 0.2]).double()
    for name, function in {**SCORES, "hard_f1_gt_0_5": hard_f1}.items():
        if name in point:
            value = function(preds, target, num_classes=1).item()
            assert value == near(point[name]), name


@given(
    seed=st.integers(0, 10**6),
    beta=st.sampled_from([0.5, 1.0, 2.0]),
    average=st.sampled_from(AVERAGES),
)
def test_hard_labels_give_the_values_of_torchmetrics(
    seed: int, beta: float, average: Any
) -> None:
    generator = torch.Generator().manual_seed(seed)
    preds, target = torch.randint(0, 2, (2, 30, 4), generator=generator)
    theirs = multilabel_fbeta_score(preds, target, beta=beta, num_labels=4, average=average)
    ours = soft_fbeta(preds.double(), target, num_classes=4, beta=beta, average=average)
    assert ours.tolist() == pytest.approx(theirs.tolist(), abs=1e-6)
    one_class = soft_f1(preds[:, 0].double(), target[:, 0], num_classes=1)
    assert one_class.item() == pytest.approx(
        binary_f1_score(preds[:, 0], target[:, 0]).item(), abs=1e-6
    )


@pytest.mark.parametrize("average", AVERAGES)
def test_gradients_are_right(average: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    preds = (0.05 + 0.9 * torch.rand(6, 3, generator=generator).double()).requires_grad_()
    target = torch.rand(6, 3, generator=generator).double()
    ignore = torch.rand(6, 3, generator=generator) < 0.2

    def score(p: Tensor) -> Tensor:
        return soft_fbeta(
            p, target, ignore=ignore, num_classes=3, beta=2.0, average=average
        )

    assert torch.autograd.gradcheck(score, (preds,))
    assert torch.autograd.gradcheck(
        lambda p: soft_kl_divergence(p, target, ignore=ignore), (preds,)
    )


def test_gradients_are_finite_where_labels_are_certain() -> None:
    preds = torch.tensor([0.0, 1.0], requires_grad=True)
    (gradient,) = torch.autograd.grad(
        soft_kl_divergence(preds, torch.tensor([0.0, 1.0])), preds
    )
    assert torch.isfinite(gradient).all()


def test_smoothed_and_mixed_labels_of_torchvision_are_accepted_unchanged() -> None:
    torch.manual_seed(0)
    labels = torch.arange(8) % 3
    for mix in (v2.MixUp(num_classes=3), v2.CutMix(num_classes=3)):
        _, mixed = mix(torch.rand(8, 1, 4, 4), labels)
        assert ((mixed > 0) & (mixed < 1)).any()
        assert soft_f1(mixed, mixed, num_classes=3) == 1
        assert soft_f1(one_hot(labels, 3).float(), mixed, num_classes=3) < 1


def test_ignored_elements_do_not_count() -> None:
    generator = torch.Generator().manual_seed(1)
    preds, target = torch.rand(2, 4, 3, 5, generator=generator)
    ignore = torch.zeros_like(preds, dtype=torch.bool)
    ignore[:, 1] = True
    spoilt = preds.masked_fill(ignore, math.nan)
    kept = preds[:, [0, 2]], target[:, [0, 2]]
    assert torch.allclose(
        soft_f1(spoilt, target, ignore=ignore, num_classes=3), soft_f1(*kept, num_classes=2)
    )
    assert torch.allclose(
        soft_kl_divergence(spoilt, target, ignore=ignore), soft_kl_divergence(*kept)
    )


def test_the_divergence_pools_elements_even_where_batches_have_other_numbers_of_classes() -> (
    None
):
    metric, generator = SoftKLDivergence(), torch.Generator().manual_seed(4)
    parts = [torch.rand(2, size, generator=generator) for size in (6, 2)]
    for preds, target in parts:
        metric.update(preds.reshape(2, -1), target.reshape(2, -1))
    torch.testing.assert_close(
        metric.compute(), soft_kl_divergence(*torch.cat(parts, dim=1))
    )


def test_float32_labels_keep_the_precision_of_half_predictions() -> None:
    preds = torch.full((4096, 1), 0.1, dtype=torch.float16)
    metric = SoftF1(1)
    metric.update(preds, torch.full((4096, 1), 0.2))
    exact = float(preds[0, 0])
    assert metric.compute().item() == pytest.approx(2 * exact / (exact + 0.2), rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "refusal"),
    [
        ({"preds": torch.tensor([0, 1])}, Refused("floating", "preds")),
        (
            {"target": torch.zeros(3)},
            Refused("alike", "target", kind="real", other="preds", shape=(2,)),
        ),
        (
            {"ignore": torch.zeros(2)},
            Refused("alike", "ignore", kind="bool", other="preds", shape=(2,)),
        ),
        (
            {"sample_weight": torch.tensor([1, -1])},
            Refused("finite_at_least", "sample_weight", -1.0, sample=1, minimum=0),
        ),
        ({"preds": torch.tensor([0.5, 1.5])}, Refused("degrees", "preds", [1.5], sample=1)),
        ({"average": "samples"}, Refused("one_of", "average", "samples")),
        ({"zero_division": 2.0}, Refused("one_of", "zero_division", 2.0)),
        ({"beta": -1.0}, Refused("finite_above", "beta", -1.0, minimum=0)),
    ],
)
def test_errors_name_the_wrong_argument(
    arguments: dict[str, Any], refusal: Refused
) -> None:
    given_arguments = {
        "preds": torch.tensor([0.5, 0.5]),
        "target": torch.zeros(2),
        "num_classes": 1,
        "beta": 1.0,
    }
    with refusal:
        soft_fbeta(**{**given_arguments, **arguments})


@pytest.mark.parametrize(
    ("make", "refusal"),
    [
        (lambda: SoftF1(0), Refused("at_least", "num_classes", 0, minimum=1)),
        (lambda: SoftKLDivergence(epsilon=0.5), Refused("from_below", "epsilon", 0.5)),
        (
            lambda: SoftF1(3).update(torch.zeros(2, 2), torch.zeros(2, 2)),
            Refused("class_dimension", "preds", classes=3),
        ),
    ],
)
def test_errors_of_metrics_name_the_wrong_setting(
    make: Callable[[], object], refusal: Refused
) -> None:
    with refusal:
        make()
