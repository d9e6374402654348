"""Scorers and displays for scikit-learn: `concern_scorer` is for `GridSearchCV`, `cross_validate` and the like.

::

    search = GridSearchCV(pipeline, grid, scoring=concern_scorer("mpcs", concern))
    scoring = {"neg_mpcs": concern_scorer("mpcs", concern), "neg_dangerous": concern_scorer("dangerous", concern)}
    cross_validate(classifier, X, y, scoring=scoring)

Displays hold values, and ``plot()`` draws them with the project's figures. As with scikit-learn's own,
``from_estimator`` and ``from_predictions`` compute the values and draw them. The drawing is in ``figure_``, a
matplotlib Figure.
"""

import inspect
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.metrics._scorer import _Scorer
from sklearn.utils.validation import _check_response_method
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import MpcsError, did_you_mean, quoted
from mpcs_torch.functional import OperatingPoint, confusion_matrix, detection_curve
from mpcs_torch.functional.comparison.significance import Direction
from mpcs_torch.functional.concern.risk_coverage_area import RiskCoverage, risk_coverage_area_details
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.functional.inputs.arrays import no_concern
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.metrics import ProbabilityAccuracy
from mpcs_torch.metrics.by_name import BY_NAME, MetricEntry, settings_of

__all__ = [
    "ConcernConfusionDisplay",
    "ConcernScorer",
    "DetectionDisplay",
    "LabelError",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "ScorerError",
    "concern_scorer",
]


class ScorerError(MpcsError, ValueError):
    """A metric cannot be a scorer, or what is given as a concern is no `ConcernSpec`."""


class LabelError(MpcsError, ValueError):
    """A label is not one of the classes of the concern."""


def concern_scorer(
    metric: str | Metric, concern: ConcernSpec, *, refer_value: str | float | None = None, **settings: Any
) -> "ConcernScorer":
    """Make a scorer, which is better when higher: metrics that are better when lower are negated, as ``neg_log_loss``.

    Labels that are text are names of the concern's classes. Labels that are integers are indices of its classes, unless
    all its class names are integers too, as with ``ConcernSpec(10)``: then they are names. Boolean labels are the names
    "False" and "True" if the concern has one of them, and otherwise 0 and 1, to which they are equal. The order of the
    estimator's ``classes_`` does not matter, and a class that it has not seen has probability 0.

    The scorer is one of scikit-learn's own: it has what those of `sklearn.metrics.make_scorer` have, such as metadata
    routing, and metrics of decisions tune the threshold of `TunedThresholdClassifierCV`.

    Args:
        metric: A name of ``mpcs metrics`` that takes decisions or probabilities, or a torchmetrics `Metric` over
            probabilities ``(N, C)`` and class indices ``(N,)``, made with ``from_logits=False`` if it has that setting.
            Metrics of decisions measure those of ``estimator.predict``.
        concern: The classes, and the costs of errors. Metrics by name are made with it.
        refer_value: What ``estimator.predict`` returns where it refers a sample (`DecisionRuleClassifier`). Of the
            metrics of decisions, those of dangerous errors, coverage and mean concern take referrals, and so does
            ``expected_concern`` if a referral has a cost (``ConcernSpec.refer``); the others refuse them. It must not
            be a label.
        **settings: Settings of a metric given by name, such as ``k=3``.

    Raises:
        ScorerError: If the metric takes something else, lacks a setting, or does not say which way is better.
        ValueError: If a setting breaks a rule of the metric.

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
    classes = classes_of(concern)  # refuses what is no spec
    with suppress(LabelError):
        taken = classes[_index(refer_value, classes, "refer_value")]
        raise ScorerError(f"refer_value must be none of the labels, but {quoted(refer_value)} is class {taken}.")
    if isinstance(metric, Metric):
        if settings:
            raise ScorerError(f"settings go with the name of a metric, but got {quoted(settings)} with a Metric.")
        if getattr(metric, "from_logits", False):
            raise ScorerError(f"{type(metric).__name__} must be made with from_logits=False for probabilities.")
        direction: Direction | None = None
        if metric.higher_is_better is not None:
            direction = "max" if metric.higher_is_better else "min"
        entry = MetricEntry(type(metric).__name__, type(metric), "probabilities", given_direction=direction)
    else:
        if metric not in BY_NAME or BY_NAME[metric].takes not in _TAKEN:
            names = [name for name, entry in BY_NAME.items() if entry.takes in _TAKEN and entry.direction]
            meant = "" if metric in BY_NAME else did_you_mean(metric, names)
            known = "a name of `mpcs metrics`" if meant else f"one of {', '.join(names)}"
            problem = f"metric must be a torchmetrics Metric or {known}, but got {quoted(metric)}"
            raise ScorerError(f"{problem}{f': {meant}' if meant else '.'}")
        entry = BY_NAME[metric]
        allowed = settings_of(entry.metric) - {"num_classes", "concern", "from_logits", "normalized"}
        if unknown := settings.keys() - allowed:
            raise ScorerError(f"{metric} has no setting {quoted(min(unknown))}; it has {', '.join(sorted(allowed))}.")
        metric = entry.make(len(concern.classes), **{"concern": concern, **settings})
    if entry.direction is None:
        raise ScorerError(f"metric must say which way is better, but {entry.name} does not.")
    return ConcernScorer(_Score(metric, entry, concern, refer_value))


class _Score:
    """The score function of a scorer, ``score(y_true, y_pred, sample_weight=None)``: the value of the metric."""

    def __init__(
        self, metric: Metric, entry: MetricEntry, concern: ConcernSpec, refer_value: str | float | None
    ) -> None:
        self.metric, self.entry, self.concern, self.refer_value = metric, entry, concern, refer_value
        self.__name__ = entry.name  # skorch calls a score so
        taken = inspect.signature(self.__call__).parameters.values()
        self.takes_weights = "sample_weight" in inspect.signature(metric.update).parameters
        # scikit-learn passes weights where the signature has them.
        self.__signature__ = inspect.Signature([p for p in taken if self.takes_weights or p.name != "sample_weight"])

    def __call__(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> float:
        """Return the value for labels (N,), and decisions (N,) or probabilities (N, C) in the order of the concern."""
        names = self.concern.classes
        if self.entry.takes == "decisions":
            preds = class_indices(y_pred, names, "labels of y_pred", refer_value=self.refer_value)
        elif np.ndim(y_pred) != 2:
            raise ScorerError(
                f"{self.__name__} takes probabilities (N, C), but got decisions of shape {np.shape(y_pred)}: "
                "tune a threshold by a metric of decisions, such as expected_concern."
            )
        else:
            preds = _probabilities(y_pred, names)
            preds = preds.log() if self.entry.takes == "log_probabilities" else preds
        metric: Metric = self.metric.clone()
        metric.reset()
        weights = [] if sample_weight is None else [torch.as_tensor(np.asarray(sample_weight, dtype=np.float64))]
        metric.update(preds, class_indices(y_true, names, "labels of y_true"), *weights)
        return self.entry.value(metric)


class ConcernScorer(_Scorer):  # type: ignore[misc]
    """A scorer that `concern_scorer` has made: one of scikit-learn's own, as `sklearn.metrics.make_scorer` makes them.

    It is called with a fitted classifier, samples and labels, and by keyword with ``sample_weight`` for metrics that
    take weights. Folds may lack a class, because it takes the classes from the estimator's ``classes_``.

    Raises:
        LabelError: From a call, if a label is missing or not one of the classes of the concern.
        ScorerError: From a call, if there are weights, but the metric takes none.
    """

    def __init__(self, score: _Score) -> None:
        sign = 1 if score.entry.direction == "max" else -1
        super().__init__(score, sign, {}, "predict" if score.entry.takes == "decisions" else "predict_proba")

    def __repr__(self) -> str:
        return f"concern_scorer({self._score_func.__name__!r})"

    def _score(self, method_caller: Any, estimator: Any, X: Any, y_true: Any, **kwargs: Any) -> float:  # noqa: N803
        score = self._score_func
        if kwargs.get("sample_weight") is not None and not score.takes_weights:
            raise ScorerError(f"sample_weight must be None, because {score.__name__} takes no weights.")
        if self._response_method == "predict":
            decided: float = super()._score(method_caller, estimator, X, y_true, **kwargs)
            return decided
        seen = method_caller(_EveryClass(estimator), "predict_every_class", X)
        by_class = _in_order(seen, estimator.classes_, score.concern.classes)
        return float(self._sign * score(y_true, by_class, **kwargs))


class _EveryClass(OutlierMixin, BaseEstimator):  # type: ignore[misc]
    """Takes the probabilities of all classes through scikit-learn's cache, which serves several scorers at once.

    Of two classes, the cache holds one, and a classifier that has seen one class is refused; but the values of outlier
    detectors are left as they are.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def predict_every_class(self, X: Any) -> Any:  # noqa: N803
        return _check_response_method(self.estimator, "predict_proba")(X)


_TAKEN = ("decisions", "probabilities", "log_probabilities")


def classes_of(concern: ConcernSpec) -> tuple[str, ...]:
    """Return the names of the classes.

    Raises:
        ScorerError: If it is no spec, but the path of a file, for instance.
    """
    if not isinstance(concern, ConcernSpec):
        raise ScorerError(f"concern must be a ConcernSpec, but got {no_concern(concern)}")
    return concern.classes


def class_indices(
    labels: Any, class_names: Sequence[str], argument: str = "labels", *, refer_value: str | float | None = None
) -> Tensor:
    """Return the index of each label among the class names, int64 (N,), or `REFERRED` where it is the refer value.

    Args:
        labels: Labels (N,) or, as scikit-learn takes them too, (N, 1).
        class_names: Names of the classes.
        argument: What error messages call the labels.
        refer_value: What stands for a referral, if anything.

    Raises:
        LabelError: If a label is missing or none of the names.
    """
    labels = np.asarray(labels)
    if labels.ndim == 2 and labels.shape[1] == 1:
        labels = labels[:, 0]
    if labels.ndim != 1:
        raise LabelError(f"{argument} must have shape (N,), but have {labels.shape}.")
    listed = labels.tolist()
    places: dict[Any, int] = {} if refer_value is None else {refer_value: REFERRED}
    places |= {label: _index(label, class_names, argument) for label in set(listed) - places.keys()}
    return torch.tensor([places[label] for label in listed], dtype=torch.int64)


def class_probabilities(estimator: Any, X: Any, class_names: Sequence[str]) -> Tensor:  # noqa: N803
    """Return the probability of each class in the order of the names, float64 (N, C), 0 where it was not seen.

    Raises:
        LabelError: If the estimator knows a class that has no such name.
    """
    return _in_order(estimator.predict_proba(X), estimator.classes_, class_names)


def _in_order(seen: Any, classes: Any, class_names: Sequence[str]) -> Tensor:
    given = torch.from_numpy(np.asarray(seen, dtype=np.float64))
    probabilities = given.new_zeros(len(given), len(class_names))
    probabilities[:, class_indices(classes, class_names, "labels of classes_")] = given
    return probabilities


def _index(label: Any, class_names: Sequence[str], argument: str) -> int:
    if isinstance(label, np.generic):
        label = label.item()
    if isinstance(label, bool) and not {"False", "True"}.intersection(class_names):
        label = int(label)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    is_place = isinstance(label, int) and not isinstance(label, bool)
    if is_place and not all(name.removeprefix("-").isdecimal() for name in class_names):
        if 0 <= label < len(class_names):
            return int(label)
    elif isinstance(label, str | int) and str(label) in class_names:
        return class_names.index(str(label))
    shown = quoted(list(class_names))
    raise LabelError(f"{argument} must be classes of the concern, {shown}, but one is {quoted(label)}.")


Points = OperatingPoint | Sequence[OperatingPoint]


class ConcernConfusionDisplay:
    """Show a confusion matrix in which dangerous errors are red and released pairs are framed.

    Args:
        confusion: ``(C, C)`` counts, rows true classes.
        concern: The classes, and which errors are dangerous.

    Example:
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.integrations.sklearn import ConcernConfusionDisplay
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]])
        >>> display = ConcernConfusionDisplay.from_predictions(["red", "green"], ["yellow", "green"], concern=lights)
        >>> display.confusion.tolist()
        [[0, 1, 0], [0, 0, 0], [0, 0, 1]]
    """

    def __init__(self, confusion: Tensor, concern: ConcernSpec) -> None:
        self.confusion, self.concern = confusion, concern

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, concern: ConcernSpec) -> Self:  # noqa: N803
        """Show the decisions of a fitted classifier or pipeline on samples with labels."""
        return cls.from_predictions(y, estimator.predict(X), concern=concern)

    @classmethod
    def from_predictions(cls, y_true: Any, y_pred: Any, *, concern: ConcernSpec) -> Self:
        """Show predicted labels against true ones."""
        target, decisions = (class_indices(labels, classes_of(concern)) for labels in (y_true, y_pred))
        counts = confusion_matrix(decisions, target, num_classes=len(concern.classes)).long()
        return cls(counts, concern).plot()

    def plot(self, title: str = "") -> Self:
        """Draw the matrix."""
        from mpcs_torch.plots.confusion import confusion_matrix as draw

        self.figure_ = draw(self.confusion, self.concern.released(), self.concern.classes, title)
        return self


class ReliabilityDisplay:
    """Show how often classes are true that are given a probability, with the means that `ProbabilityAccuracy` computes.

    Args:
        accuracy: A `ProbabilityAccuracy` that has seen all samples.

    Example:
        >>> import numpy as np
        >>> from mpcs_torch.integrations.sklearn import ReliabilityDisplay
        >>> probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
        >>> display = ReliabilityDisplay.from_predictions(["a", "b", "b"], probabilities, class_names=["a", "b"])
        >>> sorted(display.accuracy.compute())[0]
        'measured_decisiveness'
    """

    def __init__(self, accuracy: ProbabilityAccuracy) -> None:
        self.accuracy = accuracy

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, class_names: Sequence[str] | None = None) -> Self:  # noqa: N803
        """Show the probabilities of a fitted classifier; by default, its classes are those that it has seen."""
        names = [str(label) for label in estimator.classes_] if class_names is None else class_names
        return cls._from(class_indices(y, names), class_probabilities(estimator, X, names))

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any, *, class_names: Sequence[str]) -> Self:
        """Show probabilities (N, C), a column for each name in this order, against true labels."""
        return cls._from(class_indices(y_true, class_names), _probabilities(y_prob, class_names))

    @classmethod
    def _from(cls, target: Tensor, probabilities: Tensor) -> Self:
        accuracy = ProbabilityAccuracy(probabilities.shape[1], from_logits=False)
        accuracy.update(probabilities, target)
        return cls(accuracy).plot()

    def plot(self, title: str = "") -> Self:
        """Draw the diagram."""
        from mpcs_torch.plots.reliability import reliability

        self.figure_ = reliability(self.accuracy.bins(), self.accuracy.reported(), title)
        return self


class DetectionDisplay:
    """Show misses against false alarms of a binary classifier on probit axes (DET), with operating points.

    Args:
        rates: The curve, as `functional.detection_curve` computes it.
        name: The classifier's name.
        points: Operating points to mark.

    Example:
        >>> from mpcs_torch.integrations.sklearn import DetectionDisplay
        >>> display = DetectionDisplay.from_predictions(["ill", "well", "ill"], [2.0, 0.1, -1.0], pos_label="ill")
        >>> display.rates.p_miss.tolist()
        [0.0, 0.5, 0.5, 1.0]
    """

    def __init__(self, rates: ErrorRates, name: str = "classifier", points: Points = ()) -> None:
        self.rates, self.name, self.points = rates, name, points

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, pos_label: Any = None, points: Points = ()) -> Self:  # noqa: N803
        """Show the scores of a fitted classifier of two classes, by its decision function or else its probabilities.

        Args:
            estimator: The classifier or pipeline.
            X: Samples.
            y: Their labels.
            pos_label: The label of targets. Default: the second of ``estimator.classes_``.
            points: Operating points to mark.

        Raises:
            LabelError: If there are not two classes, or the label is none of them.
        """
        classes = np.asarray(estimator.classes_).tolist()
        target = classes[-1] if pos_label is None else pos_label
        if len(classes) != 2 or target not in classes:
            raise LabelError(f"pos_label must be one of two classes, but is {quoted(target)} of {quoted(classes)}.")
        if hasattr(estimator, "decision_function"):
            scores = np.asarray(estimator.decision_function(X)) * (1 if target == classes[1] else -1)
        else:
            scores = np.asarray(estimator.predict_proba(X))[:, classes.index(target)]
        return cls.from_predictions(y, scores, pos_label=target, name=type(estimator).__name__, points=points)

    @classmethod
    def from_predictions(
        cls, y_true: Any, y_score: Any, *, pos_label: Any = 1, name: str = "classifier", points: Points = ()
    ) -> Self:
        """Show scores (N,), higher for labels that equal ``pos_label``, against true labels."""
        targets = torch.from_numpy(np.asarray(y_true) == pos_label)
        scores = torch.from_numpy(np.asarray(y_score, dtype=np.float64))
        return cls(detection_curve(scores, targets.long()), name, points).plot()

    def plot(self) -> Self:
        """Draw the curve."""
        from mpcs_torch.plots.detection import det_curves

        self.figure_ = det_curves({self.name: self.rates}, points=self.points)
        return self


class RiskCoverageDisplay:
    """Show the dangerous errors among decided samples when the riskiest ones are referred.

    Args:
        curve: Coverage and risk, as `functional.risk_coverage_area_details` computes them.
        name: The classifier's name.

    Example:
        >>> import numpy as np
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.integrations.sklearn import RiskCoverageDisplay
        >>> probabilities = np.array([[0.9, 0.1], [0.6, 0.4], [0.3, 0.7]])
        >>> display = RiskCoverageDisplay.from_predictions([0, 1, 1], probabilities, concern=ConcernSpec(2))
        >>> display.curve.risk.tolist()[:2]
        [0.0, 0.0]
    """

    def __init__(self, curve: RiskCoverage, name: str = "classifier") -> None:
        self.curve, self.name = curve, name

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, y: Any, *, concern: ConcernSpec) -> Self:  # noqa: N803
        """Show the probabilities of a fitted classifier or pipeline on samples with labels."""
        probabilities = class_probabilities(estimator, X, classes_of(concern))
        return cls.from_predictions(y, probabilities, concern=concern, name=type(estimator).__name__)

    @classmethod
    def from_predictions(cls, y_true: Any, y_prob: Any, *, concern: ConcernSpec, name: str = "classifier") -> Self:
        """Show probabilities (N, C), a column for each class of the concern in its order, against true labels."""
        curve = risk_coverage_area_details(
            _probabilities(y_prob, classes_of(concern)),
            class_indices(y_true, concern.classes),
            num_classes=len(concern.classes),
            concern=concern.dangerous_pairs(),
            from_logits=False,
        )
        return cls(curve, name).plot()

    def plot(self) -> Self:
        """Draw the curve."""
        from mpcs_torch.plots.decisions import risk_coverage_figure

        self.figure_ = risk_coverage_figure({self.name: self.curve})
        return self


def _probabilities(given: Any, class_names: Sequence[str]) -> Tensor:
    probabilities = torch.as_tensor(np.asarray(given, dtype=np.float64))
    if probabilities.ndim != 2 or probabilities.shape[1] != len(class_names):
        shape, size = tuple(probabilities.shape), len(class_names)
        raise LabelError(f"y_prob must have shape (N, {size}), a column for each class, but has {shape}.")
    return probabilities
