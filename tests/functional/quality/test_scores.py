"""The confusion matrix and its scores, against scikit-learn, torchmetrics, oneDAL, and an exercise with its answers."""

import json
import math
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics
from sklearn.metrics import precision_recall_fscore_support
from torchmetrics import MetricCollection

from mpcs_torch import MulticlassQualityMetrics, metrics
from mpcs_torch.functional import (
    accuracy,
    class_error_rates,
    confusion_matrix,
    macro_f1,
    matthews_correlation,
    multiclass_quality_metrics,
)
from tests.metrics.batches import CLASSES, random_batch
from tests.refused import Refused

SAMPLES = st.integers(2, 5).flatmap(
    lambda size: st.lists(
        st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)),
        min_size=1,
        max_size=40,
    )
)


def share_of_right(confusion: torch.Tensor) -> float:
    """Compute the accuracy as in the records of training runs."""
    return (confusion.trace().double() / confusion.sum()).item()


def mean_f1(confusion: torch.Tensor) -> float:
    right = confusion.diagonal().double()
    occurrences = confusion.sum(dim=0) + confusion.sum(dim=1)
    return ((2 * right / occurrences.clamp(min=1)).sum() / (occurrences > 0).sum()).item()


def correlation(confusion: torch.Tensor) -> float:
    counts = confusion.double()
    true, predicted, total = counts.sum(dim=1), counts.sum(dim=0), counts.sum()
    covariance = counts.trace() * total - true @ predicted
    spread = (total**2 - true @ true) * (total**2 - predicted @ predicted)
    return torch.where(spread > 0, covariance / spread.clamp(min=1).sqrt(), 0.0).item()


SCORES: dict[str, tuple[Any, Any]] = {
    "accuracy": (accuracy, sklearn_metrics.accuracy_score),
    "macro_f1": (
        macro_f1,
        partial(sklearn_metrics.f1_score, average="macro", zero_division=0),
    ),
    "mcc": (matthews_correlation, sklearn_metrics.matthews_corrcoef),
    "matrix": (
        confusion_matrix,
        partial(sklearn_metrics.confusion_matrix, labels=range(5)),
    ),
}
"""Our functions and those of scikit-learn."""


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.filterwarnings("ignore:A single label was found")
@given(pairs=SAMPLES, weighted=st.booleans())
def test_scores_equal_scikit_learn(
    name: str, pairs: list[tuple[int, int]], weighted: bool
) -> None:
    ours, theirs = SCORES[name]
    target, preds = torch.tensor(pairs).T
    weight = torch.arange(1, len(pairs) + 1) / 8 if weighted else None
    expected = theirs(target, preds, sample_weight=weight)
    value = ours(preds, target, weight, num_classes=5)
    tolerance = 1e-7 if weighted and name == "mcc" else 1e-12
    assert value.tolist() == pytest.approx(expected, rel=1e-12, abs=tolerance)


def test_scores_are_bit_for_bit_those_in_records_of_training_runs() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(5000, 10, generator=generator)
    target = torch.randint(0, 10, (5000,), generator=generator)
    confusion = confusion_matrix(logits, target, num_classes=10)
    for kind, function, formula in (
        (metrics.Accuracy, accuracy, share_of_right),
        (metrics.MacroF1, macro_f1, mean_f1),
        (metrics.MatthewsCorrelation, matthews_correlation, correlation),
    ):
        metric = kind(10)
        metric.update(logits.argmax(dim=1), target)
        assert metric.compute().item() == formula(confusion)
        assert function(logits, target, num_classes=10).item() == formula(confusion)


def test_nan_scores_of_a_diverged_run_raise_nothing_without_checks() -> None:
    logits, target = torch.full((4, 3), math.nan), torch.tensor([0, 1, 2, 0])
    for kind in (metrics.Accuracy, metrics.MacroF1, metrics.MatthewsCorrelation):
        metric = kind(3, validate_args=False)
        metric.update(logits, target)
        assert metric.compute().ndim == 0


def test_metrics_of_one_collection_share_the_counts() -> None:
    kinds = (
        "Accuracy",
        "MacroF1",
        "MatthewsCorrelation",
        "ClassErrorRates",
        "MulticlassQualityMetrics",
        "MacroFScore",
    )
    collection = MetricCollection({name: getattr(metrics, name)(CLASSES) for name in kinds})
    collection.update(*random_batch(30, 0))
    collection.update(*random_batch(30, 1))
    assert len(collection.compute_groups) == 1
    assert all(metric.named_sums().true.sum() == 60 for metric in collection.values())


def test_scores_without_samples_are_nan_or_0() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    assert accuracy(nothing, nothing, num_classes=2).isnan()
    assert macro_f1(nothing, nothing, num_classes=2).isnan()
    assert matthews_correlation(nothing, nothing, num_classes=2) == 0
    assert class_error_rates(nothing, nothing, num_classes=2).isnan().all()


DATA = Path(__file__).parents[2] / "oracles/data"
CASES = json.loads((DATA / "onedal_cases.json").read_text())["cases"]
DIALECTS = json.loads((DATA / "dialect_confusion.json").read_text())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_every_case_of_onedal(case: dict[str, Any]) -> None:
    preds, target = torch.tensor(case["preds"]), torch.tensor(case["target"])
    settings = {"num_classes": case["n_classes"], "beta": case["beta"]}
    assert (
        confusion_matrix(preds, target, num_classes=case["n_classes"]).tolist()
        == case["confusion_matrix"]
    )
    values = multiclass_quality_metrics(preds, target, **settings)
    for name, value in case["metrics"].items():
        # oneDAL writes macroPrecision for our macro_precision.
        snake_case = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
        ours = values[snake_case].item()
        assert ours == pytest.approx(
            math.nan if value is None else value, abs=1e-9, nan_ok=True
        ), name


def test_the_answers_of_the_dialect_recognition_exercise() -> None:
    matrix, answers = torch.tensor(DIALECTS["matrix"]), DIALECTS["homework"]
    names = DIALECTS["labels"]
    size = len(names)
    classes = torch.arange(size)
    # Rows are true classes.
    cells = classes.repeat(size), classes.repeat_interleave(size), matrix.flatten()
    rates = class_error_rates(*cells, num_classes=size).tolist()
    expected = {name: row["error_rate"] for name, row in DIALECTS["per_class"].items()}
    assert dict(zip(names, rates, strict=True)) == pytest.approx(expected)
    quality = multiclass_quality_metrics(*cells, num_classes=size)
    for name, answer in (
        ("weighted_error_rate", "weighted_error_rate"),
        ("balanced_error_rate", "unweighted_error_rate"),
    ):
        expected_rate = answers[answer]["value"]
        assert quality[name].item() == pytest.approx(expected_rate, abs=1e-12)


@given(
    seed=st.integers(0, 10**6),
    zero_division=st.sampled_from([0.0, 1.0]),
    beta=st.sampled_from([0.5, 1.0, 2.0]),
)
def test_means_over_classes_equal_scikit_learn(
    seed: int, zero_division: float, beta: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    # There are so few rows that classes are missing.
    preds, target = torch.randint(0, 4, (2, 6), generator=generator)
    quality = multiclass_quality_metrics(
        preds, target, num_classes=5, beta=beta, zero_division=zero_division
    )
    options = {"labels": range(5), "beta": beta, "zero_division": zero_division}
    for average in ("micro", "macro"):
        precision, recall, fscore, _ = precision_recall_fscore_support(
            target, preds, average=average, **options
        )
        assert quality[f"{average}_precision"].item() == pytest.approx(precision)
        assert quality[f"{average}_recall"].item() == pytest.approx(recall)
        if average == "micro":
            assert quality["micro_fscore"].item() == pytest.approx(fscore)


@pytest.mark.parametrize(
    ("settings", "refusal"),
    [
        ({"num_classes": 1}, Refused("at_least", "num_classes", 1, minimum=2)),
        ({"beta": 0.0}, Refused("finite_above", "beta", 0.0, minimum=0)),
        ({"beta": math.nan}, Refused("finite_above", "beta", float("nan"), minimum=0)),
        ({"zero_division": 0.5}, Refused("one_of", "zero_division", 0.5)),
    ],
)
def test_errors_name_the_wrong_setting(settings: dict[str, Any], refusal: Refused) -> None:
    with refusal:
        multiclass_quality_metrics(
            torch.tensor([0]), torch.tensor([0]), **{"num_classes": 3, **settings}
        )
    with refusal:
        MulticlassQualityMetrics(**{"num_classes": 3, **settings})
