"""DangerousErrors: the Metric of `functional.dangerous_errors`."""

from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.dangerous import (
    DangerousErrorCounts,
    DangerousNormalize,
    count_dangerous,
    normalized_count,
    released_pairs,
)
from mpcs_torch.functional.inputs.checks import check_choice, check_num_classes
from mpcs_torch.functional.inputs.decisions import decision_rules, flatten_decisions
from mpcs_torch.metrics.base import SumMetric


class DangerousErrors(SumMetric):
    """Compute the number or the rate of errors that human values do not release; lower is better, 0 is perfect.

    Shapes, rules and references are those of `mpcs_torch.functional.dangerous_errors`.

    Args:
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, which says itself which pairs are released, or a ``(C, C)`` tensor of weights > 0
            (rows true classes, columns predicted ones), where a pair with a weight below 1 is released. Default: no
            pair is released, so every error is dangerous.
        normalize: None for the number of dangerous errors, ``"samples"`` for dangerous errors per sample (NaN without
            samples), ``"errors"`` for dangerous errors per error (0 without errors; the paper's destructive rate).
        ignore_index: Label of samples to leave out.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Raises:
        ValueError: From the constructor and from `update` if an argument breaks its rule, and from `compute` if no
            batch was seen. Away from the CPU, `compute` reports bad values.

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

    dangerous: Tensor
    """Scalar: the weights of errors that are not released, summed."""
    errors: Tensor
    """Scalar: the weights of all errors, summed."""
    samples: Tensor
    """Scalar: the weights of all samples, summed."""

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
        check_num_classes(num_classes)
        check_choice("normalize", normalize, DangerousNormalize)
        released = _released_pairs(concern, num_classes)
        super().__init__(
            locals(),
            value_rules=decision_rules(num_classes),
            state_settings=("num_classes", "released", "ignore_index"),
        )
        for name in DangerousErrorCounts._fields:
            self.add_sum(name)

    def update(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> None:
        """Add a batch: preds (N, ...) classes or (N, C, ...) scores, target and sample_weight (N, ...)."""
        decisions = flatten_decisions(
            preds,
            target,
            num_classes=self.num_classes,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
        )
        self.admit(decisions.find_faults)
        self.add(**count_dangerous(decisions, self.released)._asdict())

    def compute(self) -> Tensor:
        """Return the number of dangerous errors, or its ratio to the samples or errors: a float64 scalar."""
        return normalized_count(self.details(), self.normalize)

    def details(self) -> DangerousErrorCounts:
        """Return the numbers of dangerous errors, of all errors and of all samples: float64 scalars."""
        self.check_computable()
        return DangerousErrorCounts(self.dangerous, self.errors, self.samples)


def _released_pairs(concern: ConcernSpec | Tensor | None, num_classes: int) -> Tensor:
    if not isinstance(concern, ConcernSpec):
        return released_pairs(concern, num_classes)
    released = concern.released()
    if len(released) != num_classes:
        raise ValueError(f"concern must cover {num_classes} classes, but covers {len(released)}.")
    return released.fill_diagonal_(False)
