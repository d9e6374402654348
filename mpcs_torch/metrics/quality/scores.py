"""Metrics of decisions, computed from the counts of each class, and ConfusionMatrix."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_matrix_fits
from mpcs_torch.functional.inputs.decisions import Decisions
from mpcs_torch.functional.quality.scores import (
    ClassCounts,
    check_quality_settings,
    class_error_rates_from_counts,
    count_classes,
    count_pairs,
    macro_f1_from_counts,
    matthews_correlation_from_counts,
    quality_from_counts,
)
from mpcs_torch.metrics.additive import DecisionMetric, Scale


class ClassCountMetric(DecisionMetric):
    """Count the samples, decisions and correct decisions of each class.

    In a `MetricCollection`, metrics with the same ``num_classes`` and ``ignore_index`` share the counts.
    """

    plot_upper_bound = 1.0
    sums_type = ClassCounts
    sum_samples = staticmethod(count_classes)
    interval_scale: Scale = "logit"
    row_bounds = (0, 1)

    def __init__(
        self, num_classes: int, *, ignore_index: int | None = None, validate_args: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(locals(), (3, num_classes))

    def ratio_from_sums(self, sums: ClassCounts, whole: ClassCounts) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the numbers of correct decisions and of samples, whose ratio is the accuracy."""
        return sums.right.sum(-1), sums.true.sum(-1)

    def averaged_classes(self, sums: ClassCounts) -> Tensor | None:
        """Return the number of samples of each class; most subclasses are averages over classes."""
        return sums.true

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the figure shows the counts
        from mpcs_torch.plots.bars import class_bars

        counts = self.sums()
        mean = (counts.right.sum() / counts.true.sum()).item()
        return class_bars((counts.right / counts.true).tolist(), mean, title, ylabel="recall", on=on)


class PairCounts(NamedTuple):
    """The number of samples, or sum of their weights, of each pair of true class and decision."""

    confusion: Tensor
    """(..., C, C): one row for each true class, one column for each decision."""


class ConfusionMatrix(DecisionMetric):
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

    higher_is_better = None
    sums_type = PairCounts

    def __init__(
        self, num_classes: int, *, ignore_index: int | None = None, validate_args: bool = True, **kwargs: Any
    ) -> None:
        check_matrix_fits(num_classes, 8)
        super().__init__(locals(), (num_classes, num_classes))

    def sum_samples(self, samples: Decisions) -> PairCounts:
        """Return the counts of all pairs of true class and decision."""
        return PairCounts(count_pairs(samples))

    def value_from_sums(self, sums: PairCounts) -> Tensor:
        """Return the matrix: (..., C, C)."""
        return sums.confusion

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # a title cannot show a matrix
        from mpcs_torch.plots.confusion import confusion_matrix

        names = [str(label) for label in range(self.num_classes)]
        return confusion_matrix(value, None, names, f"{type(self).__name__} of {value.sum():g} samples", on=on)


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

    higher_is_better = True
    interval_rule = "bounded"


class ClassErrorRates(ClassCountMetric):
    """Compute, for each class, the share of its samples that are misclassified; in [0, 1], lower is better.

    Shapes and rules are those of `mpcs_torch.functional.class_error_rates`. For arguments and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import ClassErrorRates
        >>> ClassErrorRates(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor([0.0000, 0.0000, 0.5000], dtype=torch.float64)
    """

    higher_is_better = False
    value_from_sums = staticmethod(class_error_rates_from_counts)


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

    higher_is_better = True
    value_from_sums = staticmethod(macro_f1_from_counts)


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

    higher_is_better = True
    value_from_sums = staticmethod(matthews_correlation_from_counts)
    plot_lower_bound = -1.0
    interval_scale = "atanh"

    def averaged_classes(self, sums: ClassCounts) -> None:
        """Return None, because the value is not an average over classes."""


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

    def value_from_sums(self, sums: ClassCounts) -> Any:
        """Return all quality metrics by name; from counts of shape (..., C), each has the shape (...)."""
        return quality_from_counts(sums, beta=self.beta, zero_division=self.zero_division)


class _OneQuality(MulticlassQualityMetrics):
    """The base of metrics that compute only one of the quality metrics.

    Arguments and errors are those of `MulticlassQualityMetrics`.
    """

    entry: str

    def value_from_sums(self, sums: ClassCounts) -> Tensor:
        """Return the quality metric with the name ``entry``."""
        value: Tensor = super().value_from_sums(sums)[self.entry]
        return value


class _OfAccuracy(_OneQuality):
    """The base of quality metrics that are functions of the accuracy (the share of right decisions)."""

    interval_rule = "bounded"

    def value_from_ratio(self, ratio: float, whole: ClassCounts) -> float:  # noqa: ARG002  # the same for any samples
        """Return the value of the metric for the accuracy ``ratio``."""
        counts = torch.eye(self.num_classes, dtype=torch.float64)[0]  # one sample, of class 0
        return self.value_from_sums(ClassCounts(torch.stack([ratio * counts, counts, counts]))).item()


class AverageAccuracy(_OfAccuracy):
    """Compute the accuracy of each class against the rest, averaged over classes; in [0, 1], higher is better.

    This value is far above the share of right decisions (`Accuracy`). The mean recall of all classes, which
    torchmetrics calls macro accuracy, is another value (`MacroRecall`).

    Example:
        >>> import torch
        >>> AverageAccuracy(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.8333, dtype=torch.float64)
    """

    entry, higher_is_better = "average_accuracy", True


class ErrorRate(_OfAccuracy):
    """Compute the mean one-vs-rest error rate of classes: 2 / C times the share of wrong decisions; lower is better.

    Example:
        >>> import torch
        >>> ErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.1667, dtype=torch.float64)
    """

    entry, higher_is_better = "error_rate", False


class MicroPrecision(_OfAccuracy):
    """Compute the precision over all classes together, which is the share of right decisions; higher is better.

    Example:
        >>> import torch
        >>> MicroPrecision(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    entry, higher_is_better = "micro_precision", True


class MicroRecall(_OfAccuracy):
    """Compute the recall over all classes together, which is the share of right decisions; higher is better.

    Example:
        >>> import torch
        >>> MicroRecall(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    entry, higher_is_better = "micro_recall", True


class MicroFScore(_OfAccuracy):
    """Compute the F-score of micro precision and micro recall; higher is better.

    If all decisions are wrong, the value is ``zero_division`` (NaN by default); otherwise, it is that of torchmetrics.

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
    """Compute the F-score of macro precision and macro recall; higher is better.

    The value is not the mean F of all classes, which torchmetrics and scikit-learn call macro F (`MacroF1`).

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
    """Compute the balanced error rate, the mean of the classes' error rates; lower is better.

    Example:
        >>> import torch
        >>> BalancedErrorRate(num_classes=3)(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]))
        tensor(0.1667, dtype=torch.float64)
    """

    entry, higher_is_better = "balanced_error_rate", False
