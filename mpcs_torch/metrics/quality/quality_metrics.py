"""Quality metrics by oneDAL's definitions: the Metrics of `functional.multiclass_quality_metrics`."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.quality.confusion import ClassCounts
from mpcs_torch.functional.quality.quality_metrics import check_quality_settings, quality_of
from mpcs_torch.metrics.quality.confusion import ClassCountMetric


class MulticlassQualityMetrics(ClassCountMetric):
    """Compute all quality metrics of a multi-class classifier at once, from the same counts.

    `compute` returns a dictionary of float64 scalars, named and defined as in
    `mpcs_torch.functional.multiclass_quality_metrics`. Other libraries define some of these names differently. To
    monitor a single value, use the class of that name (`MacroFScore`, ...); for the confusion matrix, use
    `ConfusionMatrix`. ``validate_args`` and errors are those of `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch import MulticlassQualityMetrics
        >>> quality = MulticlassQualityMetrics(num_classes=3)
        >>> quality.update(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        >>> print(f"{quality.compute()['macro_fscore']:.4f}")
        0.8333
    """

    higher_is_better: bool | None = None

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
        check_quality_settings(beta, zero_division)
        super().__init__(num_classes, ignore_index=ignore_index, validate_args=validate_args, **kwargs)
        self.beta, self.zero_division = beta, zero_division

    def value_of(self, sums: ClassCounts) -> Any:
        """Return all quality metrics by name, each of shape (...), from counts (..., C)."""
        return quality_of(sums, beta=self.beta, zero_division=self.zero_division)


class _OneQuality(MulticlassQualityMetrics):
    """The base of metrics that compute only one of the quality metrics.

    Arguments and errors are those of `MulticlassQualityMetrics`.
    """

    entry: str

    def value_of(self, sums: ClassCounts) -> Tensor:
        """Return the quality metric with the name ``entry``."""
        value: Tensor = super().value_of(sums)[self.entry]
        return value


class _OfAccuracy(_OneQuality):
    """The base of quality metrics that are functions of the accuracy (the share of right decisions)."""

    interval_rule = "bounded"

    def of_ratio(self, ratio: float, whole: ClassCounts) -> float:  # noqa: ARG002  # the same for any samples
        """Return the value of the metric for the accuracy ``ratio``."""
        counts = torch.eye(self.num_classes, dtype=torch.float64)[0]  # one sample, of class 0
        return self.value_of(ClassCounts(torch.stack([ratio * counts, counts, counts]))).item()


class AverageAccuracy(_OfAccuracy):
    """Compute 1 minus the Hamming loss of the one-hot labels; in [0, 1], higher is better.

    This value is far above the share of right decisions (`Accuracy`). It is not the mean recall of all classes, which
    torchmetrics calls macro accuracy.

    Example:
        >>> import torch
        >>> AverageAccuracy(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    entry, higher_is_better = "average_accuracy", True


class ErrorRate(_OfAccuracy):
    """Compute 1 minus `AverageAccuracy`, 2 / C times the share of wrong decisions; lower is better.

    Example:
        >>> import torch
        >>> ErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.1667, dtype=torch.float64)
    """

    entry, higher_is_better = "error_rate", False


class MicroPrecision(_OfAccuracy):
    """Compute the precision of all classes together, the share of right decisions; higher is better.

    Example:
        >>> import torch
        >>> MicroPrecision(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    entry, higher_is_better = "micro_precision", True


class MicroRecall(_OfAccuracy):
    """Compute the recall of all classes together, the share of right decisions; higher is better.

    Example:
        >>> import torch
        >>> MicroRecall(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    entry, higher_is_better = "micro_recall", True


class MicroFScore(_OfAccuracy):
    """Compute the F of micro precision and micro recall; higher is better.

    It is the same as in torchmetrics, but NaN if all decisions are wrong (0 with another ``zero_division``).

    Example:
        >>> import torch
        >>> MicroFScore(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    entry, higher_is_better = "micro_fscore", True


class MacroPrecision(_OneQuality):
    """Compute the mean precision of all C classes; higher is better.

    The value is NaN if a class is never predicted; torchmetrics counts such a class as 0, or leaves it out.

    Example:
        >>> import torch
        >>> MacroPrecision(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    entry, higher_is_better = "macro_precision", True


class MacroRecall(_OneQuality):
    """Compute the mean recall of all C classes; higher is better.

    The value is NaN if a class never occurs; torchmetrics leaves such a class out.

    Example:
        >>> import torch
        >>> MacroRecall(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    entry, higher_is_better = "macro_recall", True


class MacroFScore(_OneQuality):
    """Compute the F of macro precision and macro recall; higher is better.

    It is not the mean F of all classes, which torchmetrics and scikit-learn call macro F (`MacroF1`).

    Example:
        >>> import torch
        >>> MacroFScore(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    entry, higher_is_better = "macro_fscore", True


class WeightedErrorRate(_OfAccuracy):
    """Compute the share of wrong decisions; lower is better.

    Example:
        >>> import torch
        >>> WeightedErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.2500, dtype=torch.float64)
    """

    entry, higher_is_better = "weighted_error_rate", False


class BalancedErrorRate(_OneQuality):
    """Compute the mean of the classes' error rates, 1 minus `MacroRecall`; lower is better.

    Example:
        >>> import torch
        >>> BalancedErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.1667, dtype=torch.float64)
    """

    entry, higher_is_better = "balanced_error_rate", False
