"""SoftKLDivergence: the shell over `functional.soft_kl_divergence`."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.soft_labels import RULES, flatten_soft
from mpcs_torch.functional.soft.divergence import check_epsilon, divergence_sum
from mpcs_torch.metrics.base import SumMetric


class SoftKLDivergence(SumMetric):
    """Mean binary Kullback-Leibler divergence of predictions from soft labels; in nats, lower is better.

    Equations, shapes and rules are those of `mpcs_torch.functional.soft_kl_divergence`; classes are pooled.

    Args:
        epsilon: Predictions are moved into [epsilon, 1 - epsilon] first; with 0 the value can be infinite.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong value silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftKLDivergence
        >>> SoftKLDivergence()(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.1491, dtype=torch.float64)
    """

    divergence: Tensor
    elements: Tensor

    def __init__(self, *, epsilon: float = 0.0, validate_args: bool = True, **kwargs: Any) -> None:
        check_epsilon(epsilon)
        super().__init__(locals(), value_rules=RULES)
        self.add_sum("divergence", dtype=torch.float64)
        self.add_sum("elements", dtype=torch.int64)

    def update(self, preds: Tensor, target: Tensor, ignore: Tensor | None = None) -> None:
        """Add a batch: preds, target and ignore of (N,), (N, C) or (N, C, ...)."""
        p, y, counted, faults = flatten_soft(preds.detach(), target.detach(), ignore)
        self.admit(faults)
        wide = widest_float(p.device)
        self.divergence = self.divergence + divergence_sum(p.to(wide), y.to(wide), counted, self.epsilon)
        self.elements = self.elements + counted.sum()

    def compute(self) -> Tensor:
        """The mean over all elements, a float64 scalar; NaN where nothing was counted."""
        self.check_computable()
        return self.divergence / self.elements
