"""Generalized means of the probability of the true class: shells over `functional.geometric_accuracy` and its kin."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.probabilities import flatten_samples, sample_rules
from mpcs_torch.functional.probability.generalized import DECISIVE, GEOMETRIC, ROBUST, check_floor, mean_of, power_sum
from mpcs_torch.metrics.base import SumMetric


class GeometricAccuracy(SumMetric):
    """Geometric mean of the probability of the true class; in [0, 1], higher is better.

    Equations, shapes and rules are those of `mpcs_torch.functional.geometric_accuracy`.

    Args:
        num_classes: C.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.
        epsilon: Floor of the probabilities, in [0, 1).
        ignore_index: Label of samples to leave out.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong value silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU bad values are reported by `compute`.

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

    power_sum: Tensor
    sample_count: Tensor

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
            value_rules=sample_rules(num_classes, from_logits=from_logits),
            state_settings=("power", "num_classes", "from_logits", "epsilon", "ignore_index"),
        )
        self.add_sum("power_sum", dtype=torch.float64)
        self.add_sum("sample_count", dtype=torch.float64)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target (N,) or (N, ...)."""
        samples = flatten_samples(
            preds.detach(),
            target,
            num_classes=self.num_classes,
            from_logits=self.from_logits,
            ignore_index=self.ignore_index,
            sample_weight=None,
        )
        self.admit(samples.faults)
        of_true = samples.probs.gather(1, samples.target.unsqueeze(1)).squeeze(1)
        self.power_sum = self.power_sum + power_sum(of_true, samples.weight, self.power, self.epsilon)
        self.sample_count = self.sample_count + samples.weight.sum()

    def compute(self) -> Tensor:
        """The mean over all samples, a float64 scalar; NaN where all were ignored."""
        self.check_computable()
        return mean_of(self.power_sum, self.sample_count, self.power)


class Decisiveness(GeometricAccuracy):
    """Arithmetic mean of the probability of the true class; in [0, 1], higher is better.

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
    """Mean with power -2/3 of the probability of the true class; in [0, 1], higher is better.

    Arguments and errors are those of `GeometricAccuracy`, the equation that of `mpcs_torch.functional.robustness`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Robustness
        >>> robustness = Robustness(num_classes=2, from_logits=False)
        >>> robustness(torch.tensor([[0.9, 0.1], [0.6, 0.4]]), torch.tensor([0, 1]))
        tensor(0.5684, dtype=torch.float64)
    """

    power = ROBUST
