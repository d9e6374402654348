"""Each quality metric on its own, for schedulers, selectors and collections that monitor one value."""

from mpcs_torch.metrics.quality.quality_metrics import OneQuality


class AverageAccuracy(OneQuality):
    """Mean over classes of the share of samples that are rightly taken for the class or not; higher is better.

    1 minus the Hamming loss of the one-hot labels: far above the share of right predictions, which torchmetrics calls
    micro accuracy, and not the mean of the classes' recalls, which it calls macro accuracy.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import AverageAccuracy
        >>> AverageAccuracy(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    field = "average_accuracy"
    higher_is_better = True


class ErrorRate(OneQuality):
    """1 minus `AverageAccuracy`; lower is better.

    With C classes, 2 / C times the share of wrong predictions.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import ErrorRate
        >>> ErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.1667, dtype=torch.float64)
    """

    field = "error_rate"
    higher_is_better = False


class MicroPrecision(OneQuality):
    """Share of right predictions, as precision of all classes together; higher is better.

    The same number as torchmetrics' micro precision.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MicroPrecision
        >>> MicroPrecision(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    field = "micro_precision"
    higher_is_better = True


class MicroRecall(OneQuality):
    """Share of right predictions, as recall of all classes together; higher is better.

    The same number as torchmetrics' micro recall.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MicroRecall
        >>> MicroRecall(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    field = "micro_recall"
    higher_is_better = True


class MicroFScore(OneQuality):
    """F of micro precision and micro recall; higher is better.

    The same number as torchmetrics' micro F, but NaN where all predictions are wrong (0 with another zero_division).
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MicroFScore
        >>> MicroFScore(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    field = "micro_fscore"
    higher_is_better = True


class MacroPrecision(OneQuality):
    """Mean over all classes of the share of right ones among their predictions; higher is better.

    NaN if a class is never predicted; torchmetrics counts such a class as 0, or leaves it out.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MacroPrecision
        >>> MacroPrecision(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    field = "macro_precision"
    higher_is_better = True


class MacroRecall(OneQuality):
    """Mean over all classes of the share of right ones among their samples; higher is better.

    NaN if a class never occurs; torchmetrics leaves such a class out.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MacroRecall
        >>> MacroRecall(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    field = "macro_recall"
    higher_is_better = True


class MacroFScore(OneQuality):
    """F of macro precision and macro recall; higher is better.

    Not the mean of the classes' F, which torchmetrics and scikit-learn call macro F.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MacroFScore
        >>> MacroFScore(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    field = "macro_fscore"
    higher_is_better = True


class WeightedErrorRate(OneQuality):
    """Share of wrong predictions; lower is better.

    1 minus torchmetrics' micro accuracy.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import WeightedErrorRate
        >>> WeightedErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.2500, dtype=torch.float64)
    """

    field = "weighted_error_rate"
    higher_is_better = False


class BalancedErrorRate(OneQuality):
    """Mean of the classes' error rates; lower is better.

    1 minus `MacroRecall`.
    Arguments and errors are those of `MulticlassQualityMetrics`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import BalancedErrorRate
        >>> BalancedErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.1667, dtype=torch.float64)
    """

    field = "balanced_error_rate"
    higher_is_better = False
