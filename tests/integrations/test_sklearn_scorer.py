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
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, check_scoring, get_scorer, log_loss, make_scorer
from sklearn.model_selection import (
    GridSearchCV,
    PredefinedSplit,
    TunedThresholdClassifierCV,
    cross_val_score,
    cross_validate,
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
    "column of labels": lambda s, y: s(LogisticRegression().fit(X, y), X, y[:, None]),
    "pickle": lambda s, y: pickle.loads(pickle.dumps(s))(
        LogisticRegression().fit(X, y), X, y
    ),
    "clone": lambda s, y: clone(s, safe=False)(
        LogisticRegression().fit(X, y), X, y, sample_weight=WEIGHTS
    ),
}
"""Uses of a scorer without metadata routing."""


def asked(scorer: Any, **asks: Any) -> Any:
    return copy.deepcopy(scorer).set_score_request(**asks)


ROUTED: dict[str, Callable[[Any, Any], Any]] = {
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
"""Uses with it."""


@pytest.mark.parametrize("use", [*USES, *ROUTED])
@pytest.mark.parametrize(("ours", "theirs", "labels"), PAIRS)
def test_scores_are_those_of_make_scorer(
    ours: Any, theirs: Any, labels: Any, use: str
) -> None:
    score = {**USES, **ROUTED}[use]
    with config_context(enable_metadata_routing=use in ROUTED):
        np.testing.assert_allclose(score(ours, labels), score(theirs, labels), rtol=1e-9)


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
def test_labels_that_do_not_fit_are_refused_as_by_make_scorer(
    ours: Any, theirs: Any, labels: Any
) -> None:
    fitted = LogisticRegression().fit(X, labels)
    for scorer in (ours, theirs):
        with pytest.raises(ValueError, match="119"):
            scorer(fitted, X, labels[:-1])
        for missing in (None, np.nan):
            with pytest.raises((ValueError, TypeError)):
                scorer(fitted, X, np.array([missing, *labels[1:]], dtype=object))


def test_a_scorer_is_one_of_scikit_learns() -> None:
    scorer = concern_scorer("mpcs", TWO)
    fitted = LogisticRegression().fit(X, Y)
    assert check_scoring(fitted, scoring=scorer) is scorer is get_scorer(scorer)
    assert repr(scorer) == "concern_scorer('mpcs')"
    with pytest.raises(AttributeError, match=r"LinearSVC has none .*: predict_proba"):
        scorer(LinearSVC().fit(X, Y), X, Y)


class Counting(ClassifierMixin, BaseEstimator):
    """Counts what is asked of it."""

    def fit(self, inputs: Any, labels: Any) -> "Counting":
        self.model_ = LogisticRegression().fit(inputs, labels)
        self.classes_ = self.model_.classes_
        self.calls_: list[str] = []
        return self

    def predict(self, inputs: Any) -> Any:
        self.calls_.append("predict")
        return self.model_.predict(inputs)

    def predict_proba(self, inputs: Any) -> Any:
        self.calls_.append("predict_proba")
        return self.model_.predict_proba(inputs)


def test_several_scorers_ask_an_estimator_once() -> None:
    names = ("mpcs", "cross_entropy", "accuracy", "dangerous")
    scoring = {name: concern_scorer(name, TWO) for name in names}
    fitted = Counting().fit(X, Y)
    scores = check_scoring(fitted, scoring=scoring)(fitted, X, Y)
    assert sorted(fitted.calls_) == ["predict", "predict_proba"]
    assert scores == {name: scorer(fitted, X, Y) for name, scorer in scoring.items()}


def test_probabilities_of_two_classes_are_not_rounded_by_way_of_the_other() -> None:
    class Certain(Counting):
        def predict_proba(self, inputs: Any) -> Any:
            return np.tile([1e-30, 1.0], (len(inputs), 1))

    fitted = Certain().fit(X, Y)
    score = concern_scorer("cross_entropy", TWO)(fitted, X, np.zeros(len(X), int))
    assert score == pytest.approx(np.log(1e-30))  # 1 - 1.0 has the logarithm -inf


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", ["mpcs", "accuracy", "cross_entropy"])
def test_folds_of_one_class_are_scored(name: str, classes: int) -> None:
    labels = np.arange(12) % classes
    scorer = concern_scorer(name, ConcernSpec(classes))
    for split in (PredefinedSplit(labels), [(np.flatnonzero(labels == 0), np.arange(12))]):
        scores = cross_val_score(
            DummyClassifier(), X[:12], labels, scoring=scorer, cv=split
        )
        assert not np.isnan(scores).any()


def test_of_several_scorers_those_that_take_no_weights_get_none() -> None:
    scoring = {name: concern_scorer(name, TWO) for name in ("measured_robustness", "mpcs")}
    fitted = LogisticRegression().fit(X, Y)
    scores = check_scoring(fitted, scoring=scoring)(fitted, X, Y, sample_weight=WEIGHTS)
    assert scores["measured_robustness"] == scoring["measured_robustness"](fitted, X, Y)
    assert scores["mpcs"] == scoring["mpcs"](fitted, X, Y, sample_weight=WEIGHTS)
    with Refused("no_weights", "sample_weight", metric="measured_robustness"):
        scoring["measured_robustness"](fitted, X, Y, sample_weight=WEIGHTS)


@pytest.mark.parametrize(
    ("labels", "concern"), [(Y, TWO), (NAMES, BY_NAME), (Y.astype(bool), TWO)]
)
def test_a_threshold_is_tuned_by_a_metric_of_decisions(
    labels: Any, concern: ConcernSpec
) -> None:
    scores = [
        TunedThresholdClassifierCV(
            LogisticRegression(), scoring=scorer, cv=3, store_cv_results=True
        )
        .fit(X, labels)
        .cv_results_["scores"]
        for scorer in (concern_scorer("accuracy", concern), ACCURACY)
    ]
    np.testing.assert_allclose(*scores, rtol=1e-9)


def threshold(weights: list[list[float]]) -> float:
    scorer = concern_scorer("mean_concern", ConcernSpec(["no", "yes"], weights=weights))
    tuned = TunedThresholdClassifierCV(LogisticRegression(), scoring=scorer, cv=3)
    return float(tuned.fit(X, NAMES).best_threshold_)


def test_costs_move_the_threshold() -> None:
    """A "yes" that is missed, or a false alarm, costs nine times as much as the other error."""
    assert threshold([[0, 1], [9, 0]]) < 0.4
    assert threshold([[0, 9], [1, 0]]) > 0.6


def test_a_threshold_is_not_tuned_by_probabilities() -> None:
    tuned = TunedThresholdClassifierCV(
        LogisticRegression(), scoring=concern_scorer("mpcs", TWO), cv=2
    )
    with Refused("takes_probabilities", "mpcs", classes=2):
        tuned.fit(X, Y)


BINARY = ["0", "1"]


@pytest.mark.parametrize(
    ("labels", "classes", "indices"),
    [
        ([True, False], BINARY, [1, 0]),
        ([True, False], ["well", "ill"], [1, 0]),
        ([True, False], ["True", "False"], [0, 1]),
        (np.array([1.0, 0.0]), BINARY, [1, 0]),
        (np.array([np.int64(1), 0], dtype=object), BINARY, [1, 0]),
        (pd.Series([1, 0], dtype="Int64"), BINARY, [1, 0]),
        (pd.Series(["1", "0"], dtype="category"), BINARY, [1, 0]),
        (pd.DataFrame({"y": [1, 0]}), BINARY, [1, 0]),
        ([], BINARY, []),
        ([0, 1, 1, -1], ["-1", "0", "1"], [1, 2, 2, 0]),
        ([0, 1], ["no", "yes"], [0, 1]),
    ],
)
def test_labels_of_any_type_have_an_index(
    labels: Any, classes: list[str], indices: list[int]
) -> None:
    assert class_indices(labels, classes).tolist() == indices


@pytest.mark.parametrize(
    ("labels", "classes", "named"),
    [
        ([0, None], BINARY, "None"),
        ([0.0, np.nan], BINARY, "nan"),
        (np.array([np.nan, 1], dtype=object), BINARY, "nan"),
        (pd.Series([1, None], dtype="Int64"), BINARY, "nan"),
        (np.array([pd.NA, 1], dtype=object), BINARY, "<NA>"),
        (pd.Series(["1", None]), BINARY, "None|nan"),
        ([True, 2], BINARY, "2"),
        ([0.5], BINARY, "0.5"),
        (["yes"], BINARY, "'yes'"),
        ([False], ["True", "other"], "False"),
    ],
)
def test_missing_and_unknown_labels_are_named(
    labels: Any, classes: list[str], named: str
) -> None:
    with Refused("classes_of_concern", "labels of y_true", classes=classes) as refused:
        class_indices(labels, classes, "labels of y_true")
    assert value_in_words(refused.value.value) in named.split("|")


@pytest.mark.parametrize("value", [1, "2", 0.0])
def test_a_label_cannot_stand_for_referrals(value: object) -> None:
    with Refused("no_label", "refer_value"):
        concern_scorer("dangerous", ConcernSpec(3), refer_value=value)  # type: ignore[arg-type]
