"""The base class of monitors. They compute alarms, and the evidence that means of bounded values are beyond limits."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional import anytime_evidence, anytime_interval, clopper_pearson, e_benjamini_hochberg
from mpcs_torch.functional.comparison.sequential import chernoff_interval
from mpcs_torch.functional.inputs.confidence import check_confidence
from mpcs_torch.functional.inputs.faults import Fault
from mpcs_torch.metrics.base import SumMetric

if TYPE_CHECKING:  # figures need matplotlib
    from mpcs_torch.plots.forest import MonitoredMean

STEP = 2.0**-24
"""Values are rounded to multiples of this step, so that sums are exact and do not depend on the order of samples."""
MARGIN = 1e-12
"""The smallest distance of a limit from 0 and from 1."""


class Reading(NamedTuple):
    """The K means of a monitor, with their evidence: tensors (K,), in the order of ``names``; scalars if K is 1."""

    rate: Tensor
    """The means so far, of errors or costs; NaN without samples."""
    low: Tensor
    """The lower ends of intervals that contain the true mean at all times, with the monitor's confidence."""
    high: Tensor
    """The upper ends of these intervals."""
    evidence: Tensor
    """The evidence that each mean is beyond its limit."""
    is_alarm: Tensor
    """bool: whether each mean raises an alarm, by the e-Benjamini-Hochberg procedure over all means."""
    total: Tensor
    """Scalar: the mean evidence. It is at least the monitor's ``threshold`` if there is an alarm."""


class Mean(NamedTuple):
    """A mean that is monitored."""

    name: str
    highest: float = 1.0
    """The upper limit as a share of ``scale``; 1 for no limit. The bounds of a reference replace these limits."""
    scale: float = 1.0
    """The loss that a value of 1 stands for."""
    is_counted: bool = True
    """Whether all values and weights are 0 or 1, so that a reference gives exact bounds."""


class Values(NamedTuple):
    """The values and weights that N samples add to the K means of a monitor; each sample adds to L of them."""

    loss: Tensor
    """(L, N), float64: values times weights, rounded by `exact`."""
    weight: Tensor
    """(L, N), float64, from 0 to 1, rounded: 0 for samples that do not count."""
    codes: Tensor
    """(L, N), int64: the index of the mean to which each value is added. No mean is in two rows."""


Batch = tuple[Values, Callable[[], list[Fault]]]
"""The values of a batch, and a function that returns its faults."""


class Monitor(SumMetric):
    """A monitor of K weighted means of values from 0 to 1: it adds up evidence that means are beyond their limits.

    A subclass defines the values and weights of a sample, and its ``update`` adds them.
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

    def __init__(self, arguments: Mapping[str, Any], *, watched: Sequence[Mean], **rules: Sequence[str]) -> None:
        """Initialize as `SumMetric`, with limits from the K means ``watched`` or from ``arguments["reference"]``."""
        confidence, reference = arguments["confidence"], arguments["reference"]
        check_confidence(confidence)
        settings = {name: value for name, value in arguments.items() if name not in ("reference", "limits")}
        super().__init__(settings, **rules)
        self.names, highest, scales, self.is_counted = (list(column) for column in zip(*watched, strict=True))
        for name in ("loss", "samples"):
            self.add_sum(name, shape=(len(watched),))
        self.limits = torch.tensor([[0.0] * len(watched), highest], dtype=torch.float64)
        if reference is not None:
            self.limits = self._bounds(reference)
        self.scales = torch.tensor(scales, dtype=torch.float64)
        self._moving += ["limits", "scales"]
        self.threshold = (1 if reference is None else 2) / (1 - confidence)
        """The evidence that raises an alarm. The bounds of a reference use up half of the error probability."""

    def _bounds(self, reference: "Monitor") -> Tensor:
        """Return limits (2, K): confidence bounds on the means of ``reference``; the lower ones are 0 if `sides` is 1.

        The probability that any bound is wrong is at most (1 - ``confidence``) / 2; the other half is left for alarms.
        """
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

    def add_batch(self, values: Values, find_faults: Callable[[], list[Fault]]) -> None:
        """Add the values of a batch; ``find_faults`` finds its invalid values."""
        self.admit(find_faults)
        self.follow(values, values.codes.new_empty(0))

    def follow(self, values: Values, at: Tensor) -> Tensor:
        """Add N samples, and return the evidence at R moments: (R, K), float64.

        ``at`` (R,), int64, ascending: moment r is after the sample with the index ``at[r]``.
        """
        sums = self.loss.new_zeros(2, (len(at) + 1) * len(self.names))
        looks = torch.searchsorted(at, torch.arange(values.codes.shape[1], device=at.device))  # each sample's next look
        parts = torch.stack([values.loss, values.weight]).to(sums)
        sums.index_add_(1, (looks * len(self.names) + values.codes).flatten(), parts.flatten(1))
        loss, samples = sums.view(2, len(at) + 1, -1).cumsum(dim=1)
        evidence: Tensor = loss[:-1]  # empty if nobody looks: to compute evidence would synchronize an accelerator
        if len(at):
            evidence = self.limit_evidence(self.loss + loss[:-1], self.samples + samples[:-1])
        self.add(loss=loss[-1], samples=samples[-1])
        return evidence

    def limit_evidence(self, loss: Tensor, samples: Tensor) -> Tensor:
        """Return the evidence (..., K) that the means ``loss / samples`` are beyond their limits; 1 without a limit."""
        lowest, highest = self.limits
        evidence = anytime_evidence(loss, samples, limit=highest.clamp(MARGIN, 1 - MARGIN))
        evidence = torch.where(highest < 1, evidence, 1.0)
        if self.sides == 1:
            return evidence
        below = anytime_evidence(samples - loss, samples, limit=(1 - lowest).clamp(MARGIN, 1 - MARGIN))
        return (evidence + torch.where(lowest > 0, below, 1.0)) / 2

    def evidence_now(self) -> Tensor:
        """Return the evidence of all samples so far: (K,)."""
        return self.limit_evidence(self.loss, self.samples)

    def is_alarm(self, evidence: Tensor) -> Tensor:
        """Return, from the evidence (..., K) of the means, whether each mean raises an alarm: bool (..., K)."""
        return e_benjamini_hochberg(evidence, level=1 / self.threshold)

    def compute(self) -> Reading:
        """Return the means so far with their intervals, evidence and alarms."""
        self.check_computable()
        return self.reading()

    def reading(self) -> Reading:
        """Return the value of `compute`, also if there was no batch."""
        ends = anytime_interval(self.loss, self.samples, confidence=self.confidence)
        evidence = self.evidence_now()
        rate, low, high = (mean * self.scales for mean in (self.loss / self.samples, *ends))
        return Reading(rate, low, high, evidence, self.is_alarm(evidence), evidence.mean())

    def shown_means(self, is_alarm: Sequence[bool]) -> "list[MonitoredMean]":
        """Return the K means so far for figures and tables; ``is_alarm`` says which means have raised an alarm."""
        from mpcs_torch.plots.forest import MonitoredMean

        reading, limits = self.reading(), torch.where(self.limits == 1, torch.inf, self.limits) * self.scales
        columns = [values.tolist() for values in (*reading[:4], *limits, self.samples, self.scales)]
        return [MonitoredMean(*row) for row in zip(self.names, *columns, is_alarm, strict=True)]

    def _plot(self, val: Any = None, ax: Any = None) -> Any:
        readings = [val] if isinstance(val, Reading) else val
        rates = [dict(zip(self.names, reading.rate.reshape(-1), strict=True)) for reading in readings]
        return super()._plot(rates, ax)

    def _draw(self, title: str, value: Reading, on: Any) -> Any:
        from mpcs_torch.plots.forest import watched_means

        return watched_means(self.shown_means(value.is_alarm.reshape(-1).tolist()), title, on=on)


def exact(values: Tensor) -> Tensor:
    """Round values up to multiples of `STEP`."""
    return (values / STEP).ceil() * STEP
