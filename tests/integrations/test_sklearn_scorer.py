"""Scorers do what those of `make_scorer` do: scikit-learn's own checks of scorers, with its scorers as the oracle."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.feature_selection import RFECV
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, check_scoring, get_scorer, log_loss, make_scorer
from sklearn.metrics._scorer import _Scorer
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
    learning_curve,
)
from sklearn.svm import LinearSVC

from mpcs_torch import ConcernSpec
from mpcs_torch.errors import value_in_words
from mpcs_torch.integrations.sklearn import (
    class_indices,
    concern_scorer,
)
from tests.refused import Refused

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = (X[:, 0] + RNG.normal(size=120) > 0).astype(int)
NAMES = np.array(["no", "yes"])[Y]
WEIGHTS = np.where(X[:, 1] > 0, 10.0, 0.1)
TWO = ConcernSpec(2)
BY_NAME = ConcernSpec(["yes", "no"])  # not the order of ``classes_``
LOG_LOSS = make_scorer(log_loss, response_method="predict_proba", greater_is_better=False)
ACCURACY = make_scorer(accuracy_score)
PAIRS = [
    pytest.param(concern_scorer("cross_entropy", TWO), LOG_LOSS, Y, id="probabilities"),
    pytest.param(
        concern_scorer("cross_entropy", BY_NAME), LOG_LOSS, NAMES, id="probabilities-names"
    ),
    pytest.param(concern_scorer("accuracy", BY_NAME), ACCURACY, NAMES, id="decisions"),
]


def weighted() -> Any:
    return LogisticRegression().set_fit_request(sample_weight=True)


def searched(scoring: Any, labels: Any, estimator: Any = None, **fitted: Any) -> Any:
    search = GridSearchCV(
        estimator or LogisticRegression(),
        {"C": [0.01, 1.0]},
        scoring=scoring,
        refit=False,
        cv=3,
    )
    results = search.fit(X, labels, **fitted).cv_results_
    return [results[name] for name in sorted(results) if name.startswith("mean_test")]


def boosted(scoring: Any, labels: Any) -> Any:
    model = HistGradientBoostingClassifier(
        scoring=scoring, early_stopping=True, max_iter=2, random_state=0
    )
    return model.fit(X, labels, sample_weight=WEIGHTS).validation_score_


USES: dict[str, Callable[[Any, Any], Any]] = {
    "cross validation": lambda s, y: cross_val_score(LogisticRegression(), X, y, scoring=s),
    "search with weights": lambda s, y: searched(s, y, sample_weight=WEIGHTS),
    "several scorers with weights": lambda s, y: searched(
        {"a": s, "b": "accuracy", "c": s}, y, sample_weight=WEIGHTS
    ),
    "boosting with weights": boosted,
    "permutations with weights": lambda s, y: (
        permutation_importance(
            LogisticRegression().fit(X, y),
            X,
            y,
            scoring=s,
            n_repeats=2,
            random_state=0,
            sample_weight=WEIGHTS,
        ).importances
    ),
    "features": lambda s, y: (
        RFECV(LogisticRegression(), scoring=s, cv=3)
        .fit(X, y)
        .cv_results_["mean_test_score"]
    ),
    "learning curve": lambda s, y: learning_curve(
        LogisticRegression(), X, y, scoring=s, cv=3
    )[2],
    "column of labels": lambda s, y: s(LogisticRegression().fit(X, y), X, y[:, None]),
    "pickle": lambda s, y: pickle.loads(pickle.dumps(s))(
        LogisticRegression().fit(X, y), X, y
    ),
    "clone": lambda s, y: clone(s, safe=False)(
        LogisticRegression().fit(X, y), X, y, sample_weight=WEIGHTS
    ),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize(("ours", "theirs", "labels"), PAIRS)
def test_scores_are_those_of_make_scorer(
    ours: Any, theirs: Any, labels: Any, use: str
) -> None:
    np.testing.assert_allclose(
        USES[use](ours, labels), USES[use](theirs, labels), rtol=1e-9
    )


def asked(scorer: Any, **asks: Any) -> Any:
    return copy.deepcopy(scorer).set_score_request(**asks)


ROUTED: dict[str, Callable[[Any, Any], Any]] = {
    "requested": lambda s, y: searched(
        asked(s, sample_weight=True), y, weighted(), sample_weight=WEIGHTS
    ),
    "not requested": lambda s, y: searched(
        asked(s, sample_weight=False), y, weighted(), sample_weight=WEIGHTS
    ),
    "one of two": lambda s, y: searched(
        {"a": asked(s, sample_weight=True), "b": asked(s, sample_weight=False)},
        y,
        weighted(),
        sample_weight=WEIGHTS,
    ),
    "under another name": lambda s, y: cross_validate(
        LogisticRegression(),
        X,
        y,
        scoring=asked(s, sample_weight="costs"),
        cv=3,
        params={"costs": WEIGHTS},
    )["test_score"],
    "called": lambda s, y: s(LogisticRegression().fit(X, y), X, y, sample_weight=WEIGHTS),
}


@pytest.mark.parametrize("use", ROUTED)
@pytest.mark.parametrize(("ours", "theirs", "labels"), PAIRS)
def test_metadata_is_routed_as_for_make_scorer(
    ours: Any, theirs: Any, labels: Any, use: str
) -> None:
    with config_context(enable_metadata_routing=True):
        np.testing.assert_allclose(
            ROUTED[use](ours, labels), ROUTED[use](theirs, labels), rtol=1e-9
        )


def test_weights_change_the_score_under_routing() -> None:
    scorer = concern_scorer("cross_entropy", TWO)
    with config_context(enable_metadata_routing=True):
        with_weights = ROUTED["requested"](scorer, Y)
        assert not np.allclose(with_weights, ROUTED["not requested"](scorer, Y))
    np.testing.assert_allclose(
        with_weights, searched(scorer, Y, sample_weight=WEIGHTS), rtol=1e-9
    )


@pytest.mark.parametrize(("ours", "theirs", "labels"), PAIRS)
def test_weights_that_nobody_asked_for_are_treated_as_by_make_scorer(
    ours: Any, theirs: Any, labels: Any
) -> None:
    outcomes = []
    with config_context(enable_metadata_routing=True):
        for scorer in (ours, theirs):
            try:
                outcomes.append(searched(scorer, labels, weighted(), sample_weight=WEIGHTS))
            except UnsetMetadataPassedError:  # from scikit-learn 1.9 on
                outcomes.append([])
    np.testing.assert_allclose(*outcomes, rtol=1e-9)


@pytest.mark.parametrize(("ours", "theirs", "labels"), PAIRS)
def test_misuse_raises_the_same_kind_of_error(ours: Any, theirs: Any, labels: Any) -> None:
    fitted = LogisticRegression().fit(X, labels)
    for scorer in (ours, theirs):
        with pytest.raises(
            RuntimeError, match="only available when metadata routing is enabled"
        ):
            scorer.set_score_request(sample_weight=True)
        with pytest.raises(
            ValueError, match="only supported if enable_metadata_routing=True"
        ):
            scorer(fitted, X, labels, costs=WEIGHTS)
        with pytest.raises(ValueError, match="119"):
            scorer(fitted, X, labels[:-1])
        for missing in (None, np.nan):
            with pytest.raises((ValueError, TypeError)):
                scorer(fitted, X, np.array([missing, *labels[1:]], dtype=object))


def test_a_scorer_is_one_of_scikit_learns() -> None:
    scorer = concern_scorer("mpcs", TWO)
    assert isinstance(scorer, _Scorer)
    assert (
        check_scoring(LogisticRegression(), scoring=scorer) is scorer is get_scorer(scorer)
    )
    assert {scorer: 1}[scorer] == 1
    assert scorer != copy.deepcopy(scorer)  # as of `make_scorer`
    assert repr(scorer) == "concern_scorer('mpcs')"
    with pytest.raises(
        AttributeError,
        match="LinearSVC has none of the following attributes: predict_proba",
    ):
        scorer(LinearSVC().fit(X, Y), X, Y)


class Counting(ClassifierMixin, BaseEstimator):
    """Counts what is asked of it."""

    def fit(self, inputs: Any, labels: Any) -> "Counting":
        self.model_ = LogisticRegression().fit(inputs, labels)
        self.classes_, self.calls_ = (
            self.model_.classes_,
            {"predict": 0, "predict_proba": 0},
        )
        return self

    def predict(self, inputs: Any) -> Any:
        self.calls_["predict"] += 1
        return self.model_.predict(inputs)

    def predict_proba(self, inputs: Any) -> Any:
        self.calls_["predict_proba"] += 1
        return self.model_.predict_proba(inputs)


def test_several_scorers_ask_an_estimator_once() -> None:
    names = (
        "mpcs",
        "cross_entropy",
        "brier_score",
        "accuracy",
        "dangerous",
        "expected_concern",
    )
    scoring = check_scoring(
        Counting(), scoring={name: concern_scorer(name, TWO) for name in names}
    )
    fitted = Counting().fit(X, Y)
    scores = scoring(fitted, X, Y)
    assert fitted.calls_ == {"predict": 1, "predict_proba": 1}
    assert scores == {name: concern_scorer(name, TWO)(fitted, X, Y) for name in names}


def test_probabilities_of_two_classes_are_not_rounded_by_way_of_the_other() -> None:
    class Certain(Counting):
        def predict_proba(self, inputs: Any) -> Any:
            return np.tile([1e-30, 1.0], (len(inputs), 1))

    fitted = Certain().fit(X, Y)
    score = concern_scorer("cross_entropy", TWO)(fitted, X, np.zeros(len(X), int))
    assert score == pytest.approx(np.log(1e-30))  # 1 - 1.0 has the logarithm -inf


@pytest.mark.parametrize("concern", [ConcernSpec(2), ConcernSpec(3)])
def test_folds_of_one_class_are_scored(concern: ConcernSpec) -> None:
    labels = np.arange(12) % len(concern.classes)
    scoring = {
        name: concern_scorer(name, concern)
        for name in ("mpcs", "accuracy", "cross_entropy")
    }
    for split in (PredefinedSplit(labels), [(np.flatnonzero(labels == 0), np.arange(12))]):
        scores = cross_validate(
            DummyClassifier(), X[:12], labels, scoring=scoring, cv=split
        )
        assert not any(np.isnan(scores[f"test_{name}"]).any() for name in scoring)


def test_of_several_scorers_those_that_take_no_weights_get_none() -> None:
    scoring = {name: concern_scorer(name, TWO) for name in ("measured_robustness", "mpcs")}
    fitted = LogisticRegression().fit(X, Y)
    scores = check_scoring(fitted, scoring=scoring)(fitted, X, Y, sample_weight=WEIGHTS)
    assert scores["measured_robustness"] == scoring["measured_robustness"](fitted, X, Y)
    assert scores["mpcs"] == scoring["mpcs"](fitted, X, Y, sample_weight=WEIGHTS)
    with Refused("no_weights", "sample_weight", metric="measured_robustness"):
        scoring["measured_robustness"](fitted, X, Y, sample_weight=WEIGHTS)


def test_an_error_of_a_fold_is_reported_as_scikit_learn_does() -> None:
    wrong = {
        "wrong": concern_scorer("accuracy", ConcernSpec(["a", "b"])),
        "right": concern_scorer("accuracy", BY_NAME),
    }
    with pytest.warns(UserWarning, match="labels of y_pred"):
        scores = cross_validate(LogisticRegression(), X, NAMES, scoring=wrong, cv=2)
    assert np.isnan(scores["test_wrong"]).all()
    assert (scores["test_right"] > 0.5).all()


@pytest.mark.parametrize(
    ("labels", "concern"), [(Y, TWO), (NAMES, BY_NAME), (Y.astype(bool), TWO)]
)
@pytest.mark.parametrize("name", ["accuracy", "expected_concern", "mcc"])
def test_a_threshold_is_tuned_by_a_metric_of_decisions(
    name: str, labels: Any, concern: ConcernSpec
) -> None:
    scorer = concern_scorer(name, concern)
    fitted = LogisticRegression().fit(X, labels)
    tuned = TunedThresholdClassifierCV(
        fitted, scoring=scorer, thresholds=20, cv="prefit", refit=False
    ).fit(X, labels)
    chances = fitted.predict_proba(X)[:, 1]
    thresholds = np.linspace(chances.min(), chances.max(), 20)
    scores = [
        scorer(
            FixedDecisions(fitted.classes_, fitted.classes_[(chances >= t).astype(int)]),
            X,
            labels,
        )
        for t in thresholds
    ]
    assert tuned.best_threshold_ == pytest.approx(thresholds[int(np.nanargmax(scores))])
    assert tuned.best_score_ == pytest.approx(np.nanmax(scores))


class FixedDecisions(ClassifierMixin, BaseEstimator):
    def __init__(self, classes_: Any, decisions: Any) -> None:
        self.classes_, self.decisions = classes_, decisions

    def predict(self, inputs: Any) -> Any:
        return self.decisions


def test_costs_move_the_threshold() -> None:
    missed = ConcernSpec(
        ["no", "yes"], weights=[[0, 1], [9, 0]]
    )  # a missed "yes" costs nine false alarms
    alarm = ConcernSpec(["no", "yes"], weights=[[0, 9], [1, 0]])
    low, high = (
        TunedThresholdClassifierCV(
            LogisticRegression(), scoring=concern_scorer("mean_concern", concern), cv=3
        )
        .fit(X, NAMES)
        .best_threshold_
        for concern in (missed, alarm)
    )
    assert low < 0.4 < 0.6 < high


def test_a_threshold_is_not_tuned_by_probabilities() -> None:
    tuned = TunedThresholdClassifierCV(
        LogisticRegression(), scoring=concern_scorer("mpcs", TWO), cv=2
    )
    with Refused("takes_probabilities", "mpcs", classes=2):
        tuned.fit(X, Y)


@pytest.mark.parametrize(
    "classes", [["False", "True"], ["True", "False"], ["0", "1"], ["well", "ill"]]
)
@pytest.mark.parametrize(
    ("name", "theirs"), [("accuracy", ACCURACY), ("cross_entropy", LOG_LOSS)]
)
def test_boolean_labels_are_names_or_else_0_and_1(
    name: str, theirs: Any, classes: list[str]
) -> None:
    labels = Y.astype(bool)
    fitted = LogisticRegression().fit(X, labels)
    score = concern_scorer(name, ConcernSpec(classes))(fitted, X, labels)
    assert score == pytest.approx(theirs(fitted, X, labels), rel=1e-12)


@pytest.mark.parametrize(
    ("labels", "indices"),
    [
        ([True, False], [1, 0]),
        (np.array([1.0, 0.0]), [1, 0]),
        (np.array([np.int64(1), 0], dtype=object), [1, 0]),
        (pd.Series([1, 0], dtype="Int64"), [1, 0]),
        (pd.Series(["1", "0"], dtype="category"), [1, 0]),
        (pd.DataFrame({"y": [1, 0]}), [1, 0]),
        ([], []),
    ],
)
def test_labels_of_any_type_have_an_index(labels: Any, indices: list[int]) -> None:
    assert class_indices(labels, TWO.classes).tolist() == indices


@pytest.mark.parametrize(
    ("labels", "named"),
    [
        ([0, None], "None"),
        ([0.0, np.nan], "nan"),
        (np.array([np.nan, 1], dtype=object), "nan"),
        (pd.Series([1, None], dtype="Int64"), "nan"),
        (np.array([pd.NA, 1], dtype=object), "<NA>"),
        (pd.Series(["1", None]), "None|nan"),
        ([True, 2], "2"),
        ([0.5], "0.5"),
        (["yes"], "'yes'"),
    ],
)
def test_missing_and_unknown_labels_are_named(labels: Any, named: str) -> None:
    with Refused("classes_of_concern", "labels of y_true", classes=["0", "1"]) as refused:
        class_indices(labels, TWO.classes, "labels of y_true")
    assert value_in_words(refused.value.value) in named.split("|")


def test_a_boolean_is_not_a_name_of_another_class() -> None:
    with Refused("classes_of_concern", "labels", False):
        class_indices([False], ["True", "other"])


def test_class_names_that_are_negative_integers_are_names() -> None:
    assert class_indices([0, 1, 1, -1], ["-1", "0", "1"]).tolist() == [1, 2, 2, 0]
    assert class_indices([-1, 1], ["-1", "1"]).tolist() == [0, 1]
    assert class_indices([0, 1], ["no", "yes"]).tolist() == [0, 1]


@pytest.mark.parametrize("value", [1, "2", 0.0])
def test_a_label_cannot_stand_for_referrals(value: object) -> None:
    with Refused("no_label", "refer_value"):
        concern_scorer("dangerous", ConcernSpec(3), refer_value=value)  # type: ignore[arg-type]
