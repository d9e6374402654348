"""Displays for scikit-learn: they hold values, and ``plot()`` draws them with the project's figures.

As with scikit-learn's own, ``from_estimator`` and ``from_predictions`` compute the values and draw them. The drawing is
in ``figure_``, a matplotlib Figure. Labels are those of `mpcs_torch.integrations.sklearn.concern_scorer`, and a label
that is no class raises its `LabelError`.
"""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.errors import quoted
from mpcs_torch.functional import OperatingPoint, confusion_matrix, detection_curve
from mpcs_torch.functional.concern.risk_coverage_area import RiskCoverage, risk_coverage_area_details
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.integrations.sklearn import LabelError, class_indices, class_probabilities, classes_of
from mpcs_torch.metrics import ProbabilityAccuracy

__all__ = ["ConcernConfusionDisplay", "DetectionDisplay", "ReliabilityDisplay", "RiskCoverageDisplay"]

Points = OperatingPoint | Sequence[OperatingPoint]


class ConcernConfusionDisplay:
    """Show a confusion matrix in which dangerous errors are red and released pairs are framed.

    Args:
        confusion: ``(C, C)`` counts, rows true classes.
        concern: The classes, and which errors are dangerous.

    Example:
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.integrations.sklearn_displays import ConcernConfusionDisplay
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
        counts = confusion_matrix(decisions, target, num_classes=len(concern.classes))
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
        >>> from mpcs_torch.integrations.sklearn_displays import ReliabilityDisplay
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
        >>> from mpcs_torch.integrations.sklearn_displays import DetectionDisplay
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
        from mpcs_torch.plots.det import det_curves

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
        >>> from mpcs_torch.integrations.sklearn_displays import RiskCoverageDisplay
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
        from mpcs_torch.plots.risk_coverage import risk_coverage_figure

        self.figure_ = risk_coverage_figure({self.name: self.curve})
        return self


def _probabilities(given: Any, class_names: Sequence[str]) -> Tensor:
    probabilities = torch.as_tensor(np.asarray(given, dtype=np.float64))
    if probabilities.ndim != 2 or probabilities.shape[1] != len(class_names):
        shape, size = tuple(probabilities.shape), len(class_names)
        raise LabelError(f"y_prob must have shape (N, {size}), a column for each class, but has {shape}.")
    return probabilities
