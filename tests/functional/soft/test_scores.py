"""Soft precision, recall and F against an oracle, torchmetrics for hard labels, and numerical gradients."""

import math
from typing import Any

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
from mpcs_torch.metrics import SoftF1, SoftFBeta, SoftKLDivergence
from tests.conftest import load_oracle
from tests.refused import Refused

ORACLE = load_oracle("soft_cases")
AVERAGES = ("micro", "macro", "weighted", "none")


def number(value: Any) -> float:
    return math.nan if value is None else float(value)


@pytest.mark.parametrize(
    "case", ORACLE["cases"], ids=lambda case: f"{case['name']}-{case['zero_division']}"
)
def test_every_case_of_the_oracle(case: dict[str, Any]) -> None:
    preds, target = (
        torch.tensor(case[key], dtype=torch.float64) for key in ("preds", "target")
    )
    classes: dict[str, Any] = {"num_classes": preds.shape[1] if preds.ndim > 1 else 1}
    zero_division, expected = float(case["zero_division"]), case["expected"]
    for average in AVERAGES:
        options: dict[str, Any] = {
            **classes,
            "average": average,
            "zero_division": zero_division,
        }
        ours = {
            "precision": soft_precision(preds, target, **options),
            "recall": soft_recall(preds, target, **options),
            "f1": soft_f1(preds, target, **options),
            "fbeta_0_5": soft_fbeta(preds, target, beta=0.5, **options),
            "fbeta_2": soft_fbeta(preds, target, beta=2.0, **options),
        }
        for name, value in ours.items():
            theirs = expected[average][name]
            values = (
                [number(v) for v in theirs] if isinstance(theirs, list) else number(theirs)
            )
            assert value.tolist() == pytest.approx(values, abs=1e-6, nan_ok=True), (
                average,
                name,
            )
    for average in ("micro", "macro"):
        hard = number(expected["hard_gt_0.5"][average]["f1"])
        settings: dict[str, Any] = {
            **classes,
            "average": average,
            "zero_division": zero_division,
        }
        assert hard_f1(preds, target, **settings).item() == pytest.approx(
            hard, abs=1e-6, nan_ok=True
        )
    assert soft_kl_divergence(preds, target).item() == pytest.approx(
        number(expected["kld_mean"]), abs=1e-6
    )
    clamped = soft_kl_divergence(preds, target, epsilon=1e-7).item()
    assert clamped == pytest.approx(
        number(expected["kld_mean_preds_clamped_1e-7"]), abs=1e-6
    )
    columns = zip(
        preds.reshape(len(preds), -1).T, target.reshape(len(preds), -1).T, strict=True
    )
    per_class = [soft_kl_divergence(p, y).item() for p, y in columns]
    assert per_class == pytest.approx(
        [number(v) for v in expected["kld_per_class"]], abs=1e-6
    )


@pytest.mark.parametrize(
    "point", ORACLE["figure1"]["points"], ids=lambda point: f"eps={point['eps']}"
)
def test_figure_1_of_the_paper(point: dict[str, Any]) -> None:
    preds = torch.tensor(point["preds"], dtype=torch.float64)
    target = torch.tensor([0.8, 0.2]).double()
    assert soft_f1(preds, target, num_classes=1).item() == pytest.approx(
        point["f1"], abs=1e-6
    )
    assert soft_precision(preds, target, num_classes=1).item() == pytest.approx(
        point["precision"], abs=1e-6
    )
    assert soft_recall(preds, target, num_classes=1).item() == pytest.approx(
        point["recall"], abs=1e-6
    )
    assert hard_f1(preds, target, num_classes=1).item() == pytest.approx(
        point["hard_f1_gt_0_5"], abs=1e-6
    )


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


def test_one_minus_the_soft_f1_is_a_loss() -> None:
    target = torch.tensor([[0.7, 0.3], [0.1, 0.9]])
    logits = torch.zeros(2, 2, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.05)
    for _ in range(200):
        optimizer.zero_grad()
        value = 1 - soft_f1(logits.softmax(1), target, num_classes=2, average="macro")
        value.backward()
        optimizer.step()
    assert value.item() == pytest.approx(0, abs=0.02)
    assert torch.allclose(logits.softmax(1), target, atol=0.05)


def test_smoothed_and_mixed_labels_of_torchvision_are_accepted_unchanged() -> None:
    torch.manual_seed(0)
    images, labels = torch.rand(8, 1, 4, 4), torch.arange(8) % 3
    for mix in (v2.MixUp(num_classes=3), v2.CutMix(num_classes=3)):
        _, mixed = mix(images, labels)
        assert ((mixed > 0) & (mixed < 1)).any()
        metric = SoftF1(3)
        metric.update(mixed, mixed)
        assert metric.compute() == 1
        assert soft_f1(one_hot(labels, 3).float(), mixed, num_classes=3) < 1
    smoothed = one_hot(labels, 3) * 0.9 + 0.1 / 3
    assert soft_f1(smoothed, smoothed, num_classes=3) == 1
    assert soft_precision(
        one_hot(labels, 3).float(), smoothed, num_classes=3
    ).item() == pytest.approx(0.9 + 0.1 / 3)


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
        ({"num_classes": 2}, Refused("class_dimension", "preds", classes=2)),
        ({"preds": torch.tensor([0.5, 1.5])}, Refused("degrees", "preds", [1.5], sample=1)),
        (
            {"target": torch.tensor([-0.5, 1])},
            Refused("degrees", "target", [-0.5], sample=0),
        ),
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


def test_errors_of_metrics_name_the_wrong_setting() -> None:
    with Refused("at_least", "num_classes", 0, minimum=1):
        SoftF1(0)
    with Refused("finite_above", "beta", 0, minimum=0):
        SoftFBeta(2, beta=0)
    with Refused("from_below", "epsilon", 0.5, minimum=0, maximum=0.5):
        SoftKLDivergence(epsilon=0.5)
    with Refused("class_dimension", "preds", classes=3):
        SoftF1(3).update(torch.zeros(2, 2), torch.zeros(2, 2))
