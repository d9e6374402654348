"""ClassCountMetric, the base of all Metrics of counts of classes, and ConfusionMatrix."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_matrix_fits, check_num_classes
from mpcs_torch.functional.inputs.decisions import Decisions, decision_rules, flatten_decisions
from mpcs_torch.functional.quality.confusion import ClassCounts, count_classes, count_pairs
from mpcs_torch.metrics.additive import AdditiveMetric, Scale
from mpcs_torch.metrics.base import SumMetric


class _DecisionMetric(SumMetric):
    """A metric that counts decisions for classes."""

    plot_upper_bound = 1.0

    def __init__(
        self, num_classes: int, *, ignore_index: int | None = None, validate_args: bool = True, **kwargs: Any
    ) -> None:
        check_num_classes(num_classes)
        SumMetric.__init__(
            self, locals(), value_rules=decision_rules(num_classes), state_settings=("num_classes", "ignore_index")
        )

    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Decisions:
        """Return a batch as flat decisions."""
        return flatten_decisions(
            preds, target, num_classes=self.num_classes, ignore_index=self.ignore_index, sample_weight=sample_weight
        )


class ClassCountMetric(_DecisionMetric, AdditiveMetric):
    """Count the samples of each class, the decisions for it, and the right ones; `ConfusionMatrix` counts all pairs.

    In a `MetricCollection`, those with the same ``num_classes`` and ``ignore_index`` share the counts.
    """

    sums_type = ClassCounts
    interval_scale: Scale = "logit"

    counts: Tensor
    """(3, C), float64: the fields of `ClassCounts`."""

    def __init__(
        self, num_classes: int, *, ignore_index: int | None = None, validate_args: bool = True, **kwargs: Any
    ) -> None:
        _DecisionMetric.__init__(self, num_classes, ignore_index=ignore_index, validate_args=validate_args, **kwargs)
        self.add_sum("counts", shape=(3, num_classes))  # one state: adding to three takes three times as long

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, ...) classes or (N, C, ...) scores, target and sample_weight (N, ...)."""
        decisions = self.samples_of(preds, target, sample_weight)
        self.admit(decisions.find_faults)
        self.add(counts=count_classes(decisions))

    def sums_of(self, samples: Decisions) -> ClassCounts:
        """Return the counts of each class."""
        return ClassCounts(*count_classes(samples).unbind(-2))

    def sums(self) -> ClassCounts:
        """Return the counts of each class of all samples so far."""
        return ClassCounts(*self.counts)

    def ratio_of(self, sums: ClassCounts, whole: ClassCounts) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the right decisions and all of them, by which some metrics of this family are determined."""
        return sums.right.sum(-1), sums.true.sum(-1)

    def row_ratios(self, whole: ClassCounts) -> list[tuple[float, float]]:  # noqa: ARG002  # the same for any samples
        """Return a wrong decision and a right one."""
        return [(0, 1), (1, 1)]

    def averaged_classes(self, sums: ClassCounts) -> Tensor | None:
        """Return the samples of each class: most metrics of this family are averages over classes."""
        return sums.true

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the counts hold more
        from mpcs_torch.plots.bars import class_bars

        counts = self.sums()
        mean = (counts.right.sum() / counts.true.sum()).item()
        return class_bars((counts.right / counts.true).tolist(), mean, title, ylabel="recall", on=on)


class ConfusionMatrix(_DecisionMetric):
    """Compute the confusion matrix of decisions: ``(C, C)``, float64, rows true classes, columns decisions.

    It holds the samples of each pair, or their weights, summed. Shapes and rules are those of
    `mpcs_torch.functional.confusion_matrix`; arguments and errors those of `Accuracy`, and a ``num_classes`` whose
    matrix would take more than 2 GiB is refused.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import ConfusionMatrix
        >>> ConfusionMatrix(num_classes=2)(torch.tensor([0, 1, 1]), torch.tensor([0, 1, 0]))
        tensor([[1., 1.],
                [0., 1.]], dtype=torch.float64)
    """

    higher_is_better = None

    confusion: Tensor
    """(C, C), float64."""

    def __init__(
        self, num_classes: int, *, ignore_index: int | None = None, validate_args: bool = True, **kwargs: Any
    ) -> None:
        check_matrix_fits(num_classes, 8)
        super().__init__(num_classes, ignore_index=ignore_index, validate_args=validate_args, **kwargs)
        self.add_sum("confusion", shape=(num_classes, num_classes))

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, ...) classes or (N, C, ...) scores, target and sample_weight (N, ...)."""
        decisions = self.samples_of(preds, target, sample_weight)
        self.admit(decisions.find_faults)
        self.add(confusion=count_pairs(decisions))

    def compute(self) -> Tensor:
        """Return the matrix."""
        self.check_computable()
        return self.confusion

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the title has one value
        from mpcs_torch.plots.confusion import confusion_matrix

        names = [str(label) for label in range(self.num_classes)]
        return confusion_matrix(value, None, names, f"{type(self).__name__} of {value.sum():g} samples", on=on)
