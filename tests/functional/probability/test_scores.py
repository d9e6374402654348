"""The Brier score and the cross entropy against scikit-learn, torch and the formulas of training records."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import brier_score_loss, log_loss
from torch import Tensor

from mpcs_torch.functional import (
    brier_score,
    cross_entropy,
    probability_accuracy,
)
from mpcs_torch.metrics import BrierScore, CrossEntropy
from tests.refused import Refused


def draw(seed: int, samples: int = 30, classes: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(samples, classes, generator=generator)
    return (
        logits,
        torch.randint(0, classes, (samples,), generator=generator),
        torch.rand(samples, generator=generator),
    )


@given(seed=st.integers(0, 10**6), weighted=st.booleans())
def test_scores_equal_scikit_learn(seed: int, weighted: bool) -> None:
    pytest.importorskip(
        "sklearn",
        "1.7",
        reason="scikit-learn takes several classes, and weights as tensors, from 1.7 on",
    )
    logits, target, weight = draw(seed)
    logits = logits.double()
    weights = weight if weighted else None
    theirs: dict[str, Any] = {"sample_weight": weights, "labels": range(4)}
    brier = brier_score_loss(target, logits.softmax(1), scale_by_half=False, **theirs)
    entropy = log_loss(target, logits.softmax(1), **theirs)
    for score, preds, settings, expected in (
        (brier_score, logits, {}, brier),
        (brier_score, logits.softmax(1), {"from_logits": False}, brier),
        (brier_score, logits, {"over_classes": "mean"}, brier / 4),
        (cross_entropy, logits, {}, entropy),
        (cross_entropy, logits.softmax(1), {"from_logits": False}, entropy),
        (cross_entropy, logits.log_softmax(1), {"normalized": True}, entropy),
    ):
        value = score(preds, target, weights, num_classes=4, **settings)
        assert value.item() == pytest.approx(expected, rel=1e-12)


def test_scores_are_bit_for_bit_those_in_records_of_training_runs() -> None:
    logits, target, _ = draw(0, samples=5000, classes=10)
    log_probs = logits.log_softmax(dim=1)
    probs, column = log_probs.exp(), target.unsqueeze(1)
    errors = probs.scatter_add(1, column, torch.full_like(column, -1, dtype=probs.dtype))
    squared_error = errors.square().mean(dtype=torch.float64).item()
    entropy = -log_probs.gather(1, column).mean(dtype=torch.float64).item()
    for preds, settings in ((logits, {}), (probs, {"from_logits": False})):
        alone = brier_score(preds, target, num_classes=10, over_classes="mean", **settings)
        assert alone.item() == squared_error
    for preds, settings in ((logits, {}), (log_probs, {"normalized": True})):
        assert cross_entropy(preds, target, num_classes=10, **settings).item() == entropy


def test_nan_logits_of_a_diverged_run_raise_nothing_without_checks() -> None:
    logits, target = torch.full((3, 4), math.nan), torch.tensor([0, 1, 2])
    for metric in (
        BrierScore(4, validate_args=False),
        BrierScore(4, from_logits=False, validate_args=False),
        CrossEntropy(4, validate_args=False),
        CrossEntropy(4, normalized=True, validate_args=False),
        CrossEntropy(4, from_logits=False, validate_args=False),
    ):
        metric.update(logits, target)
        assert metric.compute().isnan()


def test_cross_entropy_is_infinite_if_a_true_class_has_probability_0_and_weight() -> None:
    probs, target = torch.tensor([[1.0, 0.0], [0.5, 0.5]]), torch.tensor([1, 1])
    assert cross_entropy(probs, target, num_classes=2, from_logits=False) == math.inf
    weighted = cross_entropy(
        probs, target, torch.tensor([0, 1]), num_classes=2, from_logits=False
    )
    assert weighted.item() == pytest.approx(math.log(2))


@pytest.mark.parametrize(
    ("score", "changed", "refusal"),
    [
        (brier_score, {"over_classes": "max"}, Refused("one_of", "over_classes", "max")),
        (brier_score, {"num_classes": 1}, Refused("at_least", "num_classes", 1, minimum=2)),
        (brier_score, {"from_logits": False}, Refused("probabilities", "preds")),
        (cross_entropy, {"normalized": True}, Refused("log_probabilities", "preds")),
        (
            cross_entropy,
            {"normalized": True, "from_logits": False},
            Refused("needs", "normalized=True", other="from_logits=True"),
        ),
        (
            cross_entropy,
            {"preds": torch.tensor([[math.inf, 0.0], [0.0, 0.0]])},
            Refused("logits", "preds"),
        ),
        (probability_accuracy, {"cells": 7}, Refused("multiple", "cells", 7, number=200)),
    ],
)
def test_errors_name_the_wrong_argument(
    score: Any, changed: dict[str, Any], refusal: Refused
) -> None:
    arguments = {
        "preds": torch.ones(2, 2),
        "target": torch.tensor([0, 1]),
        "num_classes": 2,
        **changed,
    }
    with refusal:
        score(**arguments)
