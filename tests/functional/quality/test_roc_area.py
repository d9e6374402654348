"""Areas under the ROC: those of scikit-learn, with ties, weights and absent classes."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from mpcs_torch.functional.quality.roc_area import RocArea

CLASSES = 4


def draw(seed: int, size: int = 120) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    target = torch.randint(CLASSES, (size,), generator=generator)
    logits = (
        torch.randn(size, CLASSES, generator=generator).double()
        + torch.eye(CLASSES)[target]
    )
    probs = ((20 * logits.softmax(1)).round() + 1) / 20  # many ties
    return (
        probs / probs.sum(1, keepdim=True),
        target,
        torch.rand(size, generator=generator).double() + 0.1,
    )


@given(st.integers(0, 10_000))
def test_the_mean_over_classes_is_that_of_scikit_learn_with_ties_and_weights(
    seed: int,
) -> None:
    probs, target, weights = draw(seed)
    area = RocArea(CLASSES)
    settings = {"multi_class": "ovr", "average": "macro"}
    expected = roc_auc_score(target, probs, **settings)
    assert area.value(area.rows(probs, target)).item() == pytest.approx(expected)
    expected = roc_auc_score(target, probs, sample_weight=weights.numpy(), **settings)
    assert area.value(area.rows(probs, target, weights)).item() == pytest.approx(expected)


def test_the_area_of_a_group_is_that_of_its_summed_probability() -> None:
    probs, target, weights = draw(2)
    area, is_in = RocArea(CLASSES, [1, 3]), (target == 1) | (target == 3)
    expected = roc_auc_score(is_in, probs[:, [1, 3]].sum(1), sample_weight=weights)
    assert area.value(area.rows(probs, target, weights)).item() == pytest.approx(expected)


def test_absent_classes_are_left_out_and_a_single_class_has_no_area() -> None:
    probs, target, _ = draw(3)
    area, known = RocArea(CLASSES), target != 2
    found = area.value(area.rows(probs[known], target[known]))
    of_classes = [
        roc_auc_score(target[known] == label, probs[known, label]) for label in (0, 1, 3)
    ]
    assert found.item() == pytest.approx(sum(of_classes) / 3)
    assert area.value(area.rows(probs, target, known.double())).item() == pytest.approx(
        found.item()
    ), "rows of weight 0 are as absent"
    assert area.value(area.rows(probs, torch.zeros_like(target))).isnan()
