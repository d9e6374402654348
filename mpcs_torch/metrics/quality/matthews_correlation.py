"""MatthewsCorrelation: the Metric of `functional.matthews_correlation`."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.quality.class_counts import ClassCounts
from mpcs_torch.functional.quality.matthews_correlation import matthews_correlation_of
from mpcs_torch.metrics.quality.confusion import ConfusionMetric


class MatthewsCorrelation(ConfusionMetric):
    """Compute the multi-class Matthews correlation of decisions and labels; in [-1, 1], higher is better.

    Equation, shapes and rules are those of `mpcs_torch.functional.matthews_correlation`.

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
        >>> from mpcs_torch.metrics import MatthewsCorrelation
        >>> MatthewsCorrelation(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_lower_bound = -1.0
    interval_scale = "atanh"

    def __init__(
        self,
        num_classes: int,
        *,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())

    def averaged_classes(self, sums: ClassCounts) -> None:
        """Return None: classes count by their samples."""

    def value_of(self, sums: ClassCounts) -> Tensor:
        """Return the correlation."""
        return matthews_correlation_of(sums)
