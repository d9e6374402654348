"""The base of the Metrics that hold the sums of soft counts."""

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.soft_labels import SOFT_RULES, SoftSamples, flatten_soft
from mpcs_torch.functional.soft.sums import SoftAverage, SoftSums, check_soft_settings, score_of
from mpcs_torch.metrics.additive import AdditiveMetric


class SoftScore(AdditiveMetric):
    """Hold sums of degrees of truth, and compute their F."""

    higher_is_better = True
    plot_upper_bound = 1.0

    sums_type = SoftSums
    interval_scale = "logit"

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
        shape = (arguments["num_classes"],)
        super().__init__(arguments, value_rules=SOFT_RULES, state_settings=state_settings, shape=shape)

    def samples_of(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None, ignore: Tensor | None = None
    ) -> SoftSamples:
        """Return a batch as flat samples."""
        return flatten_soft(
            detached(preds),
            detached(target, "target"),
            num_classes=self.num_classes,
            sample_weight=sample_weight,
            ignore=ignore,
        )

    def update(
        self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None, ignore: Tensor | None = None
    ) -> None:
        """Add a batch: preds, target and ignore (N,), (N, C) or (N, C, ...), sample_weight (N,) or (N, ...)."""
        samples = self.samples_of(preds, target, sample_weight, ignore)
        self.admit(samples.find_faults)
        self.add(**self.sums_of(samples)._asdict())

    def value_of(self, sums: SoftSums, average: SoftAverage | None = None) -> Tensor:
        """Return the value of sums, by default with the average of the metric."""
        return score_of(sums, beta=self.beta, average=average or self.average, zero_division=self.zero_division)

    def averaged_classes(self, sums: SoftSums) -> Tensor | None:
        """Return how much of each class is true, for an average over classes."""
        return sums.actual if self.average == "macro" else None

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # may be a value for each class
        from mpcs_torch.plots.bars import class_bars

        average: SoftAverage = "macro" if self.average == "none" else self.average
        mean = self.value_of(self.sums(), average).item()
        scores = self.value_of(self.sums(), "none").tolist()
        return class_bars(scores, mean, title, ylabel="value", mean_label=f"{average} average", on=on)
