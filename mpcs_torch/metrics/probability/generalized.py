"""Generalized means of the probability of the true class: the Metrics of the functions in the file of this name."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.probabilities import flatten_samples, sample_rules, scale_of
from mpcs_torch.functional.probability.generalized import DECISIVE, GEOMETRIC, ROBUST, check_floor, mean_of, power_sum
from mpcs_torch.metrics.base import SumMetric


class GeometricAccuracy(SumMetric):
    """Compute the geometric mean of the probability of the true class; in [0, 1], higher is better.

    Equations, shapes and rules are those of `mpcs_torch.functional.geometric_accuracy`.

    Args:
        num_classes: C, at least 2.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        epsilon: Floor of the probabilities, in [0, 1).
        ignore_index: Label of samples to leave out.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import GeometricAccuracy
        >>> accuracy = GeometricAccuracy(num_classes=2, from_logits=False)
        >>> accuracy(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.6000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0
    power = GEOMETRIC

    powers: Tensor
    """Scalar: the weighted powers of the floored probabilities of true classes (or their logarithms), summed."""
    samples: Tensor
    """Scalar: the weights of the samples, summed."""

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
        check_num_classes(num_classes)
        check_floor(epsilon)
        super().__init__(
            locals(),
            value_rules=sample_rules(num_classes, scale=scale_of(from_logits)),
            state_settings=("power", "num_classes", "from_logits", "epsilon", "ignore_index"),
        )
        self.add_sum("powers")
        self.add_sum("samples")

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target and sample_weight (N,) or (N, ...)."""
        samples = flatten_samples(
            detached(preds),
            target,
            num_classes=self.num_classes,
            scale=scale_of(self.from_logits),
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )
        self.admit(samples.find_faults)
        weight = samples.labels.weight
        of_true = samples.of_true_class(samples.probs())
        self.add(powers=power_sum(of_true, weight, self.power, self.epsilon), samples=weight.sum())

    def compute(self) -> Tensor:
        """Return the mean over all samples: a float64 scalar, NaN without samples."""
        self.check_computable()
        return mean_of(self.powers, self.samples, self.power)

    def _references(self) -> dict[str, float]:
        return {**super()._references(), "uniform guess": max(self.epsilon, 1 / self.num_classes)}


class Decisiveness(GeometricAccuracy):
    """Compute the arithmetic mean of the probability of the true class; in [0, 1], higher is better.

    Arguments and errors are those of `GeometricAccuracy`, the equation that of `mpcs_torch.functional.decisiveness`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Decisiveness
        >>> decisiveness = Decisiveness(num_classes=2, from_logits=False)
        >>> decisiveness(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.6500, dtype=torch.float64)
    """

    power = DECISIVE


class Robustness(GeometricAccuracy):
    """Compute the mean with power -2/3 of the probability of the true class; in [0, 1], higher is better.

    Arguments and errors are those of `GeometricAccuracy`, the equation that of `mpcs_torch.functional.robustness`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Robustness
        >>> robustness = Robustness(num_classes=2, from_logits=False)
        >>> robustness(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.5684, dtype=torch.float64)
    """

    power = ROBUST
