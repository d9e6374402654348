"""DangerousErrors: the shell over `functional.dangerous_errors`."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.dangerous import check_released, count_dangerous
from mpcs_torch.functional.inputs.decisions import decided_rules
from mpcs_torch.functional.inputs.dtypes import widest_float
from mpcs_torch.metrics.base import SumMetric


class DangerousErrors(SumMetric):
    """How many errors are not released by human values, and at what rate; lower is better.

    `compute` gives a dictionary of scalars:

    - ``dangerous`` (int64): the number of dangerous errors;
    - ``dangerous_rate`` (float64): dangerous errors per sample; NaN where every sample was ignored;
    - ``destructive_rate`` (float64): dangerous errors per error, the paper's term; 0 where there is no error.

    Args:
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, or its ``(C, C)`` bool matrix of released pairs (rows true classes, columns
            predicted ones). Default: nothing is released, every error is dangerous.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to look for bad values in batches. Without, they give wrong counts silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU bad values are reported by `compute`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec, DangerousErrors
        >>> lights = ConcernSpec(["red", "yellow", "green"], releases=[["red", "yellow"]])
        >>> errors = DangerousErrors(num_classes=3, concern=lights)
        >>> errors.update(torch.tensor([1, 2, 2, 1]), torch.tensor([0, 0, 2, 1]))
        >>> {name: value.item() for name, value in errors.compute().items()}
        {'dangerous': 1, 'dangerous_rate': 0.25, 'destructive_rate': 0.5}
    """

    dangerous_count: Tensor
    error_count: Tensor
    sample_count: Tensor

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | Tensor | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        concern = _released_matrix(concern, num_classes)
        super().__init__(locals(), value_rules=decided_rules(num_classes))
        for name in ("dangerous_count", "error_count", "sample_count"):
            self.add_sum(name, dtype=torch.int64)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, ...) classes or (N, C, ...) scores, target (N, ...)."""
        counts, faults = count_dangerous(preds, target, released=self.concern, ignore_index=self.ignore_index)
        self.admit(faults)
        self.dangerous_count = self.dangerous_count + counts.dangerous
        self.error_count = self.error_count + counts.errors
        self.sample_count = self.sample_count + counts.samples

    def compute(self) -> dict[str, Tensor]:
        """The number of dangerous errors, their rate among samples, and their rate among errors."""
        self.check_computable()
        dangerous = self.dangerous_count.to(widest_float(self.device))
        return {
            "dangerous": self.dangerous_count,
            "dangerous_rate": dangerous / self.sample_count,
            "destructive_rate": dangerous / self.error_count.clamp(min=1),
        }


def _released_matrix(concern: ConcernSpec | Tensor | None, num_classes: int) -> Tensor:
    if concern is None:
        return torch.zeros(num_classes, num_classes, dtype=torch.bool)
    released = concern.released() if isinstance(concern, ConcernSpec) else concern.detach().clone()
    if check_released(released) != num_classes:
        raise ValueError(f"concern must cover {num_classes} classes, but covers {len(released)}.")
    return released.fill_diagonal_(False)  # not read; settings that mean the same must look the same
