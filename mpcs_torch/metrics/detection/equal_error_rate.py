"""EqualErrorRate: the rate at which misses are as frequent as false alarms."""

from dataclasses import replace
from typing import Any

from torch import Tensor

from mpcs_torch.functional.detection import equal_error_rate as measures
from mpcs_torch.functional.detection.equal_error_rate import EqualError, EqualErrorMethod
from mpcs_torch.functional.detection.errors import midpoint
from mpcs_torch.functional.detection.trial_measure import ClassAverage
from mpcs_torch.metrics.detection.base import TrialMetric


class EqualErrorRate(TrialMetric):
    """Compute the rate at which misses and false alarms are equally frequent, in [0, 1]; lower is better.

    Methods, references and the other arguments are those of `mpcs_torch.functional.equal_error_rate`. All scores are
    kept, whatever their range: 5 bytes for each float32 score, 9 bytes for each float64 score.

    Args:
        validate_args: Whether to check the values of each batch. If False, invalid values silently give wrong results.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument is invalid, and from `compute` if there was
            no batch. On other devices than the CPU, `compute` raises the error for invalid values.

    Warns:
        UserWarning: From `compute` and `forward` if no target or no non-target was seen: the value is NaN.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import EqualErrorRate
        >>> metric = EqualErrorRate()
        >>> metric.update(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1]))
        >>> metric.compute(), metric.thresholds()
        (tensor(0.2500, dtype=torch.float64), tensor(0.3500, dtype=torch.float64))
    """

    of = measures.EqualErrorRate
    measure: measures.EqualErrorRate

    def __init__(
        self,
        num_classes: int | None = None,
        *,
        method: EqualErrorMethod = "rocch",
        average: ClassAverage = "macro",
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            self.of(num_classes, average, ignore_index, method=method),
            validate_args,
            kwargs,
        )

    def details(self) -> EqualError:
        """Return the rate and the thresholds just below and above it: scalars, or (C,) if evaluated by class."""
        return self.measure.details(self.binary_trials())

    def thresholds(self) -> Tensor:
        """Return the middle of the interval of thresholds where the two rates differ least, whatever ``method`` is.

        The result is a scalar, or (C,) if evaluated by class.
        """
        nearest = replace(self.measure, method="nearest").details(self.binary_trials())
        return midpoint(nearest.low, nearest.high)
