"""DetectionCurve: misses and false alarms at every threshold."""

from typing import Any

from torchmetrics.utilities.plot import plot_curve

from mpcs_torch.functional.detection import curve as measures
from mpcs_torch.functional.detection.curve import CurveAverage, Curves
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.metrics.detection.base import TrialMetric


class DetectionCurve(TrialMetric):
    """Compute the miss rate and the false-alarm rate at every threshold, in [0, 1]; lower is better.

    Arguments are those of `mpcs_torch.functional.detection_curve`; for ``validate_args`` and errors see
    `EqualErrorRate`. `mpcs_torch.plots.det_curves` draws curves on probit axes, with operating points and intervals.

    Args:
        average: If there are classes: ``"none"`` for a list of C curves, ``"micro"`` for one curve of all N x C scores.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import DetectionCurve
        >>> curve = DetectionCurve()(torch.tensor([0.1, 0.4, 0.4, 0.9]), torch.tensor([0, 1, 0, 1]))
        >>> curve.p_miss.tolist(), curve.p_fa.tolist()
        ([0.0, 0.0, 0.5, 1.0], [1.0, 0.5, 0.0, 0.0])
    """

    of = measures.DetectionCurve

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        average: CurveAverage = "none",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(self.of(num_classes, average, ignore_index), validate_args, kwargs)

    def compute(self) -> Curves:
        """Return the `ErrorRates` at all thresholds, or, if evaluated by class, a list with those of each class."""
        curves: Curves = self.measure.value(self.binary_trials())
        return curves

    def plot(self, val: Curves | None = None, ax: Any = None) -> Any:
        """Draw the DET curve of all samples so far; with ``val``, draw its miss rates against false-alarm rates."""
        if val is None:
            return super().plot(ax=ax)
        curve: Any  # the annotation of plot_curve lacks lists
        if isinstance(val, ErrorRates):
            curve = val.p_fa, val.p_miss, val.thresholds
        else:
            curve = (
                [each.p_fa for each in val],
                [each.p_miss for each in val],
                [each.thresholds for each in val],
            )
        return plot_curve(
            curve, ax=ax, label_names=("P_fa", "P_miss"), name=type(self).__name__
        )
