"""Quality metrics against output of oneDAL, a published exercise with its answers, and scikit-learn."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import precision_recall_fscore_support

from mpcs_torch import MulticlassQualityMetrics
from mpcs_torch.functional import class_error_rates, confusion_matrix, multiclass_quality_metrics

DATA = Path(__file__).parents[2] / "oracles/data"
CASES = json.loads((DATA / "onedal_cases.json").read_text())["cases"]
DIALECTS = json.loads((DATA / "dialect_confusion.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_case_of_onedal(case: dict[str, Any]) -> None:
    preds, target = torch.tensor(case["preds"]), torch.tensor(case["target"])
    settings = {"num_classes": case["n_classes"], "beta": case["beta"]}
    assert confusion_matrix(preds, target, num_classes=case["n_classes"]).tolist() == case["confusion_matrix"]
    values = multiclass_quality_metrics(preds, target, **settings)
    for name, value in case["metrics"].items():
        ours = values[re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)].item()
        assert ours == pytest.approx(math.nan if value is None else value, abs=1e-9, nan_ok=True), name


def test_the_answers_of_the_dialect_recognition_exercise() -> None:
    matrix, answers = torch.tensor(DIALECTS["matrix"]), DIALECTS["homework"]
    names = DIALECTS["labels"]
    rates = dict(zip(names, class_error_rates(matrix, num_classes=len(names)).tolist(), strict=True))
    quality = multiclass_quality_metrics(matrix, num_classes=len(names))
    assert matrix[names.index("EST")].sum() == answers["estonian_test_samples"]
    assert matrix[names.index("RUS")].sum() - matrix.diagonal()[names.index("RUS")] == answers["russian_errors"]
    assert rates["RUS"] == pytest.approx(answers["russian_error_rate"]["value"], abs=1e-12)
    assert matrix[names.index("TUR"), names.index("ARA")] == answers["turkish_classified_as_arabic"]
    assert quality["weighted_error_rate"].item() == pytest.approx(answers["weighted_error_rate"]["value"], abs=1e-12)
    assert quality["balanced_error_rate"].item() == pytest.approx(answers["unweighted_error_rate"]["value"], abs=1e-12)
    assert rates == pytest.approx({name: value["error_rate"] for name, value in DIALECTS["per_class"].items()})


@given(seed=st.integers(0, 10**6), zero_division=st.sampled_from([0.0, 1.0]), beta=st.sampled_from([0.5, 1.0, 2.0]))
def test_means_over_classes_equal_scikit_learn(seed: int, zero_division: float, beta: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    preds, target = torch.randint(0, 4, (2, 6), generator=generator)  # few: classes are missing
    quality = multiclass_quality_metrics(preds, target, num_classes=5, beta=beta, zero_division=zero_division)
    options = {"labels": range(5), "beta": beta, "zero_division": zero_division}
    for average in ("micro", "macro"):
        precision, recall, fscore, _ = precision_recall_fscore_support(target, preds, average=average, **options)
        assert quality[f"{average}_precision"].item() == pytest.approx(precision)
        assert quality[f"{average}_recall"].item() == pytest.approx(recall)
        if average == "micro":
            assert quality["micro_fscore"].item() == pytest.approx(fscore)


def test_scores_are_decided_and_ignored_labels_left_out() -> None:
    scores = torch.tensor([[0.1, 0.9], [0.5, 0.5], [0.2, 0.8]])
    matrix = confusion_matrix(scores, torch.tensor([1, 0, -1]), num_classes=2, ignore_index=-1)
    assert matrix.tolist() == [[1, 0], [0, 1]]


def test_counts_and_weights_stand_for_samples() -> None:
    preds, target, weight = (
        torch.tensor([0, 0, 0, 1, 3]),
        torch.tensor([0, 0, 1, 1, 2]),
        torch.tensor([1, 2, 0.5, 1, 4]),
    )
    for weights in (None, weight):
        settings: dict[str, Any] = {"num_classes": 4, "zero_division": 0.0}
        confusion = confusion_matrix(preds, target, weights, num_classes=4)
        of_samples = multiclass_quality_metrics(preds, target, weights, **settings)
        assert multiclass_quality_metrics(confusion, **settings) == of_samples
        rates = class_error_rates(preds, target, weights, num_classes=4)
        assert class_error_rates(confusion, num_classes=4).tolist() == pytest.approx(rates.tolist(), nan_ok=True)


@pytest.mark.parametrize(
    ("counts", "settings", "message"),
    [
        (
            torch.ones(2, 3),
            {},
            "preds without a target must be a confusion matrix of shape (2, 2), but got torch.float32",
        ),
        (torch.tensor([[1, -1], [0, 1]]), {}, "preds without a target must hold finite counts >= 0, but got -1."),
        (torch.ones(2, 2), {"ignore_index": 0}, "sample_weight and ignore_index need a target"),
        (torch.ones(2, 2), {"sample_weight": torch.ones(2)}, "sample_weight and ignore_index need a target"),
    ],
)
def test_errors_name_wrong_counts(counts: torch.Tensor, settings: dict[str, Any], message: str) -> None:
    for function in (multiclass_quality_metrics, class_error_rates):
        with pytest.raises(ValueError, match=re.escape(message)):
            function(counts, num_classes=2, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"num_classes": 1}, "num_classes must be at least 2, but got 1."),
        ({"beta": 0.0}, "beta must be finite and > 0, but got 0.0."),
        ({"beta": math.nan}, "beta must be finite and > 0, but got nan."),
        ({"zero_division": 0.5}, "zero_division must be nan, 0 or 1, but got 0.5."),
    ],
)
def test_errors_name_the_wrong_setting(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        multiclass_quality_metrics(torch.tensor([0]), torch.tensor([0]), **{"num_classes": 3, **settings})
    with pytest.raises(ValueError, match=re.escape(message)):
        MulticlassQualityMetrics(**{"num_classes": 3, **settings})
