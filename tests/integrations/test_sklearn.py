"""Scorers and displays with scikit-learn's own searches, pipelines and classifiers."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.integrations.sklearn import (
    concern_scorer,
)
from mpcs_torch.metrics import Accuracy
from mpcs_torch.metrics.named_metrics import BY_NAME
from tests.refused import Refused

X, LABELS = load_iris(return_X_y=True)
ORDER = ("virginica", "setosa", "versicolor")
"""Not the alphabetical order of ``classes_``."""
NAMES = np.array(["setosa", "versicolor", "virginica"])[LABELS]
CONCERN = ConcernSpec(ORDER, weights=[[0, 9, 2], [7, 0, 5], [1, 4, 0]], dangerous=5)
TARGET = torch.tensor([ORDER.index(name) for name in NAMES])


def pipeline(**settings: Any) -> Any:
    return make_pipeline(StandardScaler(), LogisticRegression(**settings))


@pytest.mark.parametrize(
    "name",
    [
        "mpcs",
        "expected_concern",
        "cross_entropy",
        "dangerous",
        "accuracy",
        "macro_f1",
        "auroc",
    ],
)
def test_scores_are_those_of_the_metric_over_the_classes_of_the_concern(name: str) -> None:
    fitted = pipeline(C=0.01).fit(X, NAMES)
    columns = [list(fitted.classes_).index(label) for label in ORDER]
    preds = torch.from_numpy(fitted.predict_proba(X))[:, columns]
    entry = BY_NAME[name]
    if entry.takes == "decisions":
        preds = preds.argmax(1)
    if entry.takes == "log_probabilities":
        preds = preds.log()
    value = entry.make(3, concern=CONCERN)(preds, TARGET).item()
    expected = value if entry.direction == "max" else -value
    score = concern_scorer(name, CONCERN)(fitted, X, NAMES)
    assert score == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("from_logits", "seen"), [(False, 1.0), (True, 9.0)])
def test_a_metric_counts_nothing_that_it_has_seen_before(
    from_logits: bool, seen: float
) -> None:
    """Probabilities are passed as their logarithms if it takes logits."""
    metric = MetaPatternConcernScore(3, concern=CONCERN, from_logits=from_logits)
    metric.update(seen * torch.eye(3), torch.tensor([1, 1, 1]))
    fitted = pipeline().fit(X, NAMES)
    expected = concern_scorer("mpcs", CONCERN)(fitted, X, NAMES)
    for _ in range(2):
        score = concern_scorer(metric, CONCERN)(fitted, X, NAMES)
        assert score == pytest.approx(expected, rel=1e-12)


def test_a_class_that_was_not_seen_in_training_has_probability_0() -> None:
    seen = NAMES != "setosa"
    fitted = pipeline().fit(X[seen], NAMES[seen])
    assert concern_scorer("cross_entropy", CONCERN)(fitted, X, NAMES) == -np.inf
    assert np.isfinite(concern_scorer("mpcs", CONCERN)(fitted, X, NAMES))
    one_class = concern_scorer("accuracy", CONCERN)(fitted, X[~seen], NAMES[~seen])
    assert one_class == 0.0


@pytest.mark.parametrize(
    ("metric", "settings", "code"),
    [
        ("soft_f1_micro", {}, "scorer_input"),
        ("recall[setosa]", {}, "scorer_input"),
        ("xyz", {}, "metric_name"),
        ("mcps", {}, "unknown_metric"),
        ("calibration_slope", {}, "no_direction"),
        ("mpcs", {"kk": 3}, "unknown_setting"),
        (Accuracy(3), {"k": 3}, "settings_of_name"),
    ],
)
def test_what_cannot_be_a_scorer_is_refused(
    metric: Any, settings: dict[str, Any], code: str
) -> None:
    with Refused(code):
        concern_scorer(metric, CONCERN, **settings)


def test_a_concern_must_be_a_spec() -> None:
    with Refused("spec", "concern", "lights.yaml"):
        concern_scorer("mpcs", "lights.yaml")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "labels", [np.where(LABELS, "rosa", NAMES), LABELS + 1, LABELS + 0.5]
)
def test_labels_that_are_no_classes_are_named(labels: Any) -> None:
    with Refused("classes_of_concern", "labels of y_true"):
        concern_scorer("accuracy", CONCERN)(pipeline().fit(X, NAMES), X, labels)
