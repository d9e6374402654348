"""EqualErrorRate: where misses are as frequent as false alarms."""

from typing import Any

from torch import Tensor

from mpcs_torch.functional.detection.curve import middle_of
from mpcs_torch.functional.detection.equal_error_rate import EqualError, EqualErrorMethod, check_method, equal_error_of
from mpcs_torch.metrics.detection.base import ClassAverage, Problem, ScoreMetric


class EqualErrorRate(ScoreMetric):
    """The rate at which misses and false alarms are equally frequent; in [0, 1], lower is better.

    Methods and references are those of `mpcs_torch.functional.equal_error_rate`. All scores are kept: 5 bytes for one
    of float32, 9 for one of float64, whatever their range.

    Args:
        num_classes: None for scores ``(N, ...)`` and targets of 0 and 1, or C for scores ``(N, C, ...)`` and class
            indices ``(N, ...)``: each class against the rest.
        method: ``"rocch"``, ``"interpolated"`` or ``"nearest"``.
        average: With classes: ``"macro"`` for the mean of their rates, ``"pooled"`` for one problem of all N x C
            scores, ``"none"`` for (C,).
        ignore_index: Label of trials to leave out.
        validate_args: Whether to look for bad values in batches. Without, they give a wrong value silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule; from `compute` if no batch
            was seen, or no target, or no nontarget. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import EqualErrorRate
        >>> metric = EqualErrorRate()
        >>> metric.update(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1]))
        >>> metric.compute(), metric.thresholds()
        (tensor(0.2500, dtype=torch.float64), tensor(0.3500, dtype=torch.float64))
    """

    plot_upper_bound = 1.0

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
        check_method(method)
        super().__init__(num_classes, average=average, ignore_index=ignore_index, validate_args=validate_args, **kwargs)
        self.method: EqualErrorMethod = method

    def compute(self) -> Tensor:
        """The rate, float64: a scalar, or (C,) with ``average="none"``."""
        return self.averaged(self.details().rate)

    def details(self) -> EqualError:
        """The rate and the thresholds around it: scalars, or (C,) with classes that are not pooled."""
        return self._found(self.method)

    def thresholds(self) -> Tensor:
        """Where the rates differ least: the middle of the interval of such thresholds, whatever the method.

        (The vertices of a hull that surround its crossing can be far apart.)
        """
        nearest = self._found("nearest")
        return middle_of(nearest.low, nearest.high)

    def _found(self, method: EqualErrorMethod) -> EqualError:
        def value(problem: Problem) -> EqualError:
            return equal_error_of(self.errors_of(problem), method)

        found = self.each_problem(value, lambda nan: EqualError(nan, nan, nan))
        return EqualError(*(self.stacked(list(field)) for field in zip(*found, strict=True)))
