"""SoftKLDivergence: the Metric of `functional.soft_kl_divergence`."""

from typing import Any

from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.soft_labels import SOFT_RULES, SoftSamples
from mpcs_torch.functional.soft.divergence import check_epsilon, divergence_sums
from mpcs_torch.metrics.soft.scores import SoftMetric


class SoftKLDivergence(SoftMetric):
    """Compute the mean binary Kullback-Leibler divergence of predictions from soft labels; in nats, lower is better.

    Arguments are those of `mpcs_torch.functional.soft_kl_divergence`; for ``validate_args`` and errors see `Accuracy`.
    The mean is over the elements of all classes together.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftKLDivergence
        >>> SoftKLDivergence()(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.1491, dtype=torch.float64)
    """

    sums_type = WeightedSum
    interval_rule = "mean"
    interval_scale = "log"

    def __init__(self, *, epsilon: float = 0.0, validate_args: bool = True, **kwargs: Any) -> None:
        check_epsilon(epsilon)
        super().__init__(locals(), value_rules=SOFT_RULES)

    def sums_of(self, samples: SoftSamples) -> WeightedSum:
        """Return the sum of divergences and the sum of weights."""
        return divergence_sums(samples, self.epsilon)
