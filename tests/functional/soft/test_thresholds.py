"""Hard F at thresholds by class, against scikit-learn."""

import math
import re
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from mpcs_torch.functional import hard_f1
from mpcs_torch.metrics import HardF1


def drawn(seed: int, classes: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Draw predictions with many ties, 0 and 1 among them."""
    generator = torch.Generator().manual_seed(seed)
    preds = torch.randint(0, 11, (25, classes), generator=generator) / 10
    target = torch.rand(25, classes, generator=generator)
    target[0] = 0.9
    return preds, target


@given(seed=st.integers(0, 10**6))
def test_each_class_has_its_threshold(seed: int) -> None:
    preds, target = drawn(seed)
    thresholds = torch.tensor([0.1, 0.5, 0.75])
    ours = hard_f1(preds, target, num_classes=3, average="none", threshold=thresholds)
    theirs = f1_score(target > 0.5, preds > thresholds, average=None, zero_division=0)
    assert ours.tolist() == pytest.approx(theirs.tolist())


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
