"""ConfusionMetric: the base of all Metrics that are read from a confusion matrix."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.decisions import decision_rules, flatten_decisions
from mpcs_torch.functional.quality.confusion import count_pairs
from mpcs_torch.metrics.base import SumMetric


class ConfusionMetric(SumMetric):
    """Hold the confusion matrix that the metrics of this family are computed from.

    In a `MetricCollection`, those with the same ``num_classes`` and ``ignore_index`` share it.
    """

    plot_upper_bound = 1.0

    confusion: Tensor
    """(C, C), float64: the weights of the samples of each pair (true class, predicted class), summed."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """Take the `locals` of a constructor with the settings ``num_classes`` and ``ignore_index``."""
        num_classes = arguments["num_classes"]
        check_num_classes(num_classes)
        super().__init__(
            arguments, value_rules=decision_rules(num_classes), state_settings=("num_classes", "ignore_index")
        )
        self.add_sum("confusion", shape=(num_classes, num_classes))

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, ...) classes or (N, C, ...) scores, target and sample_weight (N, ...)."""
        decisions = flatten_decisions(
            preds,
            target,
            num_classes=self.num_classes,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )
        self.admit(decisions.find_faults)
        self.add(confusion=count_pairs(decisions))

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the matrix holds more
        from mpcs_torch.plots.confusion import confusion_matrix

        names = [str(label) for label in range(self.num_classes)]
        return confusion_matrix(self.confusion, None, names, title, on=on)
