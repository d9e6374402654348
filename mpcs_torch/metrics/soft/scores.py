"""Soft precision, recall and F: the Metrics of `functional.soft_fbeta` and its special cases."""

from typing import Any

from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.functional.inputs.soft_labels import SoftSamples
from mpcs_torch.functional.soft.sums import SoftAverage, SoftSums, TNorm, check_beta, soft_sums
from mpcs_torch.metrics.soft.base import SoftScore


class _TNormScore(SoftScore):
    """Hold sums of degrees of truth, with the intersection that the setting names."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        check_choice("t_norm", arguments["t_norm"], TNorm)
        super().__init__(arguments, ("num_classes", "t_norm"))

    def sums_of(self, samples: SoftSamples) -> SoftSums:
        """Return the sums of a batch."""
        return soft_sums(samples, widest_float(samples.predicted.device), self.t_norm)


class SoftFBeta(_TNormScore):
    """Compute the F of soft precision and recall, for labels that are degrees of truth; in [0, 1], higher is better.

    The equation, shapes and rules are those of `mpcs_torch.functional.soft_fbeta`.

    Args:
        num_classes: C; 1 for predictions of shape ``(N,)``.
        beta: Weight > 0 of recall against precision.
        average: ``"micro"`` over all elements, ``"macro"`` for the mean of the classes' values, ``"weighted"`` by how
            much of each class is true, or ``"none"`` for (C,).
        zero_division: The value of 0 / 0: 0, 1 or NaN.
        t_norm: The intersection of fuzzy sets: ``"minimum"``, ``"product"`` or ``"lukasiewicz"``.
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
        t_norm: TNorm = "minimum",
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_beta(beta)
        super().__init__(locals())


class _FixedBeta(_TNormScore):
    """Compute F for a fixed beta."""

    def __init__(
        self,
        num_classes: int,
        *,
        average: SoftAverage = "micro",
        zero_division: float = 0.0,
        t_norm: TNorm = "minimum",
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
