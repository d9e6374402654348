"""`DecisionRuleClassifier`: a scikit-learn classifier that decides under guaranteed limits, or refers the sample.

::

    model = make_pipeline(StandardScaler(), LogisticRegression())
    classifier = DecisionRuleClassifier(model, concern=concern, limits=Limit(0.01, of="malignant"))
    classifier.fit(X, y, clusters=patients).predict(X_new)  # classes, or "refer"
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import GroupShuffleSplit, ShuffleSplit
from sklearn.utils import _safe_indexing, check_random_state, get_tags, indexable
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    column_or_1d,
    validate_data,
)
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.inputs.groups import group_codes
from mpcs_torch.integrations.sklearn import (
    class_indices,
    concern_classes,
    ordered_probabilities,
)
from mpcs_torch.learning import DecisionRule, Limit
from mpcs_torch.learning.decision_rule import CalibrationMethod

__all__ = ["DecisionRuleClassifier"]

FLOOR = float(torch.finfo(torch.float32).eps)
"""The lower bound of probabilities. Without a bound, the very low logarithms of probabilities near 0 (a class without
votes of trees or neighbours, for example) would dominate the calibration."""


class DecisionRuleClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Decide by a `DecisionRule` from the probabilities of a classifier, or refer the sample.

    `fit` trains the classifier on a random part of the samples, and fits the rule on the rest (the hold-out samples).
    So the ``limits`` are guaranteed as in `DecisionRule`, if nothing else is fitted or chosen on the hold-out samples.
    Put scaling and searches inside this classifier: ``DecisionRuleClassifier(GridSearchCV(pipeline, ...))``. A search
    around this classifier, or a transformer fitted before it, uses the hold-out samples and voids the guarantee.

    To use a trained classifier, pass ``FrozenEstimator(classifier)``. Then `fit` uses all samples to fit the rule. The
    guarantee holds if none of these samples was used to train the classifier.

    The logits of the rule are the logarithms of the probabilities, which are clamped to at least 1.2e-7 (the resolution
    of float32).

    Args:
        estimator: A classifier or pipeline with ``predict_proba``. A clone is trained.
        concern: The costs of errors and referrals. Labels stand for its classes as in `concern_scorer`.
            Default: every error costs 1 and is dangerous.
        limits: The limits to guarantee: one `Limit`, or several.
        calibration: As in `DecisionRule`.
        held_out: The size of the hold-out set: a share (float) or a number (int) of samples. If `fit` gets clusters,
            it is a share or a number of clusters.
        refer_value: The return value of `predict` for a referral: text if labels are text, else a number. Default:
            ``"refer"`` for text; for numbers, the minimum of -1 and the lowest label minus 1.
        random_state: The seed of the splits. Fix it in advance: a choice among several seeds voids the guarantee.

    Attributes:
        classes_ (ndarray): The labels, sorted, ``(C,)``.
        estimator_ (object): The trained classifier.
        rule_ (DecisionRule): The fitted rule; its classes are in the order of the concern.
        refer_value_ (str | int | float): The return value of `predict` for a referral.
        n_features_in_ (int): The number of features.

    Example:
        >>> from sklearn.datasets import load_breast_cancer
        >>> from sklearn.naive_bayes import GaussianNB
        >>> from mpcs_torch.learning import Limit
        >>> cancer = load_breast_cancer()
        >>> X, y = cancer.data, cancer.target_names[cancer.target]
        >>> limit = Limit(0.05, of="malignant")
        >>> classifier = DecisionRuleClassifier(GaussianNB(), limits=limit, held_out=0.5, random_state=0)
        >>> classifier.fit(X[:540], y[:540]).predict(X[540:544]).tolist()
        ['benign', 'refer', 'benign', 'benign']
    """

    classes_: NDArray[Any]
    estimator_: Any
    rule_: DecisionRule
    refer_value_: str | float
    _place: NDArray[np.int64]
    """The index in the concern of each of ``classes_``, (C,)."""

    def __init__(
        self,
        estimator: Any,
        *,
        concern: ConcernSpec | None = None,
        limits: Limit | Sequence[Limit] = (),
        calibration: CalibrationMethod = "temperature",
        held_out: float = 0.3,
        refer_value: str | float | None = None,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.concern = concern
        self.limits = limits
        self.calibration = calibration
        self.held_out = held_out
        self.refer_value = refer_value
        self.random_state = random_state

    def fit(
        self,
        X: Any,  # noqa: N803
        y: Any,
        *,
        clusters: Sequence[object] | None = None,
        groups: Mapping[str, Sequence[object]] | None = None,
    ) -> Self:
        """Train the classifier and fit the rule.

        Args:
            X: The samples.
            y: The labels of the samples, ``(N,)``.
            clusters: ``(N,)`` names of clusters, for example the patient of each sample. The samples of a cluster
                either all train the classifier or all fit the rule. Scikit-learn's splitters call clusters ``groups``.
            groups: The ``(N,)`` group names in each column to which a `Limit` refers with ``by``: a mapping from column
                names, or a pandas DataFrame.

        Raises:
            ValueError: If the labels or the settings are invalid, and in the cases of `DecisionRule.fit`.
        """
        X, y = validate_data(self, X, y, skip_check_array=True)  # noqa: N806
        check_classification_targets(y)
        y = column_or_1d(y, warn=True)
        X, y = indexable(X, y)  # noqa: N806
        self.classes_, codes = np.unique(y, return_inverse=True)
        concern = self._set_classes()
        cluster_codes = None
        if clusters is not None:
            cluster_codes = group_codes("clusters", clusters, len(y)).codes.numpy()
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        train, rows = self._split(y, cluster_codes, seed)
        self.estimator_ = clone(self.estimator).fit(_safe_indexing(X, train), y[train])
        self.rule_ = DecisionRule(
            concern, self.limits, calibration=self.calibration, seed=seed
        )
        by_column = dict[str, NDArray[Any]]()
        for limit in self.rule_.limits:
            if limit.by is not None and groups is not None and limit.by in groups:
                by_column[limit.by] = np.asarray(groups[limit.by], dtype=object)
        check_consistent_length(y, *by_column.values())
        self.rule_.fit(
            self._logits(_safe_indexing(X, rows)),
            torch.from_numpy(self._place[codes[rows]]),
            clusters=None if cluster_codes is None else cluster_codes[rows].tolist(),
            groups={column: names[rows].tolist() for column, names in by_column.items()},
        )
        return self

    def predict(self, X: Any) -> NDArray[Any]:  # noqa: N803
        """Return the decision for each sample, ``(N,)``: a class, the name of a coarse answer, or ``refer_value_``."""
        check_is_fitted(self)
        answers = [answer for answer, _ in self.rule_.concern.answers]
        in_order_of_concern = self.classes_[np.argsort(self._place)]
        # A decision is a place in these labels; a referral, -1, is the last one.
        labels = np.append(in_order_of_concern, [*answers, self.refer_value_])
        predicted: NDArray[Any] = labels[self.rule_(self._logits(X)).numpy()]
        return predicted

    def predict_proba(self, X: Any) -> NDArray[np.float64]:  # noqa: N803
        """Return the calibrated probabilities of the rule in the order of ``classes_``: ``(N, C)``."""
        check_is_fitted(self)
        calibrated = self.rule_.calibration(self._logits(X)).softmax(dim=1).numpy()
        return np.ascontiguousarray(calibrated[:, self._place])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags = get_tags(self.estimator).input_tags
        return tags

    def _set_classes(self) -> ConcernSpec:
        """Validate the labels; store the concern's index of each label, and ``refer_value_``; return the concern."""
        labels = self.classes_.tolist()
        require(len(labels) >= 2, "several_classes", "y", labels)
        if self.concern is None:
            concern = ConcernSpec([str(label) for label in labels])
            self._place = np.arange(len(labels))
        else:
            concern = self.concern
            names = concern_classes(concern)
            self._place = class_indices(self.classes_, names).numpy()
            absent = [name for place, name in enumerate(names) if place not in self._place]
            require(not absent, "every_class", "y", absent=absent)
        is_text = isinstance(labels[0], str)
        require(is_text or not concern.answers, "no_answers", "concern")
        refer_value = self.refer_value
        if refer_value is None:
            refer_value = "refer" if is_text else min(-1, labels[0] - 1)
        if isinstance(refer_value, str) != is_text or refer_value in labels:
            kind = "text" if is_text else "a number"
            raise InvalidValueError("not_a_label", "refer_value", refer_value, kind=kind)
        self.refer_value_ = refer_value
        return concern

    def _split(
        self, y: NDArray[Any], clusters: NDArray[Any] | None, seed: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the indices of the samples that train the classifier, and of those that fit the rule."""
        if isinstance(self.estimator, FrozenEstimator):
            return np.arange(len(y)), np.arange(len(y))
        # The split is not stratified: hold-out samples must be a random sample, like new ones.
        kind = ShuffleSplit if clusters is None else GroupShuffleSplit
        splitter = kind(1, test_size=self.held_out, random_state=seed)
        train, rest = next(splitter.split(y, y, clusters))
        return train, rest

    def _logits(self, X: Any) -> Tensor:  # noqa: N803
        """Return the log-probabilities of the classifier in the class order of the concern: (N, C), float64."""
        names = self.rule_.concern.classes
        probabilities = ordered_probabilities(
            self.estimator_.predict_proba(X), self.estimator_.classes_, names
        )
        return probabilities.clamp(min=FLOOR).log()
