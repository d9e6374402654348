"""DetectionCurve: misses and false alarms at every threshold."""

from typing import Any, Literal

import torch
from torch import Tensor
from torchmetrics.utilities.plot import plot_curve

from mpcs_torch.functional.detection.curve import ErrorRates
from mpcs_torch.metrics.detection.base import Problem, ScoreMetric

Curves = ErrorRates | list[ErrorRates]


class DetectionCurve(ScoreMetric):
    """Miss and false-alarm rates at every threshold; lower is better.

    Equations and references are those of `mpcs_torch.functional.detection_curve`; errors those of `EqualErrorRate`. On
    probit axes, with operating points and intervals, `mpcs_torch.plots.det_curves` draws it.

    Args:
        num_classes: None for scores ``(N, ...)`` and targets of 0 and 1, or C for scores ``(N, C, ...)`` and class
            indices ``(N, ...)``: each class against the rest.
        average: With classes: ``"none"`` for a list of C curves, ``"pooled"`` for one of all N x C scores.
        ignore_index: Label of trials to leave out.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong value silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import DetectionCurve
        >>> metric = DetectionCurve()
        >>> metric.update(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> curve = metric.compute()
        >>> curve.p_miss.tolist(), curve.p_fa.tolist()
        ([0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 0.0])
    """

    higher_is_better = None

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        average: Literal["pooled", "none"] = "none",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        if average not in ("pooled", "none"):
            raise ValueError(f"average must be 'pooled' or 'none', but got {average!r}.")
        super().__init__(num_classes, average=average, ignore_index=ignore_index, validate_args=validate_args, **kwargs)

    def compute(self) -> Curves:
        """`ErrorRates`; a list of them for classes one by one."""
        no_trials = torch.zeros(2, dtype=torch.int64, device=self.device)

        def value(problem: Problem) -> ErrorRates:
            return self.errors_of(problem).rates()

        curves = self.each_problem(value, lambda nan: ErrorRates(nan, nan, nan, *no_trials))
        return curves if self.is_by_class else curves[0]

    def plot(self, val: Curves | None = None, ax: Any = None) -> Any:
        """Plot misses over false alarms of `val` (default: what was seen) on `ax` (default: a new figure)."""
        curves = self.compute() if val is None else val
        parts = curves if isinstance(curves, ErrorRates) else zip(*curves, strict=True)
        p_miss, p_fa, thresholds, *_ = (part if isinstance(part, Tensor) else list(part) for part in parts)
        curve: Any = (p_fa, p_miss, thresholds)  # torchmetrics' own type leaves the lists out
        return plot_curve(curve, ax=ax, label_names=("P_fa", "P_miss"), name=type(self).__name__)
