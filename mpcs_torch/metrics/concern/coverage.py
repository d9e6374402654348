"""Metrics of coverage, and of the risk-coverage curve: those of the functions of the same names."""

from typing import Any

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional.concern import coverage as measures
from mpcs_torch.functional.concern.coverage import (
    RiskCoverage,
    check_coverage,
    estimated_risks,
    generalized_area,
    risk_at,
    risk_coverage_curve,
)
from mpcs_torch.functional.concern.dangerous import dangerous_pair_mask
from mpcs_torch.functional.inputs.arrays import detached
from mpcs_torch.functional.inputs.labels import value_rules
from mpcs_torch.functional.inputs.probabilities import (
    SCORE_RULES,
    flatten_samples,
    input_scale,
)
from mpcs_torch.metrics.base import SumMetric
from mpcs_torch.metrics.measure_metric import MeasureMetric


class _OfReferrals(MeasureMetric):
    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | None = None,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(self.of(num_classes, ignore_index, concern), validate_args, kwargs)


class Coverage(_OfReferrals):
    """Compute the share of samples that are decided, not referred; in [0, 1], higher is better.

    Arguments are those of `mpcs_torch.functional.coverage`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import Coverage
        >>> Coverage(3)(torch.tensor([1, -1, 0, 2]), torch.tensor([1, 2, 0, 2]))
        tensor(0.7500, dtype=torch.float64)
    """

    of = measures.Coverage


class SelectiveAccuracy(_OfReferrals):
    """Compute the accuracy of the samples that are decided, not referred; higher is better.

    Arguments are those of `mpcs_torch.functional.selective_accuracy`; for ``validate_args`` and errors see `Accuracy`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import SelectiveAccuracy
        >>> SelectiveAccuracy(3)(torch.tensor([1, -1, 1, 2]), torch.tensor([1, 2, 0, 2]))
        tensor(0.6667, dtype=torch.float64)
    """

    of = measures.SelectiveAccuracy


IGNORED = -1
"""The value of ``loss`` for ignored samples."""


class RiskCoverageArea(SumMetric):
    """Compute the area under the curve of dangerous errors against coverage, in [0, 1]; lower is better.

    Arguments are those of `mpcs_torch.functional.risk_coverage_area`; for ``validate_args`` and errors see `Accuracy`.
    For each sample, the states keep the estimated risk, and one byte for the true loss (dangerous, not, or ignored).

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import RiskCoverageArea
        >>> area = RiskCoverageArea(num_classes=2, from_logits=False)
        >>> area.update(torch.tensor([[0.9, 0.1], [0.8, 0.2]]), torch.tensor([0, 0]))
        >>> area.update(torch.tensor([[0.6, 0.4], [0.3, 0.7]]), torch.tensor([1, 1]))
        >>> area.compute()
        tensor(0.0625, dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    risk: list[Tensor]
    """A tensor (M,) for each batch: the estimated risk of each decision."""
    loss: list[Tensor]
    """A tensor (M,) for each batch, int8: 1 for a dangerous error, 0 for another decision, -1 for an ignored sample."""

    def __init__(
        self,
        num_classes: int,
        *,
        concern: ConcernSpec | Tensor | None = None,
        from_logits: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        dangerous = dangerous_pair_mask(concern, num_classes)
        scale = input_scale(from_logits)
        super().__init__(
            locals(),
            value_rules=value_rules(num_classes, SCORE_RULES[scale]),
            state_settings=("num_classes", "dangerous", "from_logits", "ignore_index"),
        )
        self.add_samples("risk")
        self.add_samples("loss", dtype=torch.int8)

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch: preds (N, C) or (N, C, ...), target (N,) or (N, ...)."""
        samples = flatten_samples(
            detached(preds), target, self.num_classes, self.scale, self.ignore_index
        )
        self.admit(samples.find_faults)
        risk, loss = estimated_risks(samples, self.dangerous)
        self.add(
            risk=risk,
            loss=torch.where(samples.labels.counted, loss.to(torch.int8), IGNORED),
        )

    def compute(self) -> Tensor:
        """Return the area: a float64 scalar; NaN if all samples are ignored."""
        return self._value_of(self.details())

    def _value_of(self, curve: RiskCoverage) -> Tensor:
        return curve.risk.mean()

    def details(self) -> RiskCoverage:
        """Return the curve of dangerous errors per decided sample against coverage, for samples of all processes."""
        with self.gathered():
            self.check_computable()
            risk = self.kept_samples("risk")
            loss = self.kept_samples("loss")
        counted = loss != IGNORED
        return risk_coverage_curve(risk[counted], loss[counted])

    def _draw(self, title: str, value: Any, on: Any) -> Any:
        if value.isnan():  # all samples are ignored, so there is no curve
            return super()._draw(title, value, on)
        from mpcs_torch.plots.decisions import risk_coverage_figure

        return risk_coverage_figure(
            {"lowest estimated risk decided first": self.details()}, title=title, on=on
        )


class GeneralizedRiskCoverageArea(RiskCoverageArea):
    """Compute the area under the curve of the share of decided dangerous errors against coverage; lower is better.

    It is described at `mpcs_torch.functional.generalized_risk_coverage_area`. Arguments are those of
    `RiskCoverageArea`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import GeneralizedRiskCoverageArea
        >>> area = GeneralizedRiskCoverageArea(num_classes=2, from_logits=False)
        >>> area(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]]), torch.tensor([0, 0, 1, 1]))
        tensor(0.0312, dtype=torch.float64)
    """

    plot_upper_bound = 0.5

    def _value_of(self, curve: RiskCoverage) -> Tensor:
        return generalized_area(curve)


class RiskAtCoverage(RiskCoverageArea):
    """Compute the rate of dangerous errors among decided samples if a share of samples is decided; lower is better.

    It is described at `mpcs_torch.functional.risk_at_coverage`. The other arguments are those of `RiskCoverageArea`.

    Example:
        >>> import torch
        >>> from mpcs_torch.metrics import RiskAtCoverage
        >>> risk = RiskAtCoverage(num_classes=2, coverage=1.0, from_logits=False)
        >>> risk(torch.tensor([[0.9, 0.1], [0.8, 0.2], [0.6, 0.4], [0.3, 0.7]]), torch.tensor([0, 0, 1, 1]))
        tensor(0.2500, dtype=torch.float64)
    """

    def __init__(
        self,
        num_classes: int,
        *,
        coverage: float = 0.8,
        concern: ConcernSpec | Tensor | None = None,
        from_logits: bool = True,
        ignore_index: int | None = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        check_coverage(coverage)
        how: dict[str, Any] = {
            "ignore_index": ignore_index,
            "validate_args": validate_args,
            **kwargs,
        }
        super().__init__(num_classes, concern=concern, from_logits=from_logits, **how)
        self.coverage = coverage

    def _value_of(self, curve: RiskCoverage) -> Tensor:
        return risk_at(curve, self.coverage)
