"""MacroF1: the Metric of `functional.macro_f1`."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.quality.class_counts import ClassCounts
from mpcs_torch.functional.quality.macro_f1 import macro_f1_of
from mpcs_torch.metrics.quality.confusion import ConfusionMetric


class MacroF1(ConfusionMetric):
    """Compute the mean F1 of the classes that occur, as true or as predicted; in [0, 1], higher is better.

    The same as torchmetrics' and scikit-learn's macro F1; oneDAL's macro F is `MacroFScore`. Equation, shapes and rules
    are those of `mpcs_torch.functional.macro_f1`.

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
        >>> from mpcs_torch.metrics import MacroF1
        >>> MacroF1(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7778, dtype=torch.float64)
    """

    higher_is_better = True

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
        """Return the mean F1, NaN without samples."""
        return macro_f1_of(sums)
