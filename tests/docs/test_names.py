"""The page of names says which classes of torchmetrics and scikit-learn give the same values."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
import torchmetrics.classification as tm
from torch.nn.functional import one_hot

from mpcs_torch import evaluate, metrics

C = 5
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = 2 * torch.randn(300, C, generator=GENERATOR)
TARGET = (LOGITS + 2 * torch.randn(300, C, generator=GENERATOR)).argmax(1)
DECIDED, PROBS = LOGITS.argmax(1), LOGITS.double().softmax(1)
SCORES = PROBS[:, 0]
IS_TARGET = (TARGET == 0).long()
Value = Callable[[], Any]

SAME: dict[str, tuple[Value, list[Value]]] = {
    "Accuracy": (
        lambda: metrics.Accuracy(C)(LOGITS, TARGET),
        [
            lambda: tm.MulticlassAccuracy(C, average="micro")(LOGITS, TARGET),
            lambda: sk.accuracy_score(TARGET, DECIDED),
        ],
    ),
    "MacroF1": (
        lambda: metrics.MacroF1(C)(LOGITS, TARGET),
        [
            lambda: tm.MulticlassF1Score(C, average="macro")(LOGITS, TARGET),
            lambda: sk.f1_score(TARGET, DECIDED, average="macro"),
        ],
    ),
    "MacroRecall": (
        lambda: metrics.MacroRecall(C)(LOGITS, TARGET),
        [
            lambda: tm.MulticlassRecall(C, average="macro")(LOGITS, TARGET),
            lambda: tm.MulticlassAccuracy(C, average="macro")(LOGITS, TARGET),
            lambda: sk.balanced_accuracy_score(TARGET, DECIDED),
        ],
    ),
    "MacroPrecision": (
        lambda: metrics.MacroPrecision(C)(LOGITS, TARGET),
        [
            lambda: tm.MulticlassPrecision(C, average="macro")(LOGITS, TARGET),
            lambda: sk.precision_score(TARGET, DECIDED, average="macro"),
        ],
    ),
    "AverageAccuracy": (
        lambda: metrics.AverageAccuracy(C)(LOGITS, TARGET),
        [
            lambda: (
                1 - tm.MultilabelHammingDistance(C)(one_hot(DECIDED, C), one_hot(TARGET, C))
            ),
            lambda: 1 - sk.hamming_loss(one_hot(TARGET, C), one_hot(DECIDED, C)),
        ],
    ),
    "WeightedErrorRate": (
        lambda: metrics.WeightedErrorRate(C)(LOGITS, TARGET),
        [
            lambda: 1 - tm.MulticlassAccuracy(C, average="micro")(LOGITS, TARGET),
            lambda: sk.zero_one_loss(TARGET, DECIDED),
        ],
    ),
    "ClassErrorRates": (
        lambda: metrics.ClassErrorRates(C)(LOGITS, TARGET),
        [
            lambda: 1 - tm.MulticlassRecall(C, average="none")(LOGITS, TARGET),
            lambda: 1 - sk.recall_score(TARGET, DECIDED, average=None),
        ],
    ),
    "MatthewsCorrelation": (
        lambda: metrics.MatthewsCorrelation(C)(LOGITS, TARGET),
        [
            lambda: tm.MulticlassMatthewsCorrCoef(C)(LOGITS, TARGET),
            lambda: sk.matthews_corrcoef(TARGET, DECIDED),
        ],
    ),
    "auroc": (
        lambda: evaluate(PROBS, TARGET, metrics=["auroc"]).value("auroc"),
        [
            lambda: tm.MulticlassAUROC(C, average="macro")(PROBS, TARGET),
            lambda: sk.roc_auc_score(TARGET, PROBS, multi_class="ovr", average="macro"),
        ],
    ),
    "Overconfidence": (
        lambda: metrics.Overconfidence(C)(LOGITS.double(), TARGET),
        [lambda: PROBS.amax(1).mean() - sk.accuracy_score(TARGET, DECIDED)],
    ),
    "ConfusionMatrix": (
        lambda: metrics.ConfusionMatrix(C)(LOGITS, TARGET),
        [
            lambda: tm.MulticlassConfusionMatrix(C)(LOGITS, TARGET),
            lambda: sk.confusion_matrix(TARGET, DECIDED),
        ],
    ),
    "BrierScore": (
        lambda: metrics.BrierScore(C)(LOGITS.double(), TARGET),
        [lambda: sk.brier_score_loss(TARGET, PROBS, scale_by_half=False)],
    ),
    "CrossEntropy": (
        lambda: metrics.CrossEntropy(C)(LOGITS.double(), TARGET),
        [lambda: sk.log_loss(TARGET, PROBS)],
    ),
    "EqualErrorRate": (
        lambda: metrics.EqualErrorRate(method="nearest")(SCORES, IS_TARGET),
        [lambda: tm.BinaryEER()(SCORES, IS_TARGET)],
    ),
    "PartialAUC": (
        lambda: metrics.PartialAUC(0.2)(SCORES, IS_TARGET),
        [
            lambda: tm.BinaryAUROC(max_fpr=0.2)(SCORES, IS_TARGET),
            lambda: sk.roc_auc_score(IS_TARGET, SCORES, max_fpr=0.2),
        ],
    ),
    "MissAtFalseAlarm": (
        lambda: metrics.MissAtFalseAlarm(0.1)(SCORES, IS_TARGET),
        [lambda: 1 - tm.BinarySensitivityAtSpecificity(0.9)(SCORES, IS_TARGET)[0]],
    ),
    "FalseAlarmAtMiss": (
        lambda: metrics.FalseAlarmAtMiss(0.1)(SCORES, IS_TARGET),
        [lambda: 1 - tm.BinarySpecificityAtSensitivity(0.9)(SCORES, IS_TARGET)[0]],
    ),
    "DetectionCurve": (
        lambda: metrics.DetectionCurve()(SCORES, IS_TARGET).p_miss[:-1],
        [lambda: 1 - tm.BinaryROC()(SCORES, IS_TARGET)[1].flip(0)[:-1]],
    ),
}


@pytest.mark.parametrize("name", SAME)
def test_the_classes_of_a_row_give_the_same_value(name: str) -> None:
    ours, theirs = SAME[name]
    expected = np.asarray(ours())
    for value in theirs:
        np.testing.assert_allclose(np.asarray(value()), expected, rtol=2e-6, atol=1e-7)


def test_every_row_of_the_page_is_computed() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/names-elsewhere.md").read_text(
        encoding="utf-8"
    )
    rows = [
        line.split("`")[1].split("(")[0]
        for line in page.splitlines()
        if line.startswith("| `")
    ]
    assert set(rows) == {*SAME, "MacroFScore"}
