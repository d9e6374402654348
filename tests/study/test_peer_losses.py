"""The losses of others, against their formulas in plain Python."""

from math import exp, log

import pytest
import torch

from mpcs_torch import ConcernSpec
from mpcs_torch.study.peer_losses import cost_weighted, focal, soft_labels, with_expected_cost

CONCERN = ConcernSpec(3, releases=[[0, 1]], factor=0.5)
COSTS = [[0, 0.1, 1], [1, 0, 1], [1, 1, 0]]
LOGITS, TARGET = torch.tensor([[1.0, 2.0, 0.5], [0.0, 3.0, 1.0]]), torch.tensor([0, 1])
PROBS = LOGITS.softmax(dim=1).tolist()


def test_cost_weighted_cross_entropy_weighs_true_classes_by_their_mean_cost() -> None:
    weights = [1.1, 2, 2]
    losses = [-log(row[y]) * weights[y] for row, y in zip(PROBS, TARGET.tolist(), strict=True)]
    expected = sum(losses) / (weights[0] + weights[1])
    assert cost_weighted(CONCERN, released=0.1)(LOGITS, TARGET).item() == pytest.approx(expected)


def test_soft_labels_fall_off_with_the_cost() -> None:
    expected = 0.0
    for row, y in zip(PROBS, TARGET.tolist(), strict=True):
        labels = [exp(-2 * cost) for cost in COSTS[y]]
        expected -= sum(label / sum(labels) * log(p) for label, p in zip(labels, row, strict=True)) / 2
    assert soft_labels(CONCERN, sharpness=2.0, released=0.1)(LOGITS, TARGET).item() == pytest.approx(expected)


def test_focal_loss_forgets_what_is_easy() -> None:
    expected = sum(-((1 - row[y]) ** 2) * log(row[y]) for row, y in zip(PROBS, TARGET.tolist(), strict=True)) / 2
    assert focal(CONCERN, gamma=2.0)(LOGITS, TARGET).item() == pytest.approx(expected)


def test_the_expected_cost_is_added() -> None:
    expected = sum(
        -log(row[y]) + 3 * sum(p * cost for p, cost in zip(row, COSTS[y], strict=True))
        for row, y in zip(PROBS, TARGET.tolist(), strict=True)
    )
    assert with_expected_cost(CONCERN, share=3.0, released=0.1)(LOGITS, TARGET).item() == pytest.approx(expected / 2)
