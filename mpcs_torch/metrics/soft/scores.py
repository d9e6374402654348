"""Soft precision, recall and F: the Metrics of `functional.soft_fbeta` and its special cases."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.soft_labels import SOFT_RULES, flatten_soft
from mpcs_torch.functional.soft.sums import SoftAverage, SoftSums, check_beta, check_soft_settings, score_of, soft_sums
from mpcs_torch.metrics.base import SumMetric


class _SoftScore(SumMetric):
    """Hold the sums of degrees of truth, and compute their F."""

    higher_is_better = True
    plot_upper_bound = 1.0

    beta: float
    """The weight of recall in F, which is precision for 0 and recall for infinity."""
    shared: Tensor
    """(C,): min(prediction, label) times the weight of the sample, summed."""
    predicted: Tensor
    """(C,): predictions times the weights of the samples, summed."""
    actual: Tensor
    """(C,): labels times the weights of the samples, summed."""
    elements: Tensor
    """(C,): the weights of the elements, summed."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        check_soft_settings(arguments["num_classes"], arguments["average"], arguments["zero_division"])
        super().__init__(arguments, value_rules=SOFT_RULES, state_settings=("num_classes",))
        for name in SoftSums._fields:
            self.add_sum(name, shape=(self.num_classes,))

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None, ignore: Tensor | None = None
    ) -> None:
        """Add a batch: preds, target and ignore (N,), (N, C) or (N, C, ...), sample_weight (N,) or (N, ...)."""
        samples = flatten_soft(
            preds.detach(), target.detach(), num_classes=self.num_classes, sample_weight=sample_weight, ignore=ignore
        )
        self.admit(samples.find_faults)
        self.add(**soft_sums(samples, widest_float(preds.device))._asdict())

    def compute(self) -> Tensor:
        """Return the value of all samples, float64: a scalar, or (C,) with ``average="none"``."""
        self.check_computable()
        sums = SoftSums(self.shared, self.predicted, self.actual, self.elements)
        return score_of(sums, beta=self.beta, average=self.average, zero_division=self.zero_division)


class SoftFBeta(_SoftScore):
    """Compute the F of soft precision and recall, for labels that are degrees of truth; in [0, 1], higher is better.

    The equation, shapes and rules are those of `mpcs_torch.functional.soft_fbeta`.

    Args:
        num_classes: C; 1 for predictions of shape ``(N,)``.
        beta: Weight > 0 of recall against precision.
        average: ``"micro"`` over all elements, ``"macro"`` for the mean of the classes' values, ``"weighted"`` by how
            much of each class is true, or ``"none"`` for (C,).
        zero_division: The value of 0 / 0: 0, 1 or NaN.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

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
        super().__init__(locals())


class _FixedBeta(_SoftScore):
    """Compute F for a fixed beta."""

    def __init__(
        self,
        num_classes: int,
        *,
        average: SoftAverage = "micro",
        zero_division: float = 0.0,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())


class SoftF1(_FixedBeta):
    """Compute the harmonic mean of soft precision and recall; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch import SoftF1
        >>> agreement = torch.tensor([[1.0, 0.0], [0.6, 0.4]])  # the share of annotators who chose each class
        >>> SoftF1(num_classes=2)(torch.tensor([[0.9, 0.1], [0.7, 0.3]]), agreement)
        tensor(0.9000, dtype=torch.float64)
    """

    beta = 1.0


class SoftPrecision(_FixedBeta):
    """Compute the soft precision, the share of what was predicted that is true; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftPrecision
        >>> SoftPrecision(num_classes=1)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.7857, dtype=torch.float64)
    """

    beta = 0.0


class SoftRecall(_FixedBeta):
    """Compute the soft recall, the share of what is true that was predicted; in [0, 1], higher is better.

    Arguments and errors are those of `SoftFBeta` without ``beta``.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SoftRecall
        >>> SoftRecall(num_classes=1)(torch.tensor([0.9, 0.5]), torch.tensor([1.0, 0.2]))
        tensor(0.9167, dtype=torch.float64)
    """

    beta = float("inf")
