"""DangerousErrors: the Metric of `functional.dangerous_errors`."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern import dangerous as kernel
from mpcs_torch.functional.concern.dangerous import DangerousNormalize
from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.functional.inputs.decisions import Decisions
from mpcs_torch.metrics.additive import DecisionMetric


class SeverityMetric(DecisionMetric):
    """The base of metrics that are computed from `DangerousErrorCounts`."""

    sums_type = kernel.DangerousErrorCounts
    interval_rule = "bounded"
    row_bounds = (0, 1)
    takes_referrals = True

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        """Initialize from the ``locals()`` of a constructor, which must include ``num_classes`` and ``concern``."""
        num_classes = arguments["num_classes"]
        severity = kernel.severity_matrix(arguments["concern"], num_classes)
        further = severity.shape[1] - num_classes
        super().__init__({**arguments, "severity": severity, "further": further}, further_settings=("severity",))

    def sum_samples(self, samples: Decisions) -> kernel.DangerousErrorCounts:
        """Return the weighted numbers of dangerous errors, errors, decided samples and all samples."""
        return kernel.count_dangerous(samples, self.severity)


class DangerousErrors(SeverityMetric):
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
        check_choice("normalize", normalize, DangerousNormalize)
        super().__init__(locals())

    def value_from_sums(self, sums: kernel.DangerousErrorCounts) -> Tensor:
        """Return the number of dangerous errors, or their rate if ``normalize`` is set."""
        return kernel.normalized_count(sums, self.normalize)

    def ratio_from_sums(
        self,
        sums: kernel.DangerousErrorCounts,
        whole: kernel.DangerousErrorCounts,  # noqa: ARG002  # the same for any samples
    ) -> tuple[Tensor, Tensor]:
        """Return the number of dangerous errors, and the denominator of their rate."""
        per = {"errors": sums.errors, "decided": sums.decided}.get(self.normalize or "", sums.samples)
        return sums.dangerous, per

    def value_from_ratio(self, ratio: float, whole: kernel.DangerousErrorCounts) -> float:
        """Return the rate of dangerous errors, or their number if ``normalize`` is None."""
        return ratio if self.normalize else ratio * whole.samples.item()

    def details(self) -> kernel.DangerousErrorCounts:
        """Return the numbers of dangerous errors, errors, decided samples and all samples: float64 scalars."""
        self.check_computable()
        counts: kernel.DangerousErrorCounts = self.sums()
        return counts

    def _draw(self, title: str, value: Any, on: Any) -> Any:  # noqa: ARG002  # the figure shows the counts
        from mpcs_torch.plots.bars import decision_shares

        dangerous, errors, decided, samples = (count.item() for count in self.details())
        counts = {
            "correct": decided - errors,
            "other error": errors - dangerous,
            "dangerous error": dangerous,
            "referred": samples - decided,
        }
        return decision_shares(counts, title, on=on)
