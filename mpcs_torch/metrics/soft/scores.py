"""Soft precision, recall, F and divergence: shells over `functional.soft_fbeta` and its kin."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.soft_labels import RULES, flatten_soft
from mpcs_torch.functional.soft.sums import SoftAverage, SoftSums, check_beta, check_soft_settings, score_of, soft_sums
from mpcs_torch.metrics.base import SumMetric


class _SoftScore(SumMetric):
    """Sums of degrees of truth, and their F."""

    higher_is_better = True
    plot_upper_bound = 1.0

    beta: float
    """Of F; precision is its limit for 0, recall for infinity."""
    shared: Tensor
    predicted: Tensor
    actual: Tensor
    elements: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        average: SoftAverage = "micro",
        zero_division: float = 0.0,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_soft_settings(average, zero_division)
        if num_classes < 1:
            raise ValueError(f"num_classes must be at least 1, but got {num_classes}.")
        super().__init__(locals(), value_rules=RULES, state_settings=("num_classes",))
        for name in SoftSums._fields:
            self.add_sum(name, shape=(num_classes,), dtype=torch.float64)

    def update(self, preds: Tensor, target: Tensor, ignore: Tensor | None = None) -> None:
        """Add a batch: preds, target and ignore of (N,), (N, C) or (N, C, ...)."""
        p, y, counted, faults = flatten_soft(preds.detach(), target.detach(), ignore)
        if p.shape[1] != self.num_classes:
            raise ValueError(f"preds must hold {self.num_classes} classes, but got shape {tuple(preds.shape)}.")
        self.admit(faults)
        sums = soft_sums(p, y, counted, dtype=widest_float(p.device))
        for name, part in sums._asdict().items():
            setattr(self, name, getattr(self, name) + part)

    def compute(self) -> Tensor:
        """The value of all that was seen, float64: a scalar, or (C,) with ``average="none"``."""
        self.check_computable()
        sums = SoftSums(self.shared, self.predicted, self.actual, self.elements)
        return score_of(sums, beta=self.beta, average=self.average, zero_division=self.zero_division)


class SoftFBeta(_SoftScore):
    """F of soft precision and recall, for labels that are degrees of truth; in [0, 1], higher is better.

    Equations, shapes and rules are those of `mpcs_torch.functional.soft_fbeta`.

    Args:
        num_classes: C; 1 for predictions (N,) of one class.
        beta: Weight > 0 of recall against precision.
        average: ``"micro"`` over all elements, ``"macro"`` for the mean of the classes' values, ``"weighted"`` by how
            much of each class is true, or ``"none"`` for (C,).
        zero_division: What 0 / 0 gives: 0, 1 or NaN.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong value silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftFBeta
        >>> SoftFBeta(num_classes=1, beta=2.0)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.8871, dtype=torch.float64)
    """

    def __init__(
        self,
        num_classes: int,
        *,
        beta: float,
        average: SoftAverage = "micro",
        zero_division: float = 0.0,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_beta(beta)
        super().__init__(
            num_classes, average=average, zero_division=zero_division, validate_args=validate_args, **kwargs
        )
        self.beta = beta


class SoftF1(_SoftScore):
    """The harmonic mean of soft precision and recall; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch import SoftF1
        >>> agreement = torch.tensor([[1.0, 0.0], [0.6, 0.4]])  # how many annotators chose each class
        >>> SoftF1(num_classes=2)(torch.tensor([[0.9, 0.1], [0.7, 0.3]]), agreement)
        tensor(0.9000, dtype=torch.float64)
    """

    beta = 1.0


class SoftPrecision(_SoftScore):
    """How much of what was predicted is true; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftPrecision
        >>> SoftPrecision(num_classes=1)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.7857, dtype=torch.float64)
    """

    beta = 0.0


class SoftRecall(_SoftScore):
    """How much of what is true was predicted; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftRecall
        >>> SoftRecall(num_classes=1)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.9167, dtype=torch.float64)
    """

    beta = float("inf")
