"""Thresholds by class with the highest hard F, against scikit-learn's curve of all thresholds."""

import math
import re
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st
from sklearn.metrics import fbeta_score, precision_recall_curve

from mpcs_torch.functional import best_f_thresholds, hard_f1
from mpcs_torch.metrics import HardF1
from tests.oracles.naive_detection import widest_of_best


def drawn(seed: int, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw predictions with many ties, 0 and 1 among them."""
    generator = torch.Generator().manual_seed(seed)
    preds = torch.randint(0, 11, (25, classes), generator=generator) / 10
    target = torch.rand(25, classes, generator=generator)
    target[0] = 0.9
    return preds, target


@given(seed=st.integers(0, 10**6), beta=st.sampled_from([0.5, 1.0, 2.0]))
def test_f_is_the_highest_on_the_curve_and_is_reached_above_the_threshold(seed: int, beta: float) -> None:
    preds, target = drawn(seed)
    best = best_f_thresholds(preds, target, num_classes=3, beta=beta)
    for c in range(3):
        truth = (target[:, c] > 0.5).numpy()
        precision, recall, _ = precision_recall_curve(truth, preds[:, c].numpy())
        of_curve = (1 + beta**2) * precision * recall / np.maximum(beta**2 * precision + recall, 1e-300)
        assert best.fscore[c].item() == pytest.approx(of_curve.max())
        decided = (preds[:, c] > best.threshold[c]).numpy()
        assert fbeta_score(truth, decided, beta=beta) == pytest.approx(best.fscore[c].item())


def test_the_threshold_is_the_middle_of_the_best_interval() -> None:
    preds, target = torch.tensor([0.125, 0.25, 0.5, 0.75]), torch.tensor([0.0, 0.5, 1.0, 0.6])
    best = best_f_thresholds(preds, target, num_classes=1)
    assert (best.threshold.item(), best.fscore.item()) == (0.375, 1.0), "a label of 0.5 is negative"


@given(
    st.lists(st.tuples(st.integers(0, 8), st.booleans()), min_size=1, max_size=12).filter(
        lambda drawn: any(is_true for _, is_true in drawn)
    ),
    st.sampled_from([0.5, 1.0, 2.0]),
)
@example([(8, True), (7, False), (6, False), (4, True), (3, False), (1, False)], 1.0).via("two equally wide intervals")
@example([(8, True), (7, False), (6, False), (4, True), (2, False), (1, False)], 1.0).via("the lower one is wider")
@example([(8, True), (5, False), (4, False), (3, True), (2, False), (1, False)], 1.0).via("the upper one is wider")
@example([(8, True), (7, False), (6, False), (4, True)], 1.0).via("accepting everything is as good, but not bounded")
def test_of_intervals_that_tie_the_widest_bounded_one_is_taken(drawn: list[tuple[int, bool]], beta: float) -> None:
    preds = torch.tensor([eighths / 8 for eighths, _ in drawn])
    best = best_f_thresholds(preds, torch.tensor([is_true for _, is_true in drawn]), num_classes=1, beta=beta)
    found, squared = [], Fraction(beta) ** 2
    for low, high in pairwise([-math.inf, *sorted(set(preds.tolist()))]):
        accepted = [is_true for eighths, is_true in drawn if eighths / 8 >= high]
        fscore = (1 + squared) * sum(accepted) / (squared * sum(y for _, y in drawn) + len(accepted))
        found.append((-fscore, low, high))  # the lowest is the best
    low, high = widest_of_best(found)
    assert best.threshold.item() == (low if math.isinf(low) else (low + high) / 2)
    assert best.fscore.item() == pytest.approx(float(-min(found)[0]))


def test_no_float_between_two_predictions() -> None:
    low = torch.tensor(0.5, dtype=torch.float64)
    preds = torch.stack([low, low.nextafter(torch.tensor(1.0).double())])
    best = best_f_thresholds(preds, torch.tensor([0.0, 1.0]), num_classes=1)
    assert (preds > best.threshold).tolist() == [False, True]


def test_accepting_everything_and_classes_without_a_positive_label() -> None:
    preds, target = torch.tensor([[0.0, 0.9], [0.3, 0.2]]), torch.tensor([[0.9, 0.5], [0.8, 0.1]])
    best = best_f_thresholds(preds, target, num_classes=2)
    assert best.threshold.tolist() == [-math.inf, math.inf]
    assert best.fscore[0] == 1
    assert best.fscore[1].isnan()


def test_ignored_elements_do_not_count() -> None:
    preds, target = drawn(1)
    ignore = torch.rand(preds.shape, generator=torch.Generator().manual_seed(2)) < 0.3
    ours = best_f_thresholds(preds.masked_fill(ignore, math.nan), target, ignore, num_classes=3)
    for c in range(3):
        kept = ~ignore[:, c]
        alone = best_f_thresholds(preds[kept, c], target[kept, c], num_classes=1)
        assert (ours.threshold[c].item(), ours.fscore[c].item()) == (alone.threshold.item(), alone.fscore.item())


def test_errors_name_the_wrong_argument() -> None:
    preds = torch.tensor([0.5, 1.5])
    with pytest.raises(ValueError, match=r"preds must hold degrees of truth from 0 to 1, but sample 1 has \[1.5\]"):
        best_f_thresholds(preds, torch.zeros(2), num_classes=1)
    with pytest.raises(ValueError, match="beta must be finite and > 0, but got 0"):
        best_f_thresholds(preds, torch.zeros(2), num_classes=1, beta=0)


@pytest.mark.parametrize(
    ("threshold", "message"),
    [
        (torch.zeros(2), r"threshold must be a number or floating point of shape (3,), but got torch.float32 of shape"),
        (torch.zeros(3).long(), "threshold must be a number or floating point of shape (3,), but got torch.int64 of"),
        (math.nan, "threshold must not be NaN, but got nan."),
    ],
)
def test_thresholds_that_fit_no_class_are_refused(threshold: Any, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        hard_f1(*drawn(0), num_classes=3, threshold=threshold)
    with pytest.raises(ValueError, match=re.escape(message)):
        HardF1(3, threshold=threshold)
