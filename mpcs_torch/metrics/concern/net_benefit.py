"""NetBenefit: the Metric of `functional.net_benefit`."""

from collections.abc import Sequence
from typing import Any

from mpcs_torch.functional.concern import net_benefit as measures
from mpcs_torch.metrics.measure_metric import MeasureMetric


class NetBenefit(MeasureMetric):
    """Compute the net benefit of acting on samples that probably are of some classes; higher is better, at most 1.

    The equation and arguments are those of `mpcs_torch.functional.net_benefit`; for ``validate_args`` and errors see
    `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import NetBenefit
        >>> benefit = NetBenefit(num_classes=2, threshold=0.2, from_logits=False)
        >>> probs = torch.tensor([[0.95, 0.05], [0.7, 0.3], [0.2, 0.8], [0.85, 0.15]])
        >>> benefit(probs, torch.tensor([0, 0, 1, 1]))
        tensor(0.1875, dtype=torch.float64)
    """

    of = measures.NetBenefit

    def __init__(
        self,
        num_classes: int,
        *,
        classes: Sequence[int] = (1,),
        threshold: float = 0.5,
        from_logits: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = self.of(num_classes, from_logits, ignore_index, classes, threshold)
        super().__init__(measure, validate_args, kwargs)
