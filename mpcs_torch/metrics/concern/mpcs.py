"""MetaPatternConcernScore: the Metric of `functional.meta_pattern_concern_score`."""

from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern import mpcs as measures
from mpcs_torch.functional.concern.mpcs import CorrectConcern, ScoreAverage
from mpcs_torch.metrics.measure_metric import MeasureMetric


class MetaPatternConcernScore(MeasureMetric):
    """Compute the mean Meta Pattern Concern Score (MPCS) of all samples; in nats, lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.meta_pattern_concern_score`; for ``validate_args`` and errors see
    `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec, MetaPatternConcernScore
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"], ["yellow", "red"]])
        >>> mpcs = MetaPatternConcernScore(num_classes=3, concern=lights, from_logits=False)
        >>> as_yellow = mpcs(torch.tensor([[0.2, 0.7, 0.1]]), torch.tensor([0]))
        >>> as_green = mpcs(torch.tensor([[0.2, 0.1, 0.7]]), torch.tensor([0]))
        >>> print(f"red as yellow {as_yellow:.2f}, red as green {as_green:.2f}, both {mpcs.compute():.2f}")
        red as yellow 1.04, red as green 1.22, both 1.13
    """

    of = measures.MetaPatternConcernScore

    def __init__(
        self,
        num_classes: int,
        *,
        k: int | None = None,
        t: int | None = None,
        concession: float | None = None,
        concern: ConcernSpec | Tensor | None = None,
        from_logits: bool = True,
        correct_concern: CorrectConcern = "sum",
        ignore_index: int | None = None,
        average: ScoreAverage = "micro",
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = measures.MetaPatternConcernScore(
            num_classes,
            from_logits,
            ignore_index,
            k,
            t,
            concession,
            concern,
            correct_concern,
            average,
        )
        super().__init__(measure, validate_args, kwargs)

    def _draw(self, title: str, value: Any, on: Any) -> Any:
        if self.average == "micro":
            return super()._draw(title, value, on)
        from mpcs_torch.plots.bars import class_bars

        sums = self.named_sums()
        mean = (sums.total.sum() / sums.weight.sum()).item()
        return class_bars(value.tolist(), mean, title, ylabel="MPCS", on=on)
