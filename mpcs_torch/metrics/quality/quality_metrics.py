"""Quality metrics by oneDAL's definitions: shells over `functional.multiclass_quality_metrics`."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.decisions import decided_rules, flatten_decided
from mpcs_torch.functional.quality.confusion import count_pairs
from mpcs_torch.functional.quality.quality_metrics import (
    MulticlassQuality,
    check_quality_settings,
    class_error_rates,
    quality_of,
)
from mpcs_torch.metrics.base import SumMetric


class _Quality(SumMetric):
    """A confusion matrix, and what is read from it."""

    confusion: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        beta: float = 1.0,
        zero_division: float = float("nan"),
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_quality_settings(num_classes, beta, zero_division)
        super().__init__(
            locals(), value_rules=decided_rules(num_classes), state_settings=("num_classes", "ignore_index")
        )
        self.add_sum("confusion", shape=(num_classes, num_classes), dtype=torch.int64)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, ...) classes or (N, C, ...) scores, target (N, ...)."""
        decided = flatten_decided(preds, target, num_classes=self.num_classes, ignore_index=self.ignore_index)
        self.admit(decided.faults)
        self.confusion = self.confusion + count_pairs(decided, self.num_classes)

    def quality(self) -> MulticlassQuality:
        """All values of what was seen."""
        self.check_computable()
        return quality_of(self.confusion, beta=self.beta, zero_division=self.zero_division)


class MulticlassQualityMetrics(_Quality):
    """All quality metrics of a multi-class classifier at once, from one confusion matrix.

    `compute` gives a dictionary of float64 scalars, named and defined as in
    `mpcs_torch.functional.multiclass_quality_metrics`; some differ from what other libraries call so. The counts stand
    in ``confusion``, int64 (C, C), rows true classes. To monitor one value, take its own class (`MacroFScore`, ...).

    Args:
        num_classes: C, at least 2.
        beta: Weight > 0 of recall against precision in F.
        zero_division: What 0 / 0 gives: NaN (oneDAL's), 0 or 1.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to look for bad values in batches. Without, they are counted for other classes silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch import MulticlassQualityMetrics
        >>> quality = MulticlassQualityMetrics(num_classes=3)
        >>> quality.update(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        >>> print(f"{quality.compute()['macro_fscore']:.4f}")
        0.8333
    """

    higher_is_better = None

    def compute(self) -> dict[str, Tensor]:
        """All values by name."""
        return self.quality()._asdict()


class ClassErrorRates(_Quality):
    """Share of each class's samples that are misclassified: float64 (C,), NaN for a class without samples.

    Lower is better. Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import ClassErrorRates
        >>> rates = ClassErrorRates(num_classes=3)
        >>> rates(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor([0.0000, 0.0000, 0.5000], dtype=torch.float64)
    """

    def compute(self) -> Tensor:
        """The error rate of each class."""
        self.check_computable()
        return class_error_rates(self.confusion)


class OneQuality(_Quality):
    """One of the values."""

    field: str

    def compute(self) -> Tensor:
        """The value, a float64 scalar."""
        value: Tensor = getattr(self.quality(), self.field)
        return value
