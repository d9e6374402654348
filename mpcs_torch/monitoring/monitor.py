"""Monitor whether means of bounded values are beyond limits: the base class, and a monitor without labels."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import anytime_evidence, anytime_interval, clopper_pearson, e_benjamini_hochberg
from mpcs_torch.functional.comparison.sequential import chernoff_interval
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, check_confidence
from mpcs_torch.functional.inputs.decisions import REFERRED, decision_range
from mpcs_torch.functional.inputs.faults import Fault, Span
from mpcs_torch.metrics.base import SumMetric

if TYPE_CHECKING:  # figures need matplotlib
    from mpcs_torch.plots.monitoring import MonitoredMean

STEP = 2.0**-24
"""Values are rounded to multiples of this step, so that sums are exact and do not depend on the order of samples."""
MARGIN = 1e-12
"""The smallest distance of a limit from 0 and from 1."""
RISK_RULE = "risk must be from 0 to 1, or NaN where it is not known"


class Reading(NamedTuple):
    """The K means of a monitor and their evidence: float64 (K,), in the order of ``names``; scalars if K is 1."""

    rate: Tensor
    """The means so far, of errors or costs; NaN without samples."""
    low: Tensor
    """The lower ends of intervals that contain the true mean at all times, with the monitor's confidence."""
    high: Tensor
    """The upper ends of these intervals."""
    evidence: Tensor
    """The evidence that each mean is beyond its limit."""
    is_alarm: Tensor
    """bool: whether each mean raises an alarm, by e-BH over all means."""
    total: Tensor
    """Scalar: the mean evidence. It is at least the monitor's ``threshold`` if there is an alarm."""


class Values(NamedTuple):
    """The values and weights of N samples, each of which adds to one of the K means."""

    loss: Tensor
    """(N,), float64: values times weights, rounded by `exact`."""
    weight: Tensor
    """(N,), float64, from 0 to 1, rounded: 0 for samples that do not count."""
    codes: Tensor
    """(N,), int64: the index of the mean of each sample."""


class Monitor(SumMetric):
    """Sums of K values from 0 to 1 and of their weights, and the evidence that their means are beyond limits.

    A subclass defines the values, and adds them in ``update``.
    """

    sides = 1
    """The number of limits of each mean: 1 for an upper limit, 2 if there is also a lower limit."""
    loss: Tensor
    """(K,), float64: the sums of values, each times its weight."""
    samples: Tensor
    """(K,), float64: the sums of weights."""
    limits: Tensor
    """(2, K), float64: the lowest and the highest acceptable means; 0 and 1 stand for no limit."""
    scales: Tensor
    """(K,), float64: the loss that a value of 1 stands for."""

    def __init__(
        self,
        arguments: Mapping[str, Any],
        *,
        names: Sequence[str],
        value_rules: Sequence[str],
        state_settings: Sequence[str],
        is_counted: Sequence[bool],
        highest: Tensor | None = None,
        scales: Tensor | None = None,
    ) -> None:
        """Initialize from the ``locals()`` of the constructor of a subclass, as `SumMetric` does.

        Args:
            arguments: These ``locals()``, which must have ``confidence`` and ``reference``.
            names: The names of the K means.
            value_rules: As in `SumMetric`.
            state_settings: As in `SumMetric`.
            is_counted: Whether all values and weights of each mean are 0 or 1; then a reference has exact bounds.
            highest: ``(K,)`` upper limits. With a reference, its bounds are the limits instead.
            scales: ``(K,)`` the loss that a value of 1 stands for. Default: 1.
        """
        confidence, reference = arguments["confidence"], arguments["reference"]
        check_confidence(confidence)
        settings = {name: value for name, value in arguments.items() if name not in ("reference", "limits")}
        super().__init__(settings, value_rules=value_rules, state_settings=state_settings)
        self.names, self.is_counted = list(names), list(is_counted)
        for name in ("loss", "samples"):
            self.add_sum(name, shape=(len(self.names),))
        limits = torch.tensor([[0.0], [1.0]], dtype=torch.float64).repeat(1, len(self.names))
        if reference is not None:
            limits = self._bounds(reference)
        elif highest is not None:
            limits[1] = highest
        self.limits = limits
        self.scales = torch.ones(len(self.names), dtype=torch.float64) if scales is None else scales
        self._moving += ["limits", "scales"]
        self.threshold = (1 if reference is None else 2) / (1 - confidence)
        """The evidence that raises an alarm. With a reference, half of the error probability is for its bounds."""

    def _bounds(self, reference: "Monitor") -> Tensor:
        """Return bounds (2, K) on all means of a reference, with half of the error probability."""
        if not isinstance(reference, Monitor) or not torch.equal(reference.settings, self.settings):
            raise ValueError(f"reference must be a {type(self).__name__} with the same arguments, but is not.")
        reference.check_computable()
        loss, samples = reference.loss.cpu().double(), reference.samples.cpu().double()
        confidence = 1 - (1 - self.confidence) / (len(self.names) * self.sides)
        bounds = torch.stack([*chernoff_interval(loss, samples, confidence=confidence)])
        for column, is_counted in enumerate(self.is_counted):
            if is_counted and samples[column]:
                ends = clopper_pearson(int(loss[column]), int(samples[column]), confidence=confidence)
                bounds[:, column] = torch.tensor(ends, dtype=torch.float64)
        return bounds if self.sides == 2 else torch.stack([torch.zeros_like(loss), bounds[1]])

    def add_values(self, values: Sequence[Values]) -> None:
        """Add the values and weights of samples to the sums."""
        loss, samples = torch.zeros_like(self.loss), torch.zeros_like(self.samples)
        for value in values:
            loss = loss.index_add(0, value.codes, value.loss.to(loss))
            samples = samples.index_add(0, value.codes, value.weight.to(samples))
        self.add(loss=loss, samples=samples)

    def follow(self, values: Sequence[Values], at: Tensor | None = None) -> Tensor:
        """Add N samples; return the evidence (R, K), float64, after the samples ``at`` (R,), by default all."""
        at = torch.arange(len(values[0].loss)) if at is None else at
        sums = torch.zeros(2, len(at) + 1, len(self.names), dtype=torch.float64)
        for value in values:
            looks = torch.searchsorted(at, torch.arange(len(value.codes)))  # the first look after each sample
            cells = looks * len(self.names) + value.codes
            for summed, part in zip(sums, (value.loss, value.weight), strict=True):
                summed.view(-1).index_add_(0, cells, part)
        loss, samples = sums[:, :-1].cumsum(dim=1)
        evidence = evidence_beyond(self.loss + loss, self.samples + samples, self.limits, sides=self.sides)
        self.add_values(values)
        return evidence

    def evidence_now(self) -> Tensor:
        """Return the evidence of all samples so far: (K,)."""
        return evidence_beyond(self.loss, self.samples, self.limits, sides=self.sides)

    def is_alarm(self, evidence: Tensor) -> Tensor:
        """Return which means raise an alarm, from their evidence (..., K): bool (..., K)."""
        return e_benjamini_hochberg(evidence, level=1 / self.threshold)

    def _plot(self, val: Any = None, ax: Any = None) -> Any:
        readings = [val] if isinstance(val, Reading) else val
        rates = [dict(zip(self.names, reading.rate.reshape(-1), strict=True)) for reading in readings]
        return super()._plot(rates, ax)

    def _draw(self, title: str, value: Reading, on: Any) -> Any:
        from mpcs_torch.plots.monitoring import watched_means

        return watched_means(self.to_draw(self.loss, self.samples, value.is_alarm.reshape(-1).tolist()), title, on=on)

    def to_draw(self, loss: Tensor, samples: Tensor, is_alarm: Sequence[bool]) -> "list[MonitoredMean]":
        """Return the K means of the given sums for a figure, with their intervals, limits and alarms."""
        from mpcs_torch.plots.monitoring import MonitoredMean

        ends = anytime_interval(loss, samples, confidence=self.confidence)
        limits = torch.where(self.limits == 1, torch.inf, self.limits)
        columns = [(value * self.scales).tolist() for value in (loss / samples, *ends, *limits)]
        return [MonitoredMean._make(row) for row in zip(self.names, *columns, is_alarm, strict=True)]

    def compute(self) -> Reading:
        """Return the means so far with their intervals, evidence and alarms."""
        self.check_computable()
        low, high = anytime_interval(self.loss, self.samples, confidence=self.confidence)
        evidence = self.evidence_now()
        rate, low, high = (mean * self.scales for mean in (self.loss / self.samples, low, high))
        return Reading(rate, low, high, evidence, self.is_alarm(evidence), evidence.mean())


def evidence_beyond(loss: Tensor, samples: Tensor, limits: Tensor, *, sides: int) -> Tensor:
    """Return the evidence that the means of sums (...) are beyond ``limits`` (2, ...); 1 where there is no limit."""
    lowest, highest = limits
    evidence = anytime_evidence(loss, samples, limit=highest.clamp(MARGIN, 1 - MARGIN))
    evidence = torch.where(highest < 1, evidence, 1.0)
    if sides == 1:
        return evidence
    below = anytime_evidence(samples - loss, samples, limit=(1 - lowest).clamp(MARGIN, 1 - MARGIN))
    return (evidence + torch.where(lowest > 0, below, 1.0)) / 2


def exact(values: Tensor) -> Tensor:
    """Round values up to multiples of `STEP`."""
    return (values / STEP).ceil() * STEP


class DriftMonitor(Monitor):
    """Test whether decisions without labels still look like those of a reference, however often one looks.

    It monitors the share of each decision (a class, a coarse answer or a referral) and the mean estimated risk. Alarms
    are hints, not evidence of errors: a model can be wrong more often while its decisions look the same, and class
    frequencies can change without more errors. While nothing has changed, the probability of an alarm is at most 1 -
    ``confidence``, for all rates together.

    Args:
        concern: The classes and coarse answers.
        confidence: 1 minus the highest acceptable probability of a false alarm.
        reference: A `DriftMonitor` that was updated with reference samples. Default: nothing is tested.
        validate_args: As in `RiskMonitor`.
        **kwargs: Arguments of `torchmetrics.Metric`.

    Example:
        >>> import torch
        >>> from mpcs_torch import ConcernSpec
        >>> from mpcs_torch.monitoring import DriftMonitor
        >>> concern = ConcernSpec(["good", "bad"])
        >>> validation = DriftMonitor(concern)
        >>> validation.update(torch.tensor([0, 0, 0, 1, -1]).repeat(200))
        >>> deployed = DriftMonitor(concern, reference=validation)
        >>> deployed.update(torch.tensor([0, 0, 1, -1, -1]).repeat(100))
        >>> dict(zip(deployed.names, deployed.compute().is_alarm.tolist()))
        {'decided good': True, 'decided bad': False, 'referred': True, 'mean risk': False}
    """

    sides = 2

    def __init__(
        self,
        concern: ConcernSpec,
        *,
        confidence: float = CONFIDENCE,
        reference: "DriftMonitor | None" = None,
        validate_args: bool = True,
        **kwargs: Any,
    ) -> None:
        decided = [*concern.classes, *(name for name, _ in concern.answers)]
        decisions, rates = len(decided), [*(f"decided {name}" for name in decided), "referred", "mean risk"]
        super().__init__(
            locals(),
            names=rates,
            is_counted=[*[True] * (len(rates) - 1), False],
            value_rules=[f"preds must be decisions {decision_range(decisions, 1)}", RISK_RULE],
            state_settings=("rates",),
        )

    def update(self, preds: Tensor, risk: Tensor | None = None) -> None:
        """Add samples: integer decisions (N,), with -1 for referrals, and the estimated risk (N,), NaN if unknown."""
        values, find_faults = self.values_of(preds, risk)
        self.admit(find_faults)
        self.add_values(values)

    def values_of(self, preds: Tensor, risk: Tensor | None = None) -> tuple[list[Values], Callable[[], list[Fault]]]:
        """Return the values that samples add to each mean, and a function that finds their faults."""
        decisions = preds.reshape(-1).long()
        safe = torch.where(decisions == REFERRED, self.decisions, decisions.clamp(0, self.decisions - 1))
        one = torch.ones_like(safe, dtype=torch.float64)

        def of_mean(code: int, values: Tensor, weight: Tensor = one) -> Values:
            return Values(values, weight, torch.full_like(safe, code))

        values = [of_mean(code, (safe == code).double()) for code in range(self.decisions + 1)]
        risks = torch.zeros_like(one) if risk is None else risk.reshape(-1).double()
        if risk is not None:
            known = (~risks.isnan()).double()
            values.append(of_mean(self.decisions + 1, exact(risks.nan_to_num(0.0).clamp(0, 1)), known))

        def find_faults() -> list[Fault]:
            decided = Fault(self.value_rules[0], decisions, [Span(decisions, REFERRED, self.decisions - 1)])
            return [decided, Fault(RISK_RULE, risks, [Span(risks.nan_to_num(0.0), 0, 1)])]

        return values, find_faults
