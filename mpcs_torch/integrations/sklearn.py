"""Scorers for scikit-learn: use `concern_scorer` in `GridSearchCV`, `cross_validate` and others.

::

    search = GridSearchCV(pipeline, grid, scoring=concern_scorer("mpcs", concern))
    scoring = {"neg_mpcs": concern_scorer("mpcs", concern), "neg_dangerous": concern_scorer("dangerous", concern)}
    cross_validate(classifier, X, y, scoring=scoring)
"""

import inspect
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.metrics._scorer import _Scorer
from sklearn.utils.validation import _check_response_method
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import InvalidValueError
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.metrics.find_entry import entry_of_metric, find_entry
from mpcs_torch.metrics.metric_entry import MetricEntry

__all__ = [
    "ConcernScorer",
    "class_indices",
    "concern_scorer",
]


INPUTS = ("decisions", "probabilities", "log_probabilities")
"""The kinds of input that a scorer can pass to a metric."""
FILLED_IN = ("num_classes", "concern", "from_logits", "normalized")
"""Settings of metrics that a scorer does not take: they come from the concern and from the kind of input."""


def concern_scorer(
    metric: str | Metric,
    concern: ConcernSpec,
    *,
    refer_value: str | float | None = None,
    **settings: Any,
) -> "ConcernScorer":
    """Return a scorer for which higher is better: if lower is better for ``metric``, the score is its negative value.

    Text labels are class names of the concern. Integer labels are class indices, unless all class names are integers,
    as in ``ConcernSpec(10)``: then integer labels are class names. Boolean labels are the names "False" and "True" if
    the concern has one of these classes, otherwise 0 and 1. The order of the estimator's ``classes_`` does not matter.
    A class that was not seen in training has probability 0.

    The scorer supports metadata routing and everything else that scorers from `sklearn.metrics.make_scorer` do.
    `TunedThresholdClassifierCV` accepts the scorer if the metric is a metric of decisions.

    Args:
        metric: The name (from ``mpcs metrics``) of a metric of decisions or probabilities, or a torchmetrics `Metric`
            of decisions ``(N,)``, probabilities ``(N, C)`` or logits (then of log-probabilities), and class indices
            ``(N,)``. Metrics of decisions use ``estimator.predict``.
        concern: The classes. A metric given by name also uses the costs of errors in ``concern``.
        refer_value: The value that ``predict`` of a `DecisionRuleClassifier`, or the like, returns for a referral. It
            must not be a label. Metrics of dangerous errors, coverage and mean concern accept referrals;
            ``expected_concern`` does if they have a cost (``ConcernSpec.refer``); no other metric of decisions does.
        **settings: Settings of a metric given by name, for example ``k=3``.

    Raises:
        ValueError: If the metric takes other inputs, lacks a setting, or does not define if higher is better; or if a
            setting is invalid.

    Example:
        >>> from sklearn.datasets import load_iris
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.model_selection import cross_val_score
        >>> from mpcs_torch import ConcernSpec
        >>> concern = ConcernSpec(3, releases=[[1, 2], [2, 1]], factor=0.1)
        >>> X, y = load_iris(return_X_y=True)
        >>> cross_val_score(LogisticRegression(max_iter=500), X, y, scoring=concern_scorer("mpcs", concern)).round(1)
        array([-0.1, -0.1, -0.1, -0.1, -0.1])
    """
    classes = concern_classes(concern)
    place = _index_or_none(_as_label(refer_value, classes), classes)
    if place is not None:
        raise InvalidValueError(
            "no_label", "refer_value", refer_value, label=classes[place]
        )
    if isinstance(metric, Metric):
        if settings:
            raise InvalidValueError("settings_of_name", "settings", settings)
        entry = entry_of_metric(metric)
    else:
        entry = find_entry(metric)
    if entry.takes not in INPUTS or entry.of_class:
        kind = "one class" if entry.of_class else entry.takes
        raise InvalidValueError("scorer_input", "metric", entry.name, kind=kind)
    allowed = entry.accepted_settings - set(FILLED_IN)
    unknown = settings.keys() - allowed
    if unknown:
        raise InvalidValueError(
            "unknown_setting", entry.name, name=min(unknown), known=sorted(allowed)
        )
    if entry.direction is None:
        raise InvalidValueError("no_direction", "metric", entry.name)
    made: Any = metric
    if not isinstance(metric, Metric):
        settings = {"concern": concern, **settings}
        made = entry.make(len(concern.classes), **settings)
    return ConcernScorer(_Score(made, entry, concern, refer_value))


class _Score:
    """The function in a scorer that computes the metric: ``score(y_true, y_pred, sample_weight=None)``."""

    def __init__(
        self,
        metric: Any,
        entry: MetricEntry,
        concern: ConcernSpec,
        refer_value: str | float | None,
    ) -> None:
        self.metric = metric
        self.entry = entry
        self.concern = concern
        self.refer_value = refer_value
        self.__name__ = entry.name  # skorch uses it

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """Return the value; ``y_pred`` has decisions (N,), or probabilities (N, C) in the concern's class order."""
        metric = self.metric
        if isinstance(metric, Metric):
            metric = metric.clone()
            metric.reset()
        preds = self._preds(y_pred)
        target = class_indices(y_true, self.concern.classes, "labels of y_true")
        arguments = [preds, target]
        if sample_weight is not None:
            weight = np.asarray(sample_weight, dtype=np.float64)
            arguments.append(torch.as_tensor(weight))
        return self.entry.number(metric(*arguments))

    def _preds(self, y_pred: Any) -> Tensor:
        """Return ``y_pred`` as the metric takes it: class indices, probabilities or log-probabilities."""
        names = self.concern.classes
        if self.entry.takes == "decisions":
            return class_indices(
                y_pred, names, "labels of y_pred", refer_value=self.refer_value
            )
        if np.ndim(y_pred) != 2 or np.shape(y_pred)[1] != len(names):
            raise InvalidValueError(
                "takes_probabilities", self.__name__, np.asarray(y_pred), classes=len(names)
            )
        probs = torch.as_tensor(np.asarray(y_pred, dtype=np.float64))
        return probs.log() if self.entry.takes == "log_probabilities" else probs


class ConcernScorer(_Scorer):  # type: ignore[misc]
    """A scikit-learn scorer, made by `concern_scorer`.

    Call the scorer with a fitted classifier, samples and labels; metrics with weights also take ``sample_weight``. The
    labels need not contain every class, because columns of probabilities are named by the classifier's ``classes_``.

    Raises:
        ValueError: From a call, if a label is missing or not a class of the concern, or if weights are passed, but the
            metric does not support them.
    """

    def __init__(self, score: _Score) -> None:
        sign = 1 if score.entry.direction == "max" else -1
        method = "predict" if score.entry.takes == "decisions" else "predict_proba"
        super().__init__(score, sign, {}, method)

    def __repr__(self) -> str:
        return f"concern_scorer({self._score_func.__name__!r})"

    def _accept_sample_weight(self) -> bool:
        metric = self._score_func.metric
        measure = getattr(metric, "measure", None) or metric
        if isinstance(measure, Metric):
            return "sample_weight" in inspect.signature(measure.update).parameters
        return bool(measure.takes_weights)

    def _score(
        self,
        method_caller: Any,
        estimator: Any,
        X: Any,  # noqa: N803
        y_true: Any,
        **kwargs: Any,
    ) -> float:
        score = self._score_func
        if kwargs.get("sample_weight") is not None and not self._accept_sample_weight():
            raise InvalidValueError("no_weights", "sample_weight", metric=score.__name__)
        if self._response_method == "predict":
            value: float = super()._score(method_caller, estimator, X, y_true, **kwargs)
            return value
        probabilities = method_caller(_EveryClass(estimator), "predict_every_class", X)
        by_class = ordered_probabilities(
            probabilities, estimator.classes_, score.concern.classes
        )
        return float(self._sign * score(y_true, by_class, **kwargs))


class _EveryClass(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """An estimator that makes scikit-learn cache the probabilities of all classes for several scorers.

    For a classifier with two classes, the cache keeps only the column of one class; with one class, the cache raises an
    error. For an outlier detector, the cache keeps everything, so this estimator claims to be an outlier detector.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def predict_every_class(self, X: Any) -> Any:  # noqa: N803
        return _check_response_method(self.estimator, "predict_proba")(X)


def concern_classes(concern: ConcernSpec) -> tuple[str, ...]:
    """Return the class names of a concern; raise a ValueError if ``concern`` is not a `ConcernSpec`."""
    if not isinstance(concern, ConcernSpec):
        raise InvalidValueError("spec", "concern", concern)
    return concern.classes


def class_indices(
    labels: Any,
    class_names: Sequence[str],
    argument: str = "labels",
    *,
    refer_value: str | float | None = None,
) -> Tensor:
    """Return the index in ``class_names`` of each label (N,) or (N, 1), or -1 for the ``refer_value``: int64 (N,).

    Raise a ValueError if a label is missing or is not a class; ``argument`` names the labels in its message.
    """
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise InvalidValueError("shape", argument, labels, shape="(N,)")
    listed = labels.tolist()
    places = dict[Any, int]()
    if refer_value is not None:
        places[refer_value] = REFERRED
    for label in set(listed) - places.keys():
        places[label] = class_index(label, class_names, argument)
    return torch.tensor([places[label] for label in listed], dtype=torch.int64)


def ordered_probabilities(
    probabilities: Any, classes: Any, class_names: Sequence[str]
) -> Tensor:
    """Reorder probabilities from the order of an estimator's ``classes`` to that of ``class_names``: float64 (N, C).

    A class that the estimator did not see in training gets probability 0.
    """
    columns = torch.from_numpy(np.asarray(probabilities, dtype=np.float64))
    ordered = columns.new_zeros(len(columns), len(class_names))
    ordered[:, class_indices(classes, class_names, "labels of classes_")] = columns
    return ordered


def class_index(label: Any, class_names: Sequence[str], argument: str) -> int:
    """Return the index of ``label``, a class name or an index; raise a ValueError for any other value."""
    label = _as_label(label, class_names)
    place = _index_or_none(label, class_names)
    if place is None:
        raise InvalidValueError(
            "classes_of_concern", argument, label, classes=list(class_names)
        )
    return place


def _as_label(label: Any, class_names: Sequence[str]) -> Any:
    """Return a label as Python writes it: 2 for 2.0 and for NumPy's 2, and 1 for True unless a class is "True"."""
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool) and not {"False", "True"}.intersection(class_names):
        label = int(label)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    return label


def _index_or_none(label: Any, class_names: Sequence[str]) -> int | None:
    """Return the index of ``label``, as `_as_label` returns it; None if it is no class."""
    texts = list(class_names)
    are_integers = all(name.removeprefix("-").isdecimal() for name in class_names)
    if type(label) is int and not are_integers:  # then the label is an index
        texts = [str(place) for place in range(len(class_names))]
    if isinstance(label, str | int) and str(label) in texts:
        return texts.index(str(label))
    return None
