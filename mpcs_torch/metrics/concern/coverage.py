"""Coverage: the Metric of `functional.coverage`."""

from typing import Any

from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern.coverage import CoverageSums, count_decided, further_decisions
from mpcs_torch.functional.inputs.checks import check_num_classes
from mpcs_torch.functional.inputs.decisions import Decisions, decision_rules, flatten_decisions
from mpcs_torch.metrics.additive import AdditiveMetric


class Coverage(AdditiveMetric):
    """Compute the share of samples that are decided instead of referred; higher is better, 1 refers none.

    Shapes, rules and references are those of `mpcs_torch.functional.coverage`; errors those of `DangerousErrors`.

    Args:
        num_classes: C, at least 2.
        concern: A `ConcernSpec`, if it has coarse answers.
        ignore_index: Label of samples to leave out.
        validate_args: Whether to check the values of each batch. Without, bad values give a wrong result silently.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Coverage
        >>> Coverage(3)(torch.tensor([1, -1, 0, 2]), torch.tensor([1, 2, 0, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    sums_type = CoverageSums
    interval_rule = "bounded"
    higher_is_better = True
    takes_referrals = True

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_num_classes(num_classes)
        further = further_decisions(concern)
        super().__init__(
            locals(),
            value_rules=decision_rules(num_classes, further),
            state_settings=("num_classes", "further", "ignore_index"),
        )

    def samples_of(self, preds: Tensor, target: Tensor, sample_weight: Tensor | None = None) -> Decisions:
        """Return a batch as flat decisions: preds are (N, ...) decisions, -1 for referred, or (N, C, ...) scores."""
        return flatten_decisions(
            preds,
            target,
            num_classes=self.num_classes,
            ignore_index=self.ignore_index,
            sample_weight=sample_weight,
            further=self.further,
        )

    def sums_of(self, samples: Decisions) -> CoverageSums:
        """Return the sums of decisions."""
        return count_decided(samples)

    def value_of(self, sums: CoverageSums) -> Tensor:
        """Return the share of decided samples."""
        return sums.decided / sums.samples

    def row_ratios(self, whole: CoverageSums) -> list[tuple[float, float]]:  # noqa: ARG002
        """Return a row that is referred, and one that is decided."""
        return [(0, 1), (1, 1)]
