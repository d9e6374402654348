"""ClassErrorRates: the Metric of `functional.class_error_rates`."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.quality.class_counts import ClassCounts
from mpcs_torch.functional.quality.class_error_rates import class_error_rates_of
from mpcs_torch.metrics.quality.confusion import ConfusionMetric


class ClassErrorRates(ConfusionMetric):
    """Compute the share of each class's samples that are misclassified; in [0, 1], lower is better.

    Shapes and rules are those of `mpcs_torch.functional.class_error_rates`.

    Args:
        num_classes: C, at least 2.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import ClassErrorRates
        >>> ClassErrorRates(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor([0.0000, 0.0000, 0.5000], dtype=torch.float64)
    """

    higher_is_better = False

    def __init__(
        self,
        num_classes: int,
        *,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())

    def value_of(self, sums: ClassCounts) -> Tensor:
        """Return the error rate of each class: (..., C), NaN for a class without samples."""
        return class_error_rates_of(sums)
