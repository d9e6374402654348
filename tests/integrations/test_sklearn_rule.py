"""The classifier with a rule, by scikit-learn's own checks, and by what it promises."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from mpcs_torch import ConcernSpec
from mpcs_torch.integrations.sklearn import class_indices, concern_scorer
from mpcs_torch.integrations.sklearn_rule import DecisionRuleClassifier
from mpcs_torch.learning import Limit
from mpcs_torch.metrics import ExpectedConcern
from tests.refused import Refused

X, LABELS = load_iris(return_X_y=True)
ORDER = ("virginica", "setosa", "versicolor")
"""Not the alphabetical order of ``classes_``."""
NAMES = np.array(["setosa", "versicolor", "virginica"])[LABELS]
WEIGHTS = [[0, 9, 2], [7, 0, 5], [1, 4, 0]]
CONCERN = ConcernSpec(ORDER, weights=WEIGHTS, dangerous=5, refer=0.2)


@pytest.mark.filterwarnings("ignore")  # the checks fit a few random samples
def test_the_checks_of_scikit_learn_pass() -> None:
    check_estimator(DecisionRuleClassifier(GaussianNB()), on_skip=None)


def test_predictions_have_the_minimum_expected_cost() -> None:
    classifier = DecisionRuleClassifier(
        GaussianNB(), concern=CONCERN, calibration=None, random_state=0
    )
    predicted = classifier.fit(X, NAMES).predict(X)
    probabilities = classifier.estimator_.predict_proba(X)
    assert classifier.classes_.tolist() == sorted(ORDER)
    assert classifier.predict_proba(X) == pytest.approx(probabilities, abs=1e-6)
    in_order = probabilities[:, [sorted(ORDER).index(name) for name in ORDER]]
    costs = np.column_stack([in_order @ np.array(WEIGHTS), np.full(len(X), 0.2)])
    expected = np.array([*ORDER, "refer"])[costs.argmin(axis=1)]
    assert predicted.tolist() == expected.tolist()
    assert 0 < (predicted == "refer").mean() < 0.5


def noisy(samples: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    inputs = random.normal(size=(samples, 2))
    return inputs, (inputs[:, 0] + random.normal(size=samples) > 0).astype(int)


def test_a_limit_holds_for_a_classifier_that_knows_its_training_samples_by_heart() -> None:
    limit, repetitions, new = 0.1, 40, noisy(2000, 999)
    rates = []
    for seed in range(repetitions):
        by_heart = KNeighborsClassifier(15, weights="distance")
        classifier = DecisionRuleClassifier(
            by_heart, limits=Limit(limit, confidence=0.9), random_state=seed
        )
        predicted = classifier.fit(*noisy(500, seed)).predict(new[0])
        rates.append(((predicted != new[1]) & (predicted != -1)).mean())
    assert np.mean(np.array(rates) > limit) <= 0.1 + 2 * (0.1 * 0.9 / repetitions) ** 0.5
    assert np.mean(rates) > limit / 3, (
        "a rule that refers everything would keep to any limit"
    )


class Recorder(GaussianNB):  # type: ignore[misc]
    """Remembers the first feature of the samples that it is trained on, and of all those that it judges after that."""

    trained: set[float]
    judged: set[float]

    def fit(self, X: Any, y: Any) -> Any:
        self.trained = set(X[:, 0].tolist())
        self.judged = set()
        return super().fit(X, y)

    def predict_proba(self, X: Any) -> Any:
        self.judged |= set(X[:, 0].tolist())
        return super().predict_proba(X)


@pytest.mark.filterwarnings("ignore:E4")
def test_a_cluster_is_never_in_both_parts() -> None:
    patients = np.arange(600) // 6
    random = np.random.default_rng(0)
    labels = random.integers(2, size=600)
    inputs = np.stack([patients, labels + random.normal(size=600)], axis=1)
    classifier = DecisionRuleClassifier(Recorder(), limits=Limit(0.4), random_state=0)
    classifier.fit(inputs, labels, clusters=[f"patient {number}" for number in patients])
    recorder, report = classifier.estimator_, classifier.rule_.report
    assert not recorder.trained & recorder.judged
    assert (len(recorder.trained), len(recorder.judged)) == (70, 30)
    assert report is not None
    assert report.calibrated_by + report.judged_by == 6 * 30


def test_a_trained_classifier_leaves_all_samples_to_the_rule() -> None:
    trained = GaussianNB().fit(*noisy(200, 0))
    classifier = DecisionRuleClassifier(FrozenEstimator(trained), limits=Limit(0.1)).fit(
        *noisy(1000, 1)
    )
    report = classifier.rule_.report
    assert report is not None
    assert report.calibrated_by + report.judged_by == 1000
    with Refused("classes_of_concern", "labels of classes_", 0):
        classifier.fit(noisy(1000, 1)[0], noisy(1000, 1)[1] + 1)


@pytest.mark.parametrize("table", [dict, pd.DataFrame])
def test_limits_by_a_column_take_groups(table: Any) -> None:
    inputs, labels = noisy(2000, 0)
    groups = table({"site": ["A", "B"] * 1000, "other": [None] * 2000})
    classifier = DecisionRuleClassifier(
        GaussianNB(), limits=Limit(0.1, by="site"), random_state=0
    )
    assert classifier.fit(inputs, labels, groups=groups).rule_.report is not None
    with Refused("columns_of_limits", "groups"):
        classifier.fit(inputs, labels)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        classifier.fit(inputs[1:], labels[1:], groups=groups)


@pytest.mark.filterwarnings("ignore:100 % of the samples of the fit are referred")
def test_probabilities_of_0_are_taken_and_those_that_are_nan_are_referred() -> None:
    class OfFeatures(GaussianNB):  # type: ignore[misc]
        def predict_proba(self, X: Any) -> Any:
            return np.asarray(X)

    classifier = DecisionRuleClassifier(
        OfFeatures(), concern=CONCERN, calibration=None
    ).fit(X[:, :3] / 9, NAMES)
    certain = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [np.nan, 0.0, 1.0]])
    assert classifier.predict(certain).tolist() == ["setosa", "virginica", "refer"]
    assert classifier.predict_proba(certain[:2]) == pytest.approx(certain[:2], abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "refer_value", "expected"),
    [
        (NAMES, None, "refer"),
        (NAMES, "?", "?"),
        (LABELS, None, -1),
        (LABELS - 1, None, -2),
        (LABELS, 9, 9),
    ],
)
def test_a_referral_is_of_the_type_of_the_labels(
    labels: Any, refer_value: Any, expected: Any
) -> None:
    concern = ConcernSpec(np.unique(labels).astype(str).tolist(), refer=0.01)
    classifier = DecisionRuleClassifier(
        GaussianNB(),
        concern=concern,
        calibration=None,
        refer_value=refer_value,
        random_state=0,
    ).fit(X, labels)
    assert classifier.refer_value_ == expected
    assert {*classifier.predict(X).tolist()} == {*np.unique(labels).tolist(), expected}


@pytest.mark.parametrize(
    ("settings", "labels", "refusal"),
    [
        ({"refer_value": 7}, NAMES, Refused("not_a_label", "refer_value", 7, kind="text")),
        (
            {"refer_value": "setosa"},
            NAMES,
            Refused("not_a_label", "refer_value", "setosa", kind="text"),
        ),
        (
            {"refer_value": "refer"},
            LABELS,
            Refused("not_a_label", "refer_value", "refer", kind="a number"),
        ),
        ({"concern": CONCERN}, NAMES[50:], Refused("every_class", "y", absent=["setosa"])),
        (
            {"concern": CONCERN},
            np.where(LABELS, NAMES, "rosa"),
            Refused("classes_of_concern", "labels", "rosa"),
        ),
        ({}, np.where(LABELS, "a", "a"), Refused("several_classes", "y", ["a"])),
    ],
)
def test_what_does_not_fit_the_labels_is_refused(
    settings: Any, labels: Any, refusal: Refused
) -> None:
    with refusal:
        DecisionRuleClassifier(GaussianNB(), **settings).fit(X[-len(labels) :], labels)


def test_it_works_in_pipelines_and_searches_whose_scorer_knows_referrals() -> None:
    pipeline = make_pipeline(
        StandardScaler(),
        DecisionRuleClassifier(GaussianNB(), concern=CONCERN, random_state=0),
    )
    grid = {"decisionruleclassifier__estimator__var_smoothing": [1e-9, 10.0]}
    scoring = {
        name: concern_scorer(name, CONCERN, refer_value="refer")
        for name in ("expected_concern", "dangerous", "mpcs")
    }
    search = GridSearchCV(pipeline, grid, scoring=scoring, refit="expected_concern", cv=3)
    search.fit(X, NAMES, decisionruleclassifier__clusters=np.arange(150))
    assert search.best_params_ == {"decisionruleclassifier__estimator__var_smoothing": 1e-9}
    preds = class_indices(search.predict(X), ORDER, refer_value="refer")
    assert -1 in preds
    metric = ExpectedConcern(3, concern=CONCERN)
    score = scoring["expected_concern"](search, X, NAMES)
    assert score == pytest.approx(-metric(preds, class_indices(NAMES, ORDER)).item())
    with Refused("decisions_or_scores", "preds"):
        concern_scorer("accuracy", CONCERN, refer_value="refer")(search, X, NAMES)
    with Refused("classes_of_concern", "labels of y_pred", "refer"):
        concern_scorer("dangerous", CONCERN)(search, X, NAMES)
