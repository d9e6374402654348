"""GeometricAccuracy, Decisiveness, Robustness, BrierScore and CrossEntropy: the Metrics of these functions."""

from math import log
from typing import Any

from mpcs_torch.functional.probability import scores as measures
from mpcs_torch.functional.probability.scores import OverClasses
from mpcs_torch.metrics.measure_metric import MeasureMetric


class GeometricAccuracy(MeasureMetric):
    """Compute the geometric mean of the probability of the true class; in [0, 1], higher is better.

    Arguments are those of `mpcs_torch.functional.geometric_accuracy`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import GeometricAccuracy
        >>> accuracy = GeometricAccuracy(num_classes=2, from_logits=False)
        >>> accuracy(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.6000, dtype=torch.float64)
    """

    of = measures.GeometricAccuracy

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool = True,
        epsilon: float = 0.005,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            self.of(num_classes, from_logits, ignore_index, epsilon), validate_args, kwargs
        )

    def _references(self) -> dict[str, float]:
        return {
            **super()._references(),
            "uniform guess": max(self.epsilon, 1 / self.num_classes),
        }


class Decisiveness(GeometricAccuracy):
    """Compute the arithmetic mean of the probability of the true class; in [0, 1], higher is better.

    Arguments and errors are those of `GeometricAccuracy`; for the equation see `mpcs_torch.functional.decisiveness`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Decisiveness
        >>> Decisiveness(num_classes=2, from_logits=False)(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.6500, dtype=torch.float64)
    """

    of = measures.Decisiveness


class Robustness(GeometricAccuracy):
    """Compute the power mean, with power -2/3, of the probability of the true class; in [0, 1], higher is better.

    Arguments and errors are those of `GeometricAccuracy`; for the equation see `mpcs_torch.functional.robustness`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Robustness
        >>> Robustness(num_classes=2, from_logits=False)(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.5684, dtype=torch.float64)
    """

    of = measures.Robustness


class BrierScore(MeasureMetric):
    """Compute the Brier score of probabilities; lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.brier_score`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import BrierScore
        >>> BrierScore(num_classes=2, from_logits=False)(torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([0, 1]))
        tensor(0.3125, dtype=torch.float64)
    """

    of = measures.BrierScore

    def __init__(
        self,
        num_classes: int,
        *,
        over_classes: OverClasses = "sum",
        from_logits: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = measures.BrierScore(num_classes, from_logits, ignore_index, over_classes)
        super().__init__(measure, validate_args, kwargs)

    def _references(self) -> dict[str, float]:
        guess = 1 - 1 / self.num_classes
        guess = guess if self.over_classes == "sum" else guess / self.num_classes
        return {**super()._references(), "uniform guess": guess}


class Overconfidence(MeasureMetric):
    """Compute the mean confidence in decisions minus their accuracy; in [-1, 1], 0 is best.

    Arguments are those of `mpcs_torch.functional.overconfidence`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Overconfidence
        >>> gap = Overconfidence(num_classes=2, from_logits=False)
        >>> gap(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.2500, dtype=torch.float64)
    """

    of = measures.Overconfidence

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = measures.Overconfidence(num_classes, from_logits, ignore_index)
        super().__init__(measure, validate_args, kwargs)

    def _references(self) -> dict[str, float]:
        return {"no gap": 0.0}


class CrossEntropy(MeasureMetric):
    """Compute the mean cross entropy of probabilities; in nats, lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.cross_entropy`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import CrossEntropy
        >>> CrossEntropy(num_classes=2, from_logits=False)(torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.tensor([0, 1]))
        tensor(0.4581, dtype=torch.float64)
    """

    of = measures.CrossEntropy

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool = True,
        normalized: bool = False,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = measures.CrossEntropy(num_classes, from_logits, ignore_index, normalized)
        super().__init__(measure, validate_args, kwargs)

    def _references(self) -> dict[str, float]:
        return {**super()._references(), "uniform guess": log(self.num_classes)}
