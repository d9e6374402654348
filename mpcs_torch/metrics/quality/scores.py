"""Metrics of decisions, computed from the counts of each class, and ConfusionMatrix."""

from typing import Any

from mpcs_torch.functional.quality import scores as measures
from mpcs_torch.metrics.measure_metric import MeasureMetric


class ClassCountMetric(MeasureMetric):
    """The base of metrics of counts of decisions: by default, those of each class."""

    def __init__(
        self,
        num_classes: int,
        *,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(self.of(num_classes, ignore_index), validate_args, kwargs)

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the figure shows the counts
        from mpcs_torch.plots.bars import class_bars

        counts = self.named_sums()
        mean = (counts.right.sum() / counts.true.sum()).item()
        return class_bars(
            (counts.right / counts.true).tolist(), mean, title, ylabel="recall", on=on
        )


class ConfusionMatrix(ClassCountMetric):
    """Compute the confusion matrix of decisions: ``(C, C)``, float64, rows true classes, columns decisions.

    Entries are numbers of samples, or sums of their weights. Shapes and rules are those of
    `mpcs_torch.functional.confusion_matrix`. For arguments and errors see `Accuracy`. The matrix is limited to 2 GiB.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import ConfusionMatrix
        >>> ConfusionMatrix(num_classes=2)(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]))
        tensor([[1., 1.],
                [0., 1.]], dtype=torch.float64)
    """

    of = measures.ConfusionMatrix

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # a title cannot show a matrix
        from mpcs_torch.plots.confusion import confusion_matrix

        names = [str(label) for label in range(self.num_classes)]
        return confusion_matrix(
            value, None, names, f"{type(self).__name__} of {value.sum():g} samples", on=on
        )


class Accuracy(ClassCountMetric):
    """Compute the share of right decisions; in [0, 1], higher is better.

    Shapes and rules are those of `mpcs_torch.functional.accuracy`.

    Args:
        num_classes: C, at least 2.
        ignore_index: The label of samples to leave out.
        validate_args: Whether to check the values of each batch. If False, invalid values silently give wrong results.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument is invalid, and from `compute` if there was
            no batch. On other devices than the CPU, `compute` raises the error for invalid values.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Accuracy
        >>> Accuracy(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    of = measures.Accuracy


class ClassErrorRates(ClassCountMetric):
    """Compute, for each class, the share of its samples that are misclassified; in [0, 1], lower is better.

    Shapes and rules are those of `mpcs_torch.functional.class_error_rates`. For arguments and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import ClassErrorRates
        >>> ClassErrorRates(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor([0.0000, 0.0000, 0.5000], dtype=torch.float64)
    """

    of = measures.ClassErrorRates


class MacroF1(ClassCountMetric):
    """Compute the mean F1 over classes with true or predicted samples; in [0, 1], higher is better.

    This is macro F1 as in torchmetrics and scikit-learn; `MacroFScore` is oneDAL's macro F. The equation, shapes and
    rules are those of `mpcs_torch.functional.macro_f1`. For arguments and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MacroF1
        >>> MacroF1(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7778, dtype=torch.float64)
    """

    of = measures.MacroF1


class MatthewsCorrelation(ClassCountMetric):
    """Compute the multi-class Matthews correlation of decisions and labels; in [-1, 1], higher is better.

    The equation, shapes and rules are those of `mpcs_torch.functional.matthews_correlation`. For arguments and errors
    see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import MatthewsCorrelation
        >>> MatthewsCorrelation(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7000, dtype=torch.float64)
    """

    of = measures.MatthewsCorrelation


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

    of = measures.MulticlassQualityMetrics

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
        MeasureMetric.__init__(
            self,
            self.of(num_classes, ignore_index, beta, zero_division),
            validate_args,
            kwargs,
        )


class AverageAccuracy(MulticlassQualityMetrics):
    """Compute the accuracy of each class against the rest, averaged over classes; in [0, 1], higher is better.

    This value is far above the share of right decisions (`Accuracy`). The mean recall of all classes, which
    torchmetrics calls macro accuracy, is another value (`MacroRecall`).

    Example:
        >>> import torch
        >>> AverageAccuracy(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    of = measures.AverageAccuracy


class ErrorRate(MulticlassQualityMetrics):
    """Compute the mean one-vs-rest error rate of classes: 2 / C times the share of wrong decisions; lower is better.

    Example:
        >>> import torch
        >>> ErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.1667, dtype=torch.float64)
    """

    of = measures.ErrorRate


class MicroPrecision(MulticlassQualityMetrics):
    """Compute the precision over all classes together, which is the share of right decisions; higher is better.

    Example:
        >>> import torch
        >>> MicroPrecision(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    of = measures.MicroPrecision


class MicroRecall(MulticlassQualityMetrics):
    """Compute the recall over all classes together, which is the share of right decisions; higher is better.

    Example:
        >>> import torch
        >>> MicroRecall(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    of = measures.MicroRecall


class MicroFScore(MulticlassQualityMetrics):
    """Compute the F-score of micro precision and micro recall; higher is better.

    If all decisions are wrong, the value is ``zero_division`` (NaN by default); otherwise, it is that of torchmetrics.

    Example:
        >>> import torch
        >>> MicroFScore(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    of = measures.MicroFScore


class MacroPrecision(MulticlassQualityMetrics):
    """Compute the mean precision of all C classes; higher is better.

    The value is NaN if a class is never predicted; torchmetrics counts such a class as 0, or leaves it out.

    Example:
        >>> import torch
        >>> MacroPrecision(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    of = measures.MacroPrecision


class MacroRecall(MulticlassQualityMetrics):
    """Compute the mean recall of all C classes; higher is better.

    The value is NaN if a class never occurs; torchmetrics leaves such a class out.

    Example:
        >>> import torch
        >>> MacroRecall(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    of = measures.MacroRecall


class MacroFScore(MulticlassQualityMetrics):
    """Compute the F-score of macro precision and macro recall; higher is better.

    The value is not the mean F of all classes, which torchmetrics and scikit-learn call macro F (`MacroF1`).

    Example:
        >>> import torch
        >>> MacroFScore(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    of = measures.MacroFScore


class WeightedErrorRate(MulticlassQualityMetrics):
    """Compute the share of wrong decisions; lower is better.

    Example:
        >>> import torch
        >>> WeightedErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.2500, dtype=torch.float64)
    """

    of = measures.WeightedErrorRate


class BalancedErrorRate(MulticlassQualityMetrics):
    """Compute the balanced error rate, the mean of the classes' error rates; lower is better.

    Example:
        >>> import torch
        >>> BalancedErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.1667, dtype=torch.float64)
    """

    of = measures.BalancedErrorRate
