"""ConfusionMetric: the base of all Metrics that are read from a confusion matrix."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.decisions import Decisions, decision_rules, flatten_decisions
from mpcs_torch.functional.quality.confusion import ClassCounts, class_counts, count_classes, count_pairs
from mpcs_torch.metrics.additive import AdditiveMetric, Scale
from mpcs_torch.metrics.base import SumMetric, ValidateArgs


class ConfusionMetric(AdditiveMetric):
    """Hold the confusion matrix that the metrics of this family are computed from.

    In a `MetricCollection`, those with the same ``num_classes`` and ``ignore_index`` share it.
    """

    plot_upper_bound = 1.0
    sums_type = ClassCounts
    interval_scale: Scale = "logit"

    confusion: Tensor
    """(C, C), float64: the weights of the samples of each pair (true class, predicted class), summed."""

    def __init__(
        self, num_classes: int, *, ignore_index: int | None = None, validate_args: ValidateArgs = True, **kwargs: Any
    ) -> None:
        check_num_classes(num_classes)
        SumMetric.__init__(
            self, locals(), value_rules=decision_rules(num_classes), state_settings=("num_classes", "ignore_index")
        )
        self.add_sum("confusion", shape=(num_classes, num_classes))  # it determines the sums, and shows more

    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Decisions:
        """Return a batch as flat decisions."""
        return flatten_decisions(
            preds, target, num_classes=self.num_classes, ignore_index=self.ignore_index, sample_weight=sample_weight
        )

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, ...) classes or (N, C, ...) scores, target and sample_weight (N, ...)."""
        decisions = self.samples_of(preds, target, sample_weight)
        self.admit(decisions.find_faults)
        self.add(confusion=count_pairs(decisions))

    def sums_of(self, samples: Decisions) -> ClassCounts:
        """Return the counts of each class."""
        return count_classes(samples)

    def sums(self) -> ClassCounts:
        """Return the counts of each class of all samples so far."""
        return class_counts(self.confusion)

    def ratio_of(self, sums: ClassCounts, whole: ClassCounts) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the right decisions and all of them, by which some metrics of this family are determined."""
        return sums.right.sum(-1), sums.true.sum(-1)

    def row_ratios(self, whole: ClassCounts) -> list[tuple[float, float]]:  # noqa: ARG002  # the same for any samples
        """Return a wrong decision and a right one."""
        return [(0, 1), (1, 1)]

    def averaged_classes(self, sums: ClassCounts) -> Tensor | None:
        """Return the samples of each class: most metrics of this family are averages over classes."""
        return sums.true

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the matrix holds more
        from mpcs_torch.plots.confusion import confusion_matrix

        names = [str(label) for label in range(self.num_classes)]
        return confusion_matrix(self.confusion, None, names, title, on=on)
