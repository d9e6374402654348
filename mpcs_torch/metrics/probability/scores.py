"""GeometricAccuracy, Decisiveness, Robustness, BrierScore and CrossEntropy: the Metrics of these functions."""

from math import exp, inf, log
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.probabilities import Samples
from mpcs_torch.functional.probability import scores as kernel
from mpcs_torch.functional.probability.scores import OverClasses
from mpcs_torch.metrics.additive import IntervalRule, ProbabilityMetric


class GeometricAccuracy(ProbabilityMetric):
    """Compute the geometric mean of the probability of the true class; in [0, 1], higher is better.

    Arguments are those of `mpcs_torch.functional.geometric_accuracy`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import GeometricAccuracy
        >>> accuracy = GeometricAccuracy(num_classes=2, from_logits=False)
        >>> accuracy(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.6000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0
    power = kernel.GEOMETRIC
    interval_rule: IntervalRule = "mean"
    interval_scale = "logit"

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
        kernel.check_floor(epsilon)
        super().__init__(locals(), ("power", "num_classes", "from_logits", "epsilon", "ignore_index"))

    def term_from_samples(self, samples: Samples) -> Tensor:
        """Return p ** ``power``, or log(p) for the geometric mean, (M,); p is the probability of the true class."""
        return kernel.power_of_true_class(samples, self.power, self.epsilon)

    def value_from_sums(self, sums: WeightedSum) -> Tensor:
        """Return the generalized mean over samples; NaN if there are no samples."""
        return kernel.mean_from_total(*sums, self.power)

    def value_from_ratio(self, ratio: float, whole: WeightedSum) -> float:  # noqa: ARG002  # the same for any samples
        """Return the generalized mean of probabilities, given ``ratio``, the mean of `term_from_samples`."""
        if self.power == kernel.GEOMETRIC:
            return min(1.0, exp(ratio))
        return min(1.0, ratio ** (1 / self.power) if ratio > 0 else (inf if self.power < 0 else 0.0))

    def row_ratios(self, whole: WeightedSum) -> list[tuple[float, float]]:  # noqa: ARG002  # the same for any samples
        """Return the terms of the extreme probabilities, each with the denominator 1; empty if a term has no bound."""
        if self.epsilon == 0 and self.power != kernel.DECISIVE:
            return []
        if self.power == kernel.GEOMETRIC:
            return [(log(self.epsilon), 1), (0, 1)]
        return [(self.epsilon**self.power, 1), (1, 1)]

    def _references(self) -> dict[str, float]:
        return {**super()._references(), "uniform guess": max(self.epsilon, 1 / self.num_classes)}


class Decisiveness(GeometricAccuracy):
    """Compute the arithmetic mean of the probability of the true class; in [0, 1], higher is better.

    Arguments and errors are those of `GeometricAccuracy`; for the equation see `mpcs_torch.functional.decisiveness`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Decisiveness
        >>> Decisiveness(num_classes=2, from_logits=False)(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.6500, dtype=torch.float64)
    """

    power = kernel.DECISIVE


class Robustness(GeometricAccuracy):
    """Compute the power mean, with power -2/3, of the probability of the true class; in [0, 1], higher is better.

    Arguments and errors are those of `GeometricAccuracy`; for the equation see `mpcs_torch.functional.robustness`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Robustness
        >>> Robustness(num_classes=2, from_logits=False)(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.5684, dtype=torch.float64)
    """

    power = kernel.ROBUST
    interval_rule = "bounded"  # dominated by rare unlikely labels, which a sample of 100 often lacks


class BrierScore(ProbabilityMetric):
    """Compute the Brier score of probabilities; lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.brier_score`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import BrierScore
        >>> BrierScore(num_classes=2, from_logits=False)(torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([0, 1]))
        tensor(0.3125, dtype=torch.float64)
    """

    term_from_samples = staticmethod(kernel.squared_error)
    interval_rule = "mean"
    interval_scale = "log"
    row_bounds = (0, 2)

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
        check_choice("over_classes", over_classes, OverClasses)
        super().__init__(locals(), ("num_classes", "from_logits", "ignore_index"))

    def value_from_sums(self, sums: WeightedSum) -> Tensor:
        """Return the mean over samples; NaN if there are no samples."""
        return kernel.brier_from_sums(sums, self.num_classes, self.over_classes)

    def value_from_ratio(self, ratio: float, whole: WeightedSum) -> float:  # noqa: ARG002  # the same for any samples
        """Return ``ratio``, divided by the number of classes if ``over_classes`` is ``"mean"``."""
        return ratio if self.over_classes == "sum" else ratio / self.num_classes

    def _references(self) -> dict[str, float]:
        guess = 1 - 1 / self.num_classes
        guess = guess if self.over_classes == "sum" else guess / self.num_classes
        return {**super()._references(), "uniform guess": guess}


UNSEEN_LOSS = -log(1e-12)
"""The loss that intervals assume for one unseen sample, because test sets often lack confidently wrong samples."""


class CrossEntropy(ProbabilityMetric):
    """Compute the mean cross entropy of probabilities; in nats, lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.cross_entropy`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import CrossEntropy
        >>> CrossEntropy(num_classes=2, from_logits=False)(torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.tensor([0, 1]))
        tensor(0.4581, dtype=torch.float64)
    """

    term_from_samples = staticmethod(kernel.log_loss)
    interval_rule = "mean"
    interval_scale = "log"
    row_bounds = (0.0, UNSEEN_LOSS)

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
        scale = kernel.entropy_scale(from_logits=from_logits, normalized=normalized)
        super().__init__(locals())

    def bin_ratios(self, bins: WeightedSum, whole: WeightedSum, size: float) -> list[tuple[float, float]]:  # noqa: ARG002
        """Return pairs for a mean loss of 0 and for the largest mean loss of a bin (at least `UNSEEN_LOSS`)."""
        largest = (bins.total / bins.weight).nan_to_num(0.0).max().clamp(min=UNSEEN_LOSS).item()
        return [(0.0, size), (largest * size, size)]

    def _references(self) -> dict[str, float]:
        return {**super()._references(), "uniform guess": log(self.num_classes)}
