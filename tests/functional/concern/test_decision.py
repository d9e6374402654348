"""Decisions with the minimum expected concern, against plain Python and scikit-learn's confusion matrix."""

import re
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix
from torch import Tensor

from mpcs_torch import ExpectedConcern
from mpcs_torch.functional import expected_concern, least_concern_decision


def draw(seed: int, samples: int = 30, classes: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    probs = torch.rand(samples, classes, generator=generator, dtype=torch.float64)
    target = torch.randint(0, classes, (samples,), generator=generator)
    concern = 0.1 + torch.rand(classes, classes, generator=generator, dtype=torch.float64)
    return probs / probs.sum(1, keepdim=True), target, concern


@given(seed=st.integers(0, 10**6))
def test_decisions_have_the_minimum_expected_cost(seed: int) -> None:
    probs, _, concern = draw(seed)
    for row, decided in zip(probs.tolist(), least_concern_decision(probs, concern=concern).tolist(), strict=True):
        risks = [sum(p * concern[i, j].item() for i, p in enumerate(row) if i != j) for j in range(4)]
        assert risks[decided] == pytest.approx(min(risks))


@given(seed=st.integers(0, 10**6))
def test_equal_weights_decide_for_the_most_probable_class(seed: int) -> None:
    probs, _, _ = draw(seed)
    assert torch.equal(least_concern_decision(probs, concern=torch.ones(4, 4)), probs.argmax(dim=1))


def test_ties_go_to_the_lower_index_and_extra_dimensions_stay() -> None:
    probs = torch.full((2, 3, 5), 1 / 3)
    assert torch.equal(least_concern_decision(probs, concern=torch.ones(3, 3)), torch.zeros(2, 5, dtype=torch.int64))


@given(seed=st.integers(0, 10**6))
def test_expected_concern_equals_the_cost_of_the_confusion_matrix(seed: int) -> None:
    probs, target, concern = draw(seed)
    counts = confusion_matrix(target, probs.argmax(dim=1), labels=range(4))
    costs = concern.numpy() * (1 - np.eye(4))
    constant = (counts.sum(axis=1) @ costs).min()
    arguments = {"num_classes": 4, "concern": concern, "from_logits": False}
    assert expected_concern(probs, target, **arguments).item() == pytest.approx((counts * costs).sum() / constant)
    plain = expected_concern(probs.argmax(dim=1), target, num_classes=4, concern=concern, normalize=False)
    assert plain.item() == pytest.approx((counts * costs).sum() / len(target))


def test_ignored_samples_cost_nothing() -> None:
    probs, target, concern = draw(0)
    settings: dict[str, Any] = {"num_classes": 4, "concern": concern}
    kept = expected_concern(probs[:20], target[:20], **settings, from_logits=False)
    target[20:] = -1
    assert expected_concern(probs, target, **settings, from_logits=False, ignore_index=-1) == kept
    decisions = probs.argmax(dim=1)
    assert expected_concern(decisions, target, **settings, ignore_index=-1) == kept


def test_weights_repeat_samples() -> None:
    probs, target, concern = draw(1, samples=3)
    settings: dict[str, Any] = {"num_classes": 4, "concern": concern, "from_logits": False}
    for normalize in (True, False):
        weighted = expected_concern(probs, target, torch.tensor([1, 0, 2]), **settings, normalize=normalize)
        repeated = expected_concern(probs[[0, 2, 2]], target[[0, 2, 2]], **settings, normalize=normalize)
        assert weighted.item() == pytest.approx(repeated.item())


def test_without_concern_errors_are_counted() -> None:
    decisions, target = torch.tensor([0, 1, 2]), torch.tensor([0, 1, 0])
    assert expected_concern(decisions, target, num_classes=3, normalize=False).item() == pytest.approx(1 / 3)


def test_a_constant_decision_costs_one() -> None:
    target = torch.tensor([0, 0, 1])
    assert expected_concern(torch.zeros(3, dtype=torch.int64), target, num_classes=2) == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"decision": "least_concern"}, "preds must be floating point scores to decide by 'least_concern', but got"),
        ({"concern": "spec"}, "concern must be a tensor of weights (of a ConcernSpec: its matrix()), but got 'spec'."),
        ({"decision": "best"}, "decision must be 'most_probable' or 'least_concern', but got 'best'."),
        ({"concern": torch.ones(3, 2)}, "concern must have shape (3, 3)"),
        (
            {"target": torch.tensor([0, 3])},
            "target must hold class indices from 0 to 2 (or ignore_index), but sample 1",
        ),
        (
            {"preds": torch.tensor([0, 5])},
            "preds must hold class indices from 0 to 2, or scores without NaN, but sample 1",
        ),
        ({"preds": torch.tensor([[0.5, 0.5, 0.5], [1.0, 0, 0]]), "from_logits": False}, "preds must be probabilities"),
    ],
)
def test_errors_name_the_wrong_argument(changed: dict[str, object], message: str) -> None:
    labels = {"preds": torch.tensor([0, 1]), "target": torch.tensor([0, 1])}
    arguments: dict[str, Any] = {**labels, "num_classes": 3, "concern": torch.ones(3, 3), **changed}
    with pytest.raises(ValueError, match=re.escape(message)):
        expected_concern(**arguments)


def test_errors_name_probabilities_of_a_wrong_shape() -> None:
    with pytest.raises(ValueError, match=r"probs must be floating point of shape \(N, C\)"):
        least_concern_decision(torch.tensor([1, 2]), concern=torch.ones(2, 2))


def test_the_metric_adds_batches_of_decisions_and_of_scores() -> None:
    probs, target, concern = draw(2)
    metric = ExpectedConcern(4, concern=concern, from_logits=False)
    metric.update(probs[:10], target[:10])
    metric.update(probs[10:].argmax(dim=1), target[10:])
    whole = expected_concern(probs, target, num_classes=4, concern=concern, from_logits=False)
    assert metric.compute() == pytest.approx(whole.item())
