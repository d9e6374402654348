"""HMeasure: what decisions cost, averaged over the costs that errors may have."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.detection.binary_trials import ClassAverage
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.functional.detection.h_measure import h_measure_of_trials
from mpcs_torch.metrics.detection.area import draw_roc
from mpcs_torch.metrics.detection.base import DetectionMetric


class HMeasure(DetectionMetric):
    """Compute the H-measure, in [0, 1]; higher is better, 1 is perfect, 0 no better than ignoring the scores.

    Equation and references are those of `mpcs_torch.functional.h_measure`; arguments and errors those of
    `EqualErrorRate`, without its method.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import HMeasure
        >>> metric = HMeasure()
        >>> metric.update(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1]))
        >>> metric.compute()
        tensor(0.5000, dtype=torch.float64)
    """

    higher_is_better = True
    plot_upper_bound = 1.0

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())

    def compute(self) -> Tensor:
        """Return the measure, float64: a scalar, or (C,) with ``average="none"``."""
        return self.averaged(h_measure_of_trials(self.binary_trials()))

    def _draw_curves(self, curves: dict[int, ErrorRates], names: list[str], title: str, on: Any) -> Any:
        return draw_roc(curves, names, title, on)
