"""The confusion matrix of decisions, and scores such as accuracy, F1 and Matthews correlation."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan, nan
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import (
    check_beta,
    check_matrix_fits,
    check_zero_division,
)
from mpcs_torch.functional.inputs.decisions import Decisions
from mpcs_torch.functional.inputs.labels import Term, WeightedSum
from mpcs_torch.functional.measure import DecisionMeasure, Direction, RatioOfBins


class ClassCounts(NamedTuple):
    """Weighted numbers for each class: (..., C) each, float64 (float32 on MPS)."""

    right: Tensor
    """The number of correct decisions for the class."""
    true: Tensor
    """The number of samples of the class."""
    predicted: Tensor
    """The number of decisions for the class."""


class PairCounts(NamedTuple):
    """The number of samples, or sum of their weights, of each pair of true class and decision."""

    confusion: Tensor
    """(..., C, C): one row for each true class, one column for each decision."""


class DistanceCounts(NamedTuple):
    """Weighted numbers for each class, where classes are in an order: (..., C) each."""

    squared_distances: Tensor
    """The sum over the samples of the class of the squared number of classes from it to the decision."""
    true: Tensor
    """The number of samples of the class."""
    predicted: Tensor
    """The number of decisions for the class."""


@dataclass(eq=False)
class ConfusionMatrix(DecisionMeasure):
    """The measure of `confusion_matrix`."""

    sums_type = PairCounts
    direction = None

    def __post_init__(self) -> None:
        """Check that the matrix fits into memory."""
        check_matrix_fits(self.num_classes, 8)
        super().__post_init__()

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the matrix."""
        return (self.num_classes, self.num_classes)

    def terms(self, rows: Decisions) -> Sequence[Term]:
        """Return 1 for each pair of true class and decision."""
        return (Term(rows.labels.target * self.num_classes + rows.predicted),)

    def value(self, sums: PairCounts) -> Tensor:
        """Return the matrix."""
        return sums.confusion

    def row_influences(self, slopes: PairCounts, sums: PairCounts) -> tuple[Tensor, Tensor]:
        """Return the influence of a sample by its class and its decision, and the number of samples of each class."""
        return slopes.confusion, sums.confusion.sum(-1)


@dataclass(eq=False)
class ClassCountMeasure(DecisionMeasure):
    """A measure of the counts of each class."""

    sums_type = ClassCounts
    limits = (0.0, 1.0)
    direction: ClassVar[Direction | None] = "max"
    row_limits = (0, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the counts."""
        return (self.num_classes,)

    def terms(self, rows: Decisions) -> Sequence[Term]:
        """Return whether the decision is right at the true class, 1 at the true class, and 1 at the decision."""
        true = rows.labels.target
        return Term(true, rows.predicted == true), Term(true), Term(rows.predicted)

    def ratio(self, sums: ClassCounts, whole: ClassCounts) -> RatioOfBins:  # noqa: ARG002
        """Return the numbers of correct decisions and of samples, whose ratio is the accuracy."""
        return sums.right.sum(-1), sums.true.sum(-1)

    def averaged_classes(self, sums: ClassCounts) -> Tensor | None:
        """Return the number of samples of each class; most subclasses are averages over classes."""
        return sums.true

    def row_influences(
        self, slopes: ClassCounts, sums: ClassCounts
    ) -> tuple[Tensor, Tensor]:
        """Return the influence of a sample by its class and its decision, and the number of samples of each class."""
        influences = slopes.true.unsqueeze(1) + slopes.predicted + slopes.right.diag()
        return influences, sums.true


@dataclass(eq=False)
class Accuracy(ClassCountMeasure):
    """The measure of `accuracy`."""

    interval_rule = "bounded"


@dataclass(eq=False)
class ClassErrorRates(ClassCountMeasure):
    """The measure of `class_error_rates`."""

    direction = "min"

    def value(self, sums: ClassCounts) -> Tensor:
        """Return the error rate of each class: (..., C)."""
        return 1 - sums.right / sums.true


def _class_f1(sums: ClassCounts) -> Tensor:
    """Return the F1 of each class, (..., C); 0 for a class that does not occur."""
    occurrences = sums.true + sums.predicted
    return 2 * sums.right / torch.where(occurrences > 0, occurrences, 1)


@dataclass(eq=False)
class MacroF1(ClassCountMeasure):
    """The measure of `macro_f1`."""

    def value(self, sums: ClassCounts) -> Tensor:
        """Return the mean F1 over the classes that occur."""
        occurs = sums.true + sums.predicted > 0
        return _class_f1(sums).sum(-1) / occurs.sum(-1)


@dataclass(eq=False)
class WeightedF1(ClassCountMeasure):
    """The mean F1 over classes, weighted by their samples, as ``MulticlassF1Score(average="weighted")``."""

    def value(self, sums: ClassCounts) -> Tensor:
        """Return the mean F1; NaN without samples."""
        return (sums.true * _class_f1(sums)).sum(-1) / sums.true.sum(-1)

    def averaged_classes(self, sums: ClassCounts) -> None:
        """Return None, because a class without samples has no weight."""


@dataclass(eq=False)
class MatthewsCorrelation(ClassCountMeasure):
    """The measure of `matthews_correlation`."""

    limits = (-1.0, 1.0)

    def value(self, sums: ClassCounts) -> Tensor:
        """Return the correlation; 0 if it is 0 / 0."""
        right, true, predicted = sums
        total = true.sum(-1)
        covariance = right.sum(-1) * total - (true * predicted).sum(-1)
        of_true = total**2 - true.square().sum(-1)
        of_predicted = total**2 - predicted.square().sum(-1)
        spread = of_true * of_predicted
        is_defined = spread > 0
        correlation = covariance / torch.where(is_defined, spread, 1.0).sqrt()
        return torch.where(is_defined, correlation, 0.0)

    def averaged_classes(self, sums: ClassCounts) -> None:
        """Return None, because the value is not an average over classes."""


@dataclass(eq=False)
class QuadraticWeightedKappa(DecisionMeasure):
    """Cohen's kappa of classes in an order, as ``MulticlassCohenKappa(weights="quadratic")``."""

    sums_type = DistanceCounts
    limits = (-1.0, 1.0)
    direction = "max"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the sums."""
        return (self.num_classes,)

    def terms(self, rows: Decisions) -> Sequence[Term]:
        """Return the squared distance at the true class, 1 at the true class, and 1 at the decision."""
        true = rows.labels.target
        distance = (rows.predicted - true).square()
        return Term(true, distance), Term(true), Term(rows.predicted)

    def value(self, sums: DistanceCounts) -> Tensor:
        """Return 1 minus the sum of squared distances, divided by that of independent decisions and labels."""
        distances, true, predicted = sums
        classes = torch.arange(self.num_classes).to(true)
        total = true.sum(-1)
        # This is the sum of n_i m_j (i - j)^2 / N over the classes i and j, without a matrix of them.
        means = (true @ classes / total, predicted @ classes / total)
        of_true = true @ classes.square() / total - means[0].square()
        of_decisions = predicted @ classes.square() / total - means[1].square()
        by_chance = of_true + of_decisions + (means[0] - means[1]).square()
        return 1 - distances.sum(-1) / (total * by_chance)

    def row_influences(
        self, slopes: DistanceCounts, sums: DistanceCounts
    ) -> tuple[Tensor, Tensor]:
        """Return the influence of a sample by its class and its decision, and the number of samples of each class."""
        classes = torch.arange(self.num_classes).to(slopes.true)
        distances = (classes.unsqueeze(1) - classes).square()
        of_distances = slopes.squared_distances.unsqueeze(1) * distances
        return slopes.true.unsqueeze(1) + slopes.predicted + of_distances, sums.true


@dataclass(eq=False)
class MulticlassQualityMetrics(ClassCountMeasure):
    """The measure of `multiclass_quality_metrics`."""

    beta: float = 1.0
    zero_division: float = float("nan")

    direction: ClassVar[Direction | None] = None

    def __post_init__(self) -> None:
        """Check that ``beta`` is finite and above 0, and that ``zero_division`` is NaN, 0 or 1."""
        check_beta(self.beta)
        check_zero_division(self.zero_division)
        super().__post_init__()

    def value(self, sums: ClassCounts) -> Any:
        """Return all quality metrics by name; from counts of shape (..., C), each has the shape (...)."""
        all_right = sums.right.sum(-1)
        total = sums.true.sum(-1)
        accuracy = _divide(all_right, total, self.zero_division)
        precision = _divide(sums.right, sums.predicted, self.zero_division).mean(-1)
        recall = _divide(sums.right, sums.true, self.zero_division).mean(-1)
        # A wrong sample is a false negative of its class and a false positive of another.
        error_rate = 2 * (total - all_right) / (total * sums.right.shape[-1])
        return {
            "average_accuracy": 1 - error_rate,
            "error_rate": error_rate,
            "micro_precision": accuracy,
            "micro_recall": accuracy,
            "micro_fscore": self._fscore(accuracy, accuracy),
            "macro_precision": precision,
            "macro_recall": recall,
            "macro_fscore": self._fscore(precision, recall),
            "weighted_error_rate": 1 - accuracy,
            "balanced_error_rate": 1 - recall,
        }

    def _fscore(self, precision: Tensor, recall: Tensor) -> Tensor:
        zero_fscore = nan if isnan(self.zero_division) else 0.0
        squared = self.beta**2
        numerator = (1 + squared) * precision * recall
        return _divide(numerator, squared * precision + recall, zero_fscore)


class OneQuality(MulticlassQualityMetrics):
    """A measure of one of the quality metrics."""

    entry: ClassVar[str]
    """Its name among the `multiclass_quality_metrics`."""

    def value(self, sums: ClassCounts) -> Tensor:
        """Return the quality metric with the name ``entry``."""
        value: Tensor = super().value(sums)[self.entry]
        return value


class OfAccuracy(OneQuality):
    """A measure of a quality metric that is a function of the accuracy (the share of right decisions)."""

    interval_rule = "bounded"

    def value_from_ratio(self, ratio: float, whole: ClassCounts) -> float:  # noqa: ARG002  # the same for any samples
        """Return the value of the metric for the accuracy ``ratio``."""
        # One sample of class 0, whose decision is right to the degree ``ratio``.
        counts = torch.eye(self.num_classes, dtype=torch.float64)[0]
        return self.value(ClassCounts(ratio * counts, counts, counts)).item()


class AverageAccuracy(OfAccuracy):
    """The measure of ``average_accuracy``."""

    entry = "average_accuracy"
    direction = "max"


class ErrorRate(OfAccuracy):
    """The measure of ``error_rate``."""

    entry = "error_rate"
    direction = "min"


class MicroPrecision(OfAccuracy):
    """The measure of ``micro_precision``."""

    entry = "micro_precision"
    direction = "max"


class MicroRecall(OfAccuracy):
    """The measure of ``micro_recall``."""

    entry = "micro_recall"
    direction = "max"


class MicroFScore(OfAccuracy):
    """The measure of ``micro_fscore``."""

    entry = "micro_fscore"
    direction = "max"


class MacroPrecision(OneQuality):
    """The measure of ``macro_precision``."""

    entry = "macro_precision"
    direction = "max"


class MacroRecall(OneQuality):
    """The measure of ``macro_recall``."""

    entry = "macro_recall"
    direction = "max"


class MacroFScore(OneQuality):
    """The measure of ``macro_fscore``."""

    entry = "macro_fscore"
    direction = "max"


class WeightedErrorRate(OfAccuracy):
    """The measure of ``weighted_error_rate``."""

    entry = "weighted_error_rate"
    direction = "min"


class BalancedErrorRate(OneQuality):
    """The measure of ``balanced_error_rate``."""

    entry = "balanced_error_rate"
    direction = "min"


Rate = Literal["recall", "specificity", "precision"]


@dataclass(eq=False)
class ClassRate(DecisionMeasure):
    """The recall, specificity or precision of a group of classes; in [0, 1], higher is better.

    A decision for any class of the group is correct if the true class is in the group.
    """

    classes: Sequence[int] = ()
    """The indices of the classes in the group."""
    rate: Rate = "recall"

    sums_type = WeightedSum
    sums_settings = ("num_classes", "ignore_index", "classes", "rate")
    direction = "max"
    limits = (0.0, 1.0)
    interval_rule = "bounded"
    row_limits = (0, 1)

    def terms(self, rows: Decisions) -> Sequence[Term]:
        """Return whether a row counts in the numerator and in the denominator of the rate."""
        true = is_in(rows.labels.target, self.classes)
        predicted = is_in(rows.predicted, self.classes)
        counted = {"recall": true, "specificity": ~true, "precision": predicted}[self.rate]
        is_right = true == predicted
        return Term(number=counted & is_right), Term(number=counted)


def is_in(labels: Tensor, classes: Sequence[int]) -> Tensor:
    """Return whether each label is one of the classes."""
    return torch.isin(labels, torch.tensor(classes, device=labels.device))


def confusion_matrix(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Count the samples, or sum their weights, for each pair of true class and predicted class.

    Arguments and errors are those of `accuracy`. The matrix is limited to 2 GiB.

    Returns:
        ``(C, C)``, float64 (float32 on MPS); rows are true classes, and columns predicted ones.

    Example:
        >>> confusion_matrix(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]), num_classes=2)
        tensor([[1., 1.],
                [0., 1.]], dtype=torch.float64)
    """
    return ConfusionMatrix(num_classes, ignore_index)(preds, target, sample_weight)


def accuracy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the share of right decisions; in [0, 1], higher is better.

    It differs from the ``average_accuracy`` of `multiclass_quality_metrics`.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties go to the lower class index).
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Example:
        >>> import torch
        >>> accuracy(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7500, dtype=torch.float64)
    """
    return Accuracy(num_classes, ignore_index)(preds, target, sample_weight)


def class_error_rates(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute for each class the share of its samples that are misclassified; in [0, 1], lower is better.

    Arguments and errors are those of `accuracy`.

    Returns:
        Float64 ``(C,)`` (float32 on MPS); NaN for a class without samples.

    Example:
        >>> import torch
        >>> class_error_rates(torch.tensor([0, 0, 0, 1, 1]), torch.tensor([0, 0, 0, 0, 1]), num_classes=2)
        tensor([0.2500, 0.0000], dtype=torch.float64)
    """
    return ClassErrorRates(num_classes, ignore_index)(preds, target, sample_weight)


def macro_f1(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean F1 over classes with true or predicted samples; in [0, 1], higher is better.

    .. math:: \frac{1}{|K|} \sum_{c \in K} \frac{2 tp_c}{2 tp_c + fp_c + fn_c}

    This is the macro F1 of torchmetrics and scikit-learn. K are the classes that occur in labels or decisions. The
    ``macro_fscore`` of `multiclass_quality_metrics` is another value: the F score of macro precision and macro recall.
    Arguments, result and errors are those of `accuracy`.

    Example:
        >>> macro_f1(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7778, dtype=torch.float64)
    """
    return MacroF1(num_classes, ignore_index)(preds, target, sample_weight)


def matthews_correlation(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the multi-class Matthews correlation of decisions and labels; in [-1, 1], higher is better.

    With :math:`n` samples, :math:`t_c` of class c, :math:`p_c` decisions for c, and :math:`r` right decisions:

    .. math:: \frac{r n - \sum_c t_c p_c}{\sqrt{(n^2 - \sum_c t_c^2) (n^2 - \sum_c p_c^2)}}

    Arguments and errors are those of `accuracy`.

    Returns:
        A float64 scalar (float32 on MPS); 0 if the equation is 0 / 0, for example if only one class is predicted.

    References:
        Gorodkin: Comparing two K-category assignments by a K-category correlation coefficient, 2004, Eq. 8.

    Example:
        >>> matthews_correlation(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        tensor(0.7000, dtype=torch.float64)
    """
    return MatthewsCorrelation(num_classes, ignore_index)(preds, target, sample_weight)


def multiclass_quality_metrics(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    beta: float = 1.0,
    zero_division: float = float("nan"),
    ignore_index: int | None = None,
) -> dict[str, Tensor]:
    r"""Compute all quality metrics of a multi-class classifier, by oneDAL's definitions.

    With one-vs-rest counts :math:`tp_c, fp_c, fn_c, tn_c` of each of the C classes:

    - ``average_accuracy``: :math:`\frac{1}{C} \sum_c \frac{tp_c + tn_c}{tp_c + fp_c + fn_c + tn_c}`, **not** the share
      of right decisions; ``error_rate``: 1 minus ``average_accuracy``;
    - ``micro_precision`` and ``micro_recall``: :math:`\sum tp_c / \sum (tp_c + fp_c)` and
      :math:`\sum tp_c / \sum (tp_c + fn_c)` (both are the share of right decisions); ``micro_fscore``: their F score;
    - ``macro_precision`` and ``macro_recall``: the means of :math:`tp_c / (tp_c + fp_c)` and
      :math:`tp_c / (tp_c + fn_c)` over all C classes, including those that do not occur;
    - ``macro_fscore``: :math:`(1 + \beta^2) P R / (\beta^2 P + R)` of macro precision P and macro recall R, **not** the
      mean F score of the classes (`macro_f1`);
    - ``weighted_error_rate``: 1 minus the share of right decisions; ``balanced_error_rate``: 1 minus macro recall.

    Args:
        preds: ``(N, ...)`` integer predicted classes, or ``(N, C, ...)`` floating point scores of any kind, whose
            highest is the prediction (ties go to the lower class index).
        target: ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        beta: Weight > 0 of recall against precision in F scores.
        zero_division: The precision of a class that is never predicted, and the recall of an absent class: NaN (as in
            oneDAL; then the macro values are NaN), 0 or 1. With precision = recall = 0, an F score is NaN if
            ``zero_division`` is NaN, else 0.
        ignore_index: Label of samples to leave out.

    Returns:
        Float64 scalars in [0, 1] by name (float32 on MPS). Lower is better for error rates, and higher for the others.
        Without samples, ``average_accuracy`` and ``error_rate`` are NaN, and precision and recall ``zero_division``.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Intel oneDAL developer guide, "Quality Metrics for Multi-class Classification Algorithms"; Sokolova, Lapalme:
        A systematic analysis of performance measures for classification tasks, 2009, Table 3.

    Example:
        >>> quality = multiclass_quality_metrics(torch.tensor([0, 1, 2, 0]), torch.tensor([0, 1, 2, 2]), num_classes=3)
        >>> print(*(f"{quality[name]:.3f}" for name in ("average_accuracy", "micro_fscore", "macro_fscore")))
        0.833 0.750 0.833
    """
    measure = MulticlassQualityMetrics(num_classes, ignore_index, beta, zero_division)
    values: Any = measure(preds, target, sample_weight)
    return dict(values)


def _divide(numerator: Tensor, denominator: Tensor, zero_division: float) -> Tensor:
    return torch.where(denominator == 0, zero_division, numerator / denominator)
