"""HardF1: the Metric of `functional.hard_f1`."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.soft_labels import SoftSamples
from mpcs_torch.functional.soft.hard import check_threshold, hard_sums
from mpcs_torch.functional.soft.sums import SoftAverage, SoftSums
from mpcs_torch.metrics.soft.base import SoftScore


class HardF1(SoftScore):
    """Compute the F1 of predictions above a threshold against labels above 0.5; in [0, 1], higher is better.

    Shapes and rules are those of `mpcs_torch.functional.hard_f1`.

    Args:
        num_classes: C; 1 for predictions of shape ``(N,)``.
        threshold: A prediction above it is positive: a number, or ``(C,)`` with one for each class.
        average: ``"micro"`` over all elements, ``"macro"`` for the mean of the classes' values, ``"weighted"`` by the
            number of positive labels, or ``"none"`` for (C,).
        zero_division: The value of 0 / 0: 0, 1 or NaN.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import HardF1
        >>> HardF1(num_classes=1)(torch.tensor([0.9, 0.6, 0.1]), torch.tensor([1.0, 0.2, 0.0]))
        tensor(0.6667, dtype=torch.float64)
    """

    beta = 1.0

    def __init__(
        self,
        num_classes: int,
        *,
        threshold: float | Tensor = 0.5,
        average: SoftAverage = "micro",
        zero_division: float = 0.0,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_threshold(threshold, num_classes)
        super().__init__(locals(), ("num_classes", "threshold"))

    def sums_of(self, samples: SoftSamples) -> SoftSums:
        """Return the sums of a batch."""
        return hard_sums(samples, self.threshold)
