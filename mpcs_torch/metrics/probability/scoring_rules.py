"""BrierScore and CrossEntropy: the Metrics of `functional.brier_score` and `functional.cross_entropy`."""

from math import log
from typing import Any

from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_choice
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.probability import scoring_rules as kernel
from mpcs_torch.functional.probability.scoring_rules import OverClasses
from mpcs_torch.metrics.additive import ProbabilityMetric


class BrierScore(ProbabilityMetric):
    """Compute the Brier score of probabilities; lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.brier_score`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import BrierScore
        >>> score = BrierScore(num_classes=2, from_logits=False)
        >>> score(torch.tensor([[0.75, 0.25], [0.5, 0.5]]), torch.tensor([0, 1]))
        tensor(0.3125, dtype=torch.float64)
    """

    term_of = staticmethod(kernel.squared_error)
    interval_rule = "mean"
    interval_scale = "log"
    row_bounds = (0, 2)

    def __init__(
        self,
        num_classes: int,
        *,
        over_classes: OverClasses = "sum",
        from_logits: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_choice("over_classes", over_classes, OverClasses)
        super().__init__(locals(), ("num_classes", "from_logits", "ignore_index"))

    def value_of(self, sums: WeightedSum) -> Tensor:
        """Return the mean over samples; NaN if there are no samples."""
        return kernel.brier_of(sums, self.num_classes, self.over_classes)

    def of_ratio(self, ratio: float, whole: WeightedSum) -> float:  # noqa: ARG002  # the same for any samples
        """Return ``ratio``, divided by the number of classes if ``over_classes`` is ``"mean"``."""
        return ratio if self.over_classes == "sum" else ratio / self.num_classes

    def _references(self) -> dict[str, float]:
        guess = 1 - 1 / self.num_classes
        guess = guess if self.over_classes == "sum" else guess / self.num_classes
        return {**super()._references(), "uniform guess": guess}


UNSEEN_LOSS = -log(1e-12)
"""The loss that intervals assume for one unseen row, because samples often lack a confidently wrong row."""


class CrossEntropy(ProbabilityMetric):
    """Compute the mean cross entropy of probabilities; in nats, lower is better, 0 is perfect.

    Arguments are those of `mpcs_torch.functional.cross_entropy`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import CrossEntropy
        >>> entropy = CrossEntropy(num_classes=2, from_logits=False)
        >>> entropy(torch.tensor([[0.5, 0.5], [0.2, 0.8]]), torch.tensor([0, 1]))
        tensor(0.4581, dtype=torch.float64)
    """

    term_of = staticmethod(kernel.log_loss)
    interval_rule = "mean"
    interval_scale = "log"
    row_bounds = (0.0, UNSEEN_LOSS)

    def __init__(
        self,
        num_classes: int,
        *,
        from_logits: bool = True,
        normalized: bool = False,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        scale = kernel.entropy_scale(from_logits=from_logits, normalized=normalized)
        super().__init__(locals())

    def bin_ratios(self, bins: WeightedSum, whole: WeightedSum, size: float) -> list[tuple[float, float]]:  # noqa: ARG002
        """Return bounds of the loss of a bin: 0, and the largest mean loss of a bin, but at least `UNSEEN_LOSS`."""
        largest = (bins.total / bins.weight).nan_to_num(0.0).max().clamp(min=UNSEEN_LOSS).item()
        return [(0.0, size), (largest * size, size)]

    def _references(self) -> dict[str, float]:
        return {**super()._references(), "uniform guess": log(self.num_classes)}
