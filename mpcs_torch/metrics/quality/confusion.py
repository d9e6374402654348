"""ClassCountMetric, the base of metrics that are computed from counts of each class, and ConfusionMatrix."""

from typing import Any, NamedTuple

from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_matrix_fits
from mpcs_torch.functional.inputs.decisions import Decisions
from mpcs_torch.functional.quality.confusion import ClassCounts, count_classes, count_pairs
from mpcs_torch.metrics.additive import DecisionMetric, Scale


class ClassCountMetric(DecisionMetric):
    """Count the samples, decisions and correct decisions of each class.

    In a `MetricCollection`, metrics with the same ``num_classes`` and ``ignore_index`` share the counts.
    """

    plot_upper_bound = 1.0
    sums_type = ClassCounts
    sums_of = staticmethod(count_classes)
    interval_scale: Scale = "logit"
    row_bounds = (0, 1)

    def __init__(
        self, num_classes: int, *, ignore_index: int | None = None, validate_args: bool = True, **kwargs: Any
    ) -> None:
        super().__init__(locals(), (3, num_classes))

    def ratio_of(self, sums: ClassCounts, whole: ClassCounts) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the numbers of correct decisions and of samples, whose ratio is the accuracy."""
        return sums.right.sum(-1), sums.true.sum(-1)

    def averaged_classes(self, sums: ClassCounts) -> Tensor | None:
        """Return the number of samples of each class, because most subclasses are averages over classes."""
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

    def sums_of(self, samples: Decisions) -> PairCounts:
        """Return the counts of all pairs of true class and decision."""
        return PairCounts(count_pairs(samples))

    def value_of(self, sums: PairCounts) -> Tensor:
        """Return the matrix: (..., C, C)."""
        return sums.confusion

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # a title cannot show a matrix
        from mpcs_torch.plots.confusion import confusion_matrix

        names = [str(label) for label in range(self.num_classes)]
        return confusion_matrix(value, None, names, f"{type(self).__name__} of {value.sum():g} samples", on=on)
