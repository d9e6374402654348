"""DangerousErrors: the Metric of `functional.dangerous_errors`."""

from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern import dangerous as measures
from mpcs_torch.functional.concern.dangerous import DangerousErrorCounts, DangerousNormalize
from mpcs_torch.metrics.measure_metric import MeasureMetric


class DangerousErrors(MeasureMetric):
    """Compute the number of dangerous errors, or their rate; lower is better.

    Arguments are those of `mpcs_torch.functional.dangerous_errors`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec, DangerousErrors
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]])
        >>> errors = DangerousErrors(num_classes=3, concern=lights)
        >>> errors.update(torch.tensor([1, 2, 2, 1]), torch.tensor([0, 0, 2, 1]))
        >>> errors.compute()
        tensor(1., dtype=torch.float64)
        >>> errors.details().errors
        tensor(2., dtype=torch.float64)
    """

    of = measures.DangerousErrors

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | Tensor | None = None,
        normalize: DangerousNormalize = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        measure = measures.DangerousErrors(num_classes, ignore_index, concern, normalize)
        super().__init__(measure, validate_args, kwargs)

    def details(self) -> DangerousErrorCounts:
        """Return the numbers of dangerous errors, errors, decided samples and all samples: float64 scalars."""
        self.check_computable()
        counts: DangerousErrorCounts = self.named_sums()
        return counts
