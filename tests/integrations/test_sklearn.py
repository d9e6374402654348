"""Scorers and displays with scikit-learn's own searches, pipelines and classifiers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from mpcs_torch import ConcernSpec, MetaPatternConcernScore
from mpcs_torch.integrations.sklearn import (
    concern_scorer,
)
from mpcs_torch.metrics import Accuracy
from mpcs_torch.metrics.named_metrics import BY_NAME
from tests.integrations import plain_loop as plain
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
    probabilities = torch.from_numpy(fitted.predict_proba(X))[:, columns]
    entry = BY_NAME[name]
    given = {"decisions": probabilities.argmax(1), "log_probabilities": probabilities.log()}
    value = entry.make(3, concern=CONCERN)(
        given.get(entry.takes, probabilities), TARGET
    ).item()
    sign = 1 if entry.direction == "max" else -1
    assert concern_scorer(name, CONCERN)(fitted, X, NAMES) == pytest.approx(
        sign * value, rel=1e-12
    )


def test_several_scorers_by_name_or_metric_in_one_validation() -> None:
    metric = MetaPatternConcernScore(3, concern=CONCERN, from_logits=False)
    metric.update(torch.eye(3), torch.tensor([1, 1, 1]))  # what it has seen does not count
    scoring = {
        "name": concern_scorer("mpcs", CONCERN),
        "metric": concern_scorer(metric, CONCERN),
    }
    scores = cross_validate(pipeline(), X, NAMES, scoring=scoring, cv=3)
    assert scores["test_name"].tolist() == scores["test_metric"].tolist()


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
    with Refused("spec", "concern", "lights.yaml"):
        concern_scorer("mpcs", "lights.yaml")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "labels", [np.where(LABELS, "rosa", NAMES), LABELS + 1, LABELS + 0.5]
)
def test_labels_that_are_no_classes_are_named(labels: Any) -> None:
    with Refused("classes_of_concern", "labels of y_true"):
        concern_scorer("accuracy", CONCERN)(pipeline().fit(X, NAMES), X, labels)


def test_a_scorer_picks_the_epoch_of_the_plain_loop(tmp_path: Path) -> None:
    """An estimator whose epochs are those of the plain loop; scikit-learn trains no torch model of its own."""
    expected = plain.plain_loop(tmp_path / "plain", keep_every=1)
    inputs, labels = (tensor.numpy() for tensor in plain.data()[1].tensors)
    scorer, net = concern_scorer("mpcs", plain.LIGHTS), plain.model()
    scores = []
    for epoch in range(plain.EPOCHS):
        net.load_state_dict(
            torch.load(tmp_path / "plain" / f"epoch-{epoch:05}.pt", weights_only=True)
        )
        scores.append(scorer(FixedNetwork(net), inputs, labels))
    assert scores == pytest.approx([-score for score in expected.scores])
    assert scores.index(max(scores)) == expected.picked


class FixedNetwork:
    classes_ = np.arange(3)

    def __init__(self, net: nn.Module) -> None:
        self.net = net

    @torch.no_grad()
    def predict_proba(self, inputs: np.ndarray) -> np.ndarray:
        probabilities: np.ndarray = (
            self.net(torch.from_numpy(inputs)).softmax(dim=1).numpy()
        )
        return probabilities


def test_a_metric_of_logits_gets_the_logarithms_of_probabilities() -> None:
    fitted = pipeline().fit(X, NAMES)
    of_logits = concern_scorer(MetaPatternConcernScore(3, concern=CONCERN), CONCERN)
    assert of_logits(fitted, X, NAMES) == pytest.approx(
        concern_scorer("mpcs", CONCERN)(fitted, X, NAMES)
    )
