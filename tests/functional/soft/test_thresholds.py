"""Hard F at thresholds by class, against scikit-learn."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from mpcs_torch.functional import hard_f1
from mpcs_torch.metrics import HardF1
from tests.refused import Refused


def draw(seed: int, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw predictions with many ties, 0 and 1 among them."""
    generator = torch.Generator().manual_seed(seed)
    preds = torch.randint(0, 11, (25, classes), generator=generator) / 10
    target = torch.rand(25, classes, generator=generator)
    target[0] = 0.9
    return preds, target


@given(seed=st.integers(0, 10**6))
def test_each_class_has_its_threshold(seed: int) -> None:
    preds, target = draw(seed)
    thresholds = torch.tensor([0.1, 0.5, 0.75])
    ours = hard_f1(preds, target, num_classes=3, average="none", threshold=thresholds)
    theirs = f1_score(target > 0.5, preds > thresholds, average=None, zero_division=0)
    assert ours.tolist() == pytest.approx(theirs.tolist())


@pytest.mark.parametrize(
    ("threshold", "refusal"),
    [
        (torch.zeros(2), Refused("number_or_shape", "threshold", shape=(3,))),
        (torch.zeros(3).long(), Refused("number_or_shape", "threshold", shape=(3,))),
        (math.nan, Refused("no_nan", "threshold", float("nan"))),
    ],
)
def test_thresholds_that_fit_no_class_are_refused(threshold: Any, refusal: Refused) -> None:
    with refusal:
        hard_f1(*draw(0), num_classes=3, threshold=threshold)
    with refusal:
        HardF1(3, threshold=threshold)
