"""RiskGap: the Metric of `functional.risk_gap`."""

from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern import risk_gap as measures
from mpcs_torch.functional.concern.risk_gap import Loss
from mpcs_torch.metrics.measure_metric import MeasureMetric


class RiskGap(MeasureMetric):
    """Compute the mean loss of decisions minus its estimate by the probabilities; 0 is best, above 0 is too hopeful.

    Arguments are those of `mpcs_torch.functional.risk_gap`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import RiskGap
        >>> gap = RiskGap(num_classes=2, from_logits=False)
        >>> gap(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 1]))
        tensor(0.3500, dtype=torch.float64)
    """

    of = measures.RiskGap

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | Tensor | None = None,
        loss: Loss = "dangerous",
        from_logits: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = measures.RiskGap(num_classes, from_logits, ignore_index, concern, loss)
        super().__init__(measure, validate_args, kwargs)
