"""The base of the Metrics that hold the sums of soft counts."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.soft_labels import SOFT_RULES, SoftSamples, flatten_soft
from mpcs_torch.functional.soft.sums import SoftAverage, SoftSums, check_soft_settings, score_of
from mpcs_torch.metrics.base import SumMetric


class SoftScore(SumMetric):
    """Hold sums of degrees of truth, and compute their F."""

    higher_is_better = True
    plot_upper_bound = 1.0

    beta: float
    """The weight of recall in F, which is precision for 0 and recall for infinity."""
    shared: Tensor
    """(C,): the degree to which prediction and label are both true times the weight of the sample, summed."""
    predicted: Tensor
    """(C,): predictions times the weights of the samples, summed."""
    actual: Tensor
    """(C,): labels times the weights of the samples, summed."""
    elements: Tensor
    """(C,): the weights of the elements, summed."""

    def __init__(self, arguments: Mapping[str, Any], state_settings: Sequence[str]) -> None:
        check_soft_settings(arguments["num_classes"], arguments["average"], arguments["zero_division"])
        super().__init__(arguments, value_rules=SOFT_RULES, state_settings=state_settings)
        for name in SoftSums._fields:
            self.add_sum(name, shape=(self.num_classes,))

    def sums_of(self, samples: SoftSamples) -> SoftSums:
        """Return the sums of a batch."""
        raise NotImplementedError

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None, ignore: Tensor | None = None
    ) -> None:
        """Add a batch: preds, target and ignore (N,), (N, C) or (N, C, ...), sample_weight (N,) or (N, ...)."""
        samples = flatten_soft(
            detached(preds),
            detached(target, "target"),
            num_classes=self.num_classes,
            sample_weight=sample_weight,
            ignore=ignore,
        )
        self.admit(samples.find_faults)
        self.add(**self.sums_of(samples)._asdict())

    def compute(self) -> Tensor:
        """Return the value of all samples, float64: a scalar, or (C,) with ``average="none"``."""
        self.check_computable()
        return self.value_of(self._sums())

    def value_of(self, sums: SoftSums, average: SoftAverage | None = None) -> Tensor:
        """Return the value of sums, by default with the average of the metric."""
        return score_of(sums, beta=self.beta, average=average or self.average, zero_division=self.zero_division)

    def _sums(self) -> SoftSums:
        return SoftSums(self.shared, self.predicted, self.actual, self.elements)

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # may be a value for each class
        from mpcs_torch.plots.bars import class_bars

        average: SoftAverage = "macro" if self.average == "none" else self.average
        mean = self.value_of(self._sums(), average).item()
        scores = self.value_of(self._sums(), "none").tolist()
        return class_bars(scores, mean, title, ylabel="value", mean_label=f"{average} average", on=on)
