"""GeometricAccuracy, Decisiveness and Robustness: the Metrics of the functions of the same names."""

from math import exp, inf, log
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.probabilities import Samples
from mpcs_torch.functional.probability import generalized as kernel
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

    def term_of(self, samples: Samples) -> Tensor:
        """Return the power of each sample's probability of the true class; its logarithm for the geometric mean."""
        return kernel.power_of_true_class(samples, self.power, self.epsilon)

    def value_of(self, sums: WeightedSum) -> Tensor:
        """Return the generalized mean over samples; NaN if there are no samples."""
        return kernel.mean_of(*sums, self.power)

    def of_ratio(self, ratio: float, whole: WeightedSum) -> float:  # noqa: ARG002  # the same for any samples
        """Return the generalized mean that belongs to ``ratio``, a mean of powers."""
        if self.power == kernel.GEOMETRIC:
            return min(1.0, exp(ratio))
        return min(1.0, ratio ** (1 / self.power) if ratio > 0 else (inf if self.power < 0 else 0.0))

    def row_ratios(self, whole: WeightedSum) -> list[tuple[float, float]]:  # noqa: ARG002  # the same for any samples
        """Return the terms of the lowest and the highest probability, each with the denominator 1."""
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
        >>> decisiveness = Decisiveness(num_classes=2, from_logits=False)
        >>> decisiveness(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.6500, dtype=torch.float64)
    """

    power = kernel.DECISIVE


class Robustness(GeometricAccuracy):
    """Compute the mean with power -2/3 of the probability of the true class; in [0, 1], higher is better.

    Arguments and errors are those of `GeometricAccuracy`; for the equation see `mpcs_torch.functional.robustness`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Robustness
        >>> robustness = Robustness(num_classes=2, from_logits=False)
        >>> robustness(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.5684, dtype=torch.float64)
    """

    power = kernel.ROBUST
    interval_rule = "bounded"  # dominated by rare unlikely labels, which a sample of 100 often lacks
