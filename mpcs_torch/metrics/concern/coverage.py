"""Coverage and SelectiveAccuracy: the Metrics of `functional.coverage` and `functional.selective_accuracy`."""

from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.dangerous import DangerousErrorCounts
from mpcs_torch.metrics.concern.dangerous import SeverityMetric


class Coverage(SeverityMetric):
    """Compute the share of samples that are decided instead of referred; higher is better, 1 refers none.

    Arguments are those of `mpcs_torch.functional.coverage`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Coverage
        >>> Coverage(3)(torch.tensor([1, -1, 0, 2]), torch.tensor([1, 2, 0, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    higher_is_better = True

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(locals())

    def ratio_of(self, sums: DangerousErrorCounts, whole: DangerousErrorCounts) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the numbers of decided samples and of all samples."""
        return sums.decided, sums.samples


class SelectiveAccuracy(Coverage):
    """Compute the accuracy of the decided samples, leaving out those that are referred; higher is better.

    Arguments are those of `mpcs_torch.functional.selective_accuracy`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SelectiveAccuracy
        >>> SelectiveAccuracy(3)(torch.tensor([1, -1, 1, 2]), torch.tensor([1, 2, 0, 2]))
        tensor(0.6667, dtype=torch.float64)
    """

    def ratio_of(self, sums: DangerousErrorCounts, whole: DangerousErrorCounts) -> tuple[Tensor, Tensor]:  # noqa: ARG002
        """Return the numbers of correct decisions and of decided samples."""
        return sums.decided - sums.errors, sums.decided
