"""The confusion matrix and its scores, against scikit-learn and torchmetrics."""

import math
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sklearn_metrics
from torchmetrics import MetricCollection
from torchmetrics.classification import MulticlassAccuracy, MulticlassF1Score, MulticlassMatthewsCorrCoef

from mpcs_torch import metrics
from mpcs_torch.functional import accuracy, class_error_rates, confusion_matrix, macro_f1, matthews_correlation
from mpcs_torch.functional.quality.scores import accuracy_of, class_counts, macro_f1_of, matthews_correlation_of
from tests.metrics.batches import CLASSES, random_batch

SAMPLES = st.integers(2, 5).flatmap(
    lambda size: st.lists(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), min_size=1, max_size=40)
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


@given(SAMPLES, st.booleans())
@pytest.mark.filterwarnings("ignore:A single label was found")
def test_scores_equal_scikit_learn(pairs: list[tuple[int, int]], weighted: bool) -> None:
    true, predicted = zip(*pairs, strict=True)
    target, preds = torch.tensor(true), torch.tensor(predicted)
    weight = torch.arange(1, len(pairs) + 1) / 8 if weighted else None
    theirs: dict[str, Any] = {"sample_weight": None if weight is None else weight.tolist()}
    exactly = {"rel": 1e-12, "abs": 1e-12}
    assert accuracy(preds, target, weight, num_classes=5).item() == pytest.approx(
        sklearn_metrics.accuracy_score(true, predicted, **theirs), **exactly
    )
    assert macro_f1(preds, target, weight, num_classes=5).item() == pytest.approx(
        sklearn_metrics.f1_score(true, predicted, average="macro", zero_division=0, **theirs), **exactly
    )
    assert matthews_correlation(preds, target, weight, num_classes=5).item() == pytest.approx(
        sklearn_metrics.matthews_corrcoef(true, predicted, **theirs), abs=1e-7 if weighted else 1e-12
    )
    confusion = confusion_matrix(preds, target, weight, num_classes=5)
    expected = sklearn_metrics.confusion_matrix(true, predicted, labels=range(5), **theirs)
    assert confusion.flatten().tolist() == pytest.approx(expected.flatten().tolist())


@given(SAMPLES)
@pytest.mark.filterwarnings("ignore:A single label was found")
def test_scores_equal_torchmetrics(pairs: list[tuple[int, int]]) -> None:
    target, preds = torch.tensor(pairs).t()
    for ours, theirs in (
        (accuracy, MulticlassAccuracy(5, average="micro")),
        (macro_f1, MulticlassF1Score(5, average="macro")),
        (matthews_correlation, MulticlassMatthewsCorrCoef(5)),
    ):
        assert ours(preds, target, num_classes=5).item() == pytest.approx(theirs(preds, target).item(), abs=1e-6)


def test_scores_are_bit_for_bit_those_in_records_of_training_runs() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(5000, 10, generator=generator)
    target = torch.randint(0, 10, (5000,), generator=generator)
    confusion = confusion_matrix(logits, target, num_classes=10)
    for kind, function, kernel, formula in (
        (metrics.Accuracy, accuracy, accuracy_of, share_of_right),
        (metrics.MacroF1, macro_f1, macro_f1_of, mean_f1),
        (metrics.MatthewsCorrelation, matthews_correlation, matthews_correlation_of, correlation),
    ):
        metric = kind(10)
        metric.update(logits.argmax(dim=1), target)
        assert metric.compute().item() == formula(confusion)
        assert function(logits, target, num_classes=10).item() == formula(confusion)
        assert kernel(class_counts(confusion)).item() == formula(confusion)


def test_nan_scores_of_a_diverged_run_raise_nothing_without_checks() -> None:
    logits, target = torch.full((4, 3), math.nan), torch.tensor([0, 1, 2, 0])
    for kind in (metrics.Accuracy, metrics.MacroF1, metrics.MatthewsCorrelation):
        metric = kind(3, validate_args=False)
        metric.update(logits, target)
        assert metric.compute().ndim == 0


def test_metrics_of_one_collection_share_the_counts() -> None:
    kinds = ("Accuracy", "MacroF1", "MatthewsCorrelation", "ClassErrorRates", "MulticlassQualityMetrics", "MacroFScore")
    collection = MetricCollection({name: getattr(metrics, name)(CLASSES) for name in kinds})
    collection.update(*random_batch(30, 0))
    collection.update(*random_batch(30, 1))
    assert len(collection.compute_groups) == 1
    assert all(metric.sums().true.sum() == 60 for metric in collection.values())


def test_scores_without_samples_are_nan_or_0() -> None:
    nothing = torch.zeros(0, dtype=torch.int64)
    assert accuracy(nothing, nothing, num_classes=2).isnan()
    assert macro_f1(nothing, nothing, num_classes=2).isnan()
    assert matthews_correlation(nothing, nothing, num_classes=2) == 0
    assert class_error_rates(nothing, nothing, num_classes=2).isnan().all()
