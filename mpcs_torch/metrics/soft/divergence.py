"""SoftKLDivergence: the Metric of `functional.soft_kl_divergence`."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.soft_labels import SOFT_RULES, SoftSamples, flatten_soft
from mpcs_torch.functional.soft.divergence import DivergenceSums, check_epsilon, divergence_sums
from mpcs_torch.metrics.additive import AdditiveMetric


class SoftKLDivergence(AdditiveMetric):
    """Compute the mean binary Kullback-Leibler divergence of predictions from soft labels; in nats, lower is better.

    The equation, shapes and rules are those of `mpcs_torch.functional.soft_kl_divergence`. The elements of all classes
    are pooled.

    Args:
        epsilon: Predictions are moved into [epsilon, 1 - epsilon] first; with 0 the value can be infinite.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftKLDivergence
        >>> SoftKLDivergence()(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.1491, dtype=torch.float64)
    """

    sums_type = DivergenceSums
    interval_rule = "mean"
    interval_scale = "log"

    divergence: Tensor
    """Scalar: the divergences of the elements times the weights of their samples, summed."""
    elements: Tensor
    """Scalar: the weights of the elements, summed."""

    def __init__(self, *, epsilon: float = 0.0, validate_args: bool = True, **kwargs: Any) -> None:
        check_epsilon(epsilon)
        super().__init__(locals(), value_rules=SOFT_RULES)

    def samples_of(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None, ignore: Tensor | None = None
    ) -> SoftSamples:
        """Return a batch as flat samples."""
        return flatten_soft(
            detached(preds), detached(target, "target"), num_classes=None, sample_weight=sample_weight, ignore=ignore
        )

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None, ignore: Tensor | None = None
    ) -> None:
        """Add a batch: preds, target and ignore (N,), (N, C) or (N, C, ...), sample_weight (N,) or (N, ...)."""
        samples = self.samples_of(preds, target, sample_weight, ignore)
        self.admit(samples.find_faults)
        self.add(**self.sums_of(samples)._asdict())

    def sums_of(self, samples: SoftSamples) -> DivergenceSums:
        """Return the sums of samples."""
        return divergence_sums(samples, self.epsilon)

    def value_of(self, sums: DivergenceSums) -> Tensor:
        """Return the mean over elements, NaN if every element was ignored."""
        return sums.divergence / sums.elements
