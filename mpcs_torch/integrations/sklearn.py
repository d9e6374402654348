"""Scorers for scikit-learn: `concern_scorer` makes one for `GridSearchCV`, `cross_validate` and the like.

::

    search = GridSearchCV(pipeline, grid, scoring=concern_scorer("mpcs", concern))
    scoring = {"neg_mpcs": concern_scorer("mpcs", concern), "neg_dangerous": concern_scorer("dangerous", concern)}
    cross_validate(classifier, X, y, scoring=scoring)

Figures are in `mpcs_torch.integrations.sklearn_displays`.
"""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import MpcsError, did_you_mean, quoted
from mpcs_torch.functional.inputs.arrays import no_concern
from mpcs_torch.metrics.by_name import BY_NAME, MetricEntry, settings_of

__all__ = ["ConcernScorer", "LabelError", "ScorerError", "concern_scorer"]


class ScorerError(MpcsError, ValueError):
    """A metric cannot be a scorer, or what is given as a concern is no `ConcernSpec`."""


class LabelError(MpcsError, ValueError):
    """A label is not one of the classes of the concern."""


def concern_scorer(metric: str | Metric, concern: ConcernSpec, **settings: Any) -> "ConcernScorer":
    """Make a scorer, which is better when higher: metrics that are better when lower are negated, as ``neg_log_loss``.

    Labels that are text are names of the concern's classes. Labels that are integers are indices of its classes, unless
    all its class names are integers too, as with ``ConcernSpec(10)``: then they are names. The order of the estimator's
    ``classes_`` does not matter, and a class that it has not seen has probability 0.

    Args:
        metric: A name of ``mpcs metrics`` that takes decisions or probabilities, or a torchmetrics `Metric` over
            probabilities ``(N, C)`` and class indices ``(N,)``, made with ``from_logits=False`` if it has that setting.
            Metrics of decisions measure those of ``estimator.predict``.
        concern: The classes, and the costs of errors. Metrics by name are made with it.
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
    classes_of(concern)  # refuses what is no spec
    if isinstance(metric, Metric):
        if settings:
            raise ScorerError(f"settings go with the name of a metric, but got {quoted(settings)} with a Metric.")
        if getattr(metric, "from_logits", False):
            raise ScorerError(f"{type(metric).__name__} must be made with from_logits=False for probabilities.")
        sign = {True: 1, False: -1}.get(metric.higher_is_better)  # type: ignore[arg-type]  # it may be None
        scorer = ConcernScorer(type(metric).__name__, concern, sign or 0, given=metric)
    else:
        if metric not in BY_NAME or BY_NAME[metric].takes not in _TAKEN:
            names = [name for name, entry in BY_NAME.items() if entry.takes in _TAKEN and entry.direction]
            meant = "" if metric in BY_NAME else did_you_mean(metric, names)
            named = "a name of `mpcs metrics`" if meant else f"one of {', '.join(names)}"
            told = f"metric must be a torchmetrics Metric or {named}, but got {quoted(metric)}"
            raise ScorerError(f"{told}{f': {meant}' if meant else '.'}")
        known = settings_of(BY_NAME[metric].metric) - {"num_classes", "concern", "from_logits", "normalized"}
        if unknown := settings.keys() - known:
            raise ScorerError(f"{metric} has no setting {quoted(min(unknown))}; it has {', '.join(sorted(known))}.")
        sign = {"max": 1, "min": -1, None: 0}[BY_NAME[metric].direction]
        scorer = ConcernScorer(metric, concern, sign, settings=settings)
        scorer.make()  # a wrong setting must show now
    if not scorer.sign:
        raise ScorerError(f"metric must say which way is better, but {scorer.name} does not.")
    return scorer


@dataclass(frozen=True)
class ConcernScorer:
    """A scorer that `concern_scorer` has made: called with an estimator, samples and labels."""

    name: str
    concern: ConcernSpec
    sign: int
    """1 if the metric is better when higher, else -1."""
    settings: dict[str, Any] = field(default_factory=dict)
    given: Metric | None = field(default=None, repr=False)

    def __call__(self, estimator: Any, X: Any, y_true: Any, sample_weight: Any = None) -> float:  # noqa: N803
        """Return the score of a fitted classifier; higher is better.

        Args:
            estimator: A classifier or pipeline with ``classes_``, and ``predict`` or ``predict_proba``.
            X: Samples.
            y_true: Their labels.
            sample_weight: Their weights, for metrics that take weights.

        Raises:
            LabelError: If a label is not one of the classes of the concern.
            ScorerError: If there are weights, but the metric takes none.
        """
        target = class_indices(y_true, self.concern.classes)
        if self.takes == "decisions":
            preds = class_indices(estimator.predict(X), self.concern.classes)
        else:
            preds = class_probabilities(estimator, X, self.concern.classes)
            preds = preds.log() if self.takes == "log_probabilities" else preds
        metric = self.make()
        weights = [] if sample_weight is None else [torch.as_tensor(np.asarray(sample_weight, dtype=np.float64))]
        if weights and "sample_weight" not in inspect.signature(metric.update).parameters:
            raise ScorerError(f"sample_weight must be None, because {self.name} takes no weights.")
        metric.update(preds, target, *weights)
        return self.sign * (float(metric.compute()) if self._entry is None else self._entry.value(metric))

    @property
    def takes(self) -> str:
        """The input of the metric."""
        return "probabilities" if self._entry is None else self._entry.takes

    def make(self) -> Metric:
        """Make a metric without samples."""
        if self._entry is None:
            assert self.given is not None
            metric: Metric = self.given.clone()
            metric.reset()
            return metric
        return self._entry.make(len(self.concern.classes), **{"concern": self.concern, **self.settings})

    @property
    def _entry(self) -> MetricEntry | None:
        return BY_NAME[self.name] if self.given is None else None


_TAKEN = ("decisions", "probabilities", "log_probabilities")


def classes_of(concern: ConcernSpec) -> tuple[str, ...]:
    """Return the names of the classes.

    Raises:
        ScorerError: If it is no spec, but the path of a file, for instance.
    """
    if not isinstance(concern, ConcernSpec):
        raise ScorerError(f"concern must be a ConcernSpec, but got {no_concern(concern)}")
    return concern.classes


def class_indices(labels: Any, class_names: Sequence[str]) -> Tensor:
    """Return the index of each label among the class names, int64 (N,).

    Raises:
        LabelError: If a label is none of them.
    """
    given = np.asarray(labels)
    if given.ndim != 1:
        raise LabelError(f"labels must have shape (N,), but have {given.shape}.")
    found, places = np.unique(given, return_inverse=True)
    return torch.from_numpy(np.array([_index(label, class_names) for label in found.tolist()], dtype=np.int64)[places])


def class_probabilities(estimator: Any, X: Any, class_names: Sequence[str]) -> Tensor:  # noqa: N803
    """Return the probability of each class in the order of the names, float64 (N, C), 0 where it was not seen.

    Raises:
        LabelError: If the estimator knows a class that has no such name.
    """
    given = torch.from_numpy(np.asarray(estimator.predict_proba(X), dtype=np.float64))
    probabilities = given.new_zeros(len(given), len(class_names))
    probabilities[:, class_indices(estimator.classes_, class_names)] = given
    return probabilities


def _index(label: object, class_names: Sequence[str]) -> int:
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, int) and not all(name.isdecimal() for name in class_names):
        if 0 <= label < len(class_names):
            return int(label)
    elif isinstance(label, str | int) and str(label) in class_names:
        return class_names.index(str(label))
    shown = quoted(list(class_names))
    raise LabelError(f"labels must be classes of the concern, {shown}, but one is {quoted(label)}.")
