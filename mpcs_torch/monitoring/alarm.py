"""The base class of monitors. They compute alarms, and the evidence that means of bounded values are beyond limits."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, did_you_mean
from mpcs_torch.functional import anytime_interval, clopper_pearson, e_benjamini_hochberg
from mpcs_torch.functional.comparison.sequential import chernoff_interval, mean_product
from mpcs_torch.functional.inputs.confidence import check_confidence
from mpcs_torch.functional.inputs.faults import Fault
from mpcs_torch.functional.measure import fingerprint
from mpcs_torch.metrics.base import SumMetric

if TYPE_CHECKING:  # figures need matplotlib
    from mpcs_torch.plots.forest import MonitoredMean

STEP = 2.0**-24
"""Values are rounded to multiples of this step, so that sums are exact and do not depend on the order of samples."""
MAX_AT_ONCE = 5000
"""The maximum number of samples whose evidence is in memory at once."""
MARGIN = 1e-12
"""The smallest distance of a limit from 0 and from 1."""


class MonitorResult(NamedTuple):
    """The K means of a monitor, with their evidence: tensors (K,), in the order of ``names``; scalars if K is 1."""

    rate: Tensor
    """The means so far, of errors or costs; NaN without samples."""
    low: Tensor
    """The lower ends of intervals that contain the true mean at all times, with the monitor's confidence."""
    high: Tensor
    """The upper ends of these intervals."""
    evidence: Tensor
    """The evidence that each mean is beyond its limit, since the last alarm of this mean that was acknowledged."""
    is_alarm: Tensor
    """bool: whether each mean has raised an alarm that is not acknowledged yet. It is raised by the
    e-Benjamini-Hochberg procedure over all means, after any sample."""
    total: Tensor
    """Scalar: the mean evidence. It is at least the monitor's ``threshold`` where an alarm is raised."""


class WatchedMean(NamedTuple):
    """A mean that is monitored."""

    name: str
    highest: float = 1.0
    """The upper limit as a share of ``scale``; 1 for no limit. The bounds of a reference replace these limits."""
    scale: float = 1.0
    """The loss that a value of 1 stands for."""
    is_counted: bool = True
    """Whether all values and weights are 0 or 1, so that a reference gives exact bounds."""
    is_share: bool = True
    """Whether the mean is a share of samples or a risk, not a mean cost."""


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

    An alarm that is raised after any sample stays until `acknowledge`, however often and whenever one reads it.
    A subclass defines the values and weights of a sample, and its ``update`` adds them.
    """

    sides = 1
    """The number of limits of each mean: 1 for an upper limit, 2 if there is also a lower limit."""
    lowest_of_states: ClassVar[Mapping[str, float]] = {
        "loss": 0.0,
        "samples": 0.0,
        "past": 0.0,
        "raised": 0.0,
    }
    """The states of a saved monitor, in the order of its file, and the lowest number that each can have."""
    loss: Tensor
    """(K,), float64: the sums of values, each times its weight."""
    samples: Tensor
    """(K,), float64: the sums of weights."""
    raised: Tensor
    """(K,), int64: 1 for each mean that has raised an alarm that is not acknowledged, else 0."""
    past: Tensor
    """(2, K), float64: the parts of ``loss`` and ``samples`` up to the last acknowledged alarm of each mean."""
    limits: Tensor
    """(2, K), float64: the lowest and the highest acceptable means; 0 and 1 stand for no limit."""
    scales: Tensor
    """(K,), float64: the loss that a value of 1 stands for."""

    def __init__(
        self, arguments: Mapping[str, Any], *, watched: Sequence[WatchedMean], **rules: Any
    ) -> None:
        """Initialize as `SumMetric`, with limits from the K means ``watched`` or from ``arguments["reference"]``."""
        confidence = arguments["confidence"]
        reference = arguments["reference"]
        check_confidence(confidence)
        # A reference is only read below, and the attribute ``limits`` is the tensor of the limits of all means.
        settings = {
            name: value
            for name, value in arguments.items()
            if name not in ("reference", "limits")
        }
        super().__init__(settings, **rules)
        self.names = [mean.name for mean in watched]
        self.is_counted = [mean.is_counted for mean in watched]
        self._are_shares = [mean.is_share for mean in watched]
        for name in ("loss", "samples"):
            self.add_sum(name, shape=(len(watched),))
        self.add_sum("past", shape=(2, len(watched)))
        self.add_state(
            "raised", torch.zeros(len(watched), dtype=torch.int64), dist_reduce_fx="max"
        )
        self.sums_fingerprint = self.settings
        """The fingerprint of the settings that change the sums, but not those that only change alarms."""
        highest = torch.tensor([mean.highest for mean in watched], dtype=torch.float64)
        self.limits = torch.stack([torch.zeros_like(highest), highest])
        false_alarms = 1 - confidence
        if reference is not None:
            self.limits = self._bounds(reference)
            false_alarms /= 2  # the bounds of a reference use up the other half
        scales = [mean.scale for mean in watched]
        self.scales = torch.tensor(scales, dtype=torch.float64)
        self._moving += ["limits", "scales"]
        self.set_threshold(1 / false_alarms)

    def set_threshold(self, threshold: float) -> None:
        """Set the evidence that raises an alarm. Monitors with other thresholds or limits have other settings."""
        self.threshold = threshold
        rules = {
            "sums": self.sums_fingerprint,
            "limits": self.limits,
            "threshold": threshold,
        }
        self.add_state("settings", fingerprint(rules), dist_reduce_fx="max")

    def _bounds(self, reference: "Monitor") -> Tensor:
        """Return limits (2, K): confidence bounds on the means of ``reference``; the lower ones are 0 if `sides` is 1.

        The probability that any bound is wrong is at most (1 - ``confidence``) / 2; the other half is left for alarms.
        """
        is_alike = isinstance(reference, Monitor) and torch.equal(
            reference.sums_fingerprint, self.sums_fingerprint
        )
        if not is_alike:
            raise InvalidValueError("same_arguments", "reference", type=type(self).__name__)
        reference.check_computable()
        loss = reference.loss.cpu().double()
        samples = reference.samples.cpu().double()
        # Each end of an interval is wrong with half of the error probability of the interval.
        confidence = 1 - (1 - self.confidence) / (len(self.names) * self.sides)
        interval = chernoff_interval(loss, samples, confidence=confidence)
        bounds = torch.stack([interval.low, interval.high])
        for mean, is_counted in enumerate(self.is_counted):
            trials = int(samples[mean])
            if is_counted and trials > 0:
                ends = clopper_pearson(int(loss[mean]), trials, confidence=confidence)
                bounds[:, mean] = torch.tensor(ends, dtype=torch.float64)
        if self.sides == 1:
            bounds[0] = 0
        return bounds

    def add_batch(self, values: Values, find_faults: Callable[[], list[Fault]]) -> None:
        """Add the values of a batch; ``find_faults`` finds its invalid values."""
        self.admit(find_faults)
        self.add_values(values)

    def add_values(self, values: Values) -> Tensor:
        """Add N samples in order, and raise alarms; return the index of the first sample with a new alarm of each mean.

        Returns:
            (K,), int64; -1 for means without a new alarm.
        """
        first = torch.full_like(self.raised, -1)
        for start in range(0, values.codes.shape[1], MAX_AT_ONCE):
            rows = slice(start, start + MAX_AT_ONCE)
            part = Values(
                values.loss[:, rows], values.weight[:, rows], values.codes[:, rows]
            )
            at = self.moments(part)
            is_alarm = self.is_alarm(self.follow(part, at))
            if len(at):
                has_alarm = is_alarm.any(dim=0)
                is_new = has_alarm & (self.raised == 0)
                first_moment = is_alarm.int().argmax(dim=0)
                first = torch.where(is_new, start + at[first_moment], first)
                self.raised = torch.maximum(self.raised, has_alarm.to(self.raised))
        return first

    def moments(self, values: Values) -> Tensor:
        """Return the indices, ascending, of the samples that may raise the evidence: (R,), int64."""
        # Only a loss raises the evidence of an upper limit. To search on an accelerator would wait for it.
        if self.sides == 1 and values.loss.is_cpu:
            return (values.loss > 0).any(dim=0).nonzero()[:, 0]
        return torch.arange(values.loss.shape[1], device=values.loss.device)

    @torch.jit.unused
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch to the states, and return the value of the batch alone."""
        # Not by adding the states of the batch, because an alarm depends on all samples before it.
        value = SumMetric.forward(self._shallow_copy(), *args, **kwargs)
        self.update(*args, **kwargs)
        self._forward_cache = value
        return value

    def follow(self, values: Values, at: Tensor) -> Tensor:
        """Add N samples, and return the evidence at R moments: (R, K), float64.

        ``at`` (R,), int64, ascending: moment r is after the sample with the index ``at[r]``.
        """
        means = len(self.names)
        sums = self.loss.new_zeros(2, (len(at) + 1) * means)
        rows = torch.arange(values.codes.shape[1], device=at.device)
        # Of each sample; R for those after the last moment.
        next_moment = torch.searchsorted(at, rows)
        places = (next_moment * means + values.codes).flatten()
        parts = torch.stack([values.loss, values.weight]).to(sums)
        sums.index_add_(1, places, parts.flatten(1))
        loss, samples = sums.view(2, len(at) + 1, means).cumsum(dim=1)
        evidence = self.limit_evidence(self.loss + loss[:-1], self.samples + samples[:-1])
        self.add(loss=loss[-1], samples=samples[-1])
        return evidence

    def limit_evidence(self, loss: Tensor, samples: Tensor) -> Tensor:
        """Return the evidence (..., K) that means are beyond their limits, by all sums so far; 1 without a limit.

        The sums in `past` are no evidence.
        """
        lowest, highest = self.limits
        loss = loss - self.past[0]
        samples = samples - self.past[1]
        above = mean_product(loss, samples, highest.clamp(MARGIN, 1 - MARGIN))
        above = torch.where(highest < 1, above, 1.0)
        if self.sides == 1:
            return above
        # A mean below its lower limit is a mean of 1 - value above 1 - limit.
        limit = (1 - lowest).clamp(MARGIN, 1 - MARGIN)
        below = mean_product(samples - loss, samples, limit)
        below = torch.where(lowest > 0, below, 1.0)
        return (above + below) / 2

    def evidence_now(self) -> Tensor:
        """Return the evidence of all samples so far: (K,)."""
        return self.limit_evidence(self.loss, self.samples)

    def is_alarm(self, evidence: Tensor) -> Tensor:
        """Return, from the evidence (..., K) of the means, whether each mean raises an alarm: bool (..., K)."""
        return e_benjamini_hochberg(evidence, level=1 / self.threshold)

    def alarms(self) -> Tensor:
        """Return whether each mean has an alarm that is not acknowledged: bool (K,)."""
        # Merged sums may be the first to raise an alarm.
        return (self.raised > 0) | self.is_alarm(self.evidence_now())

    def acknowledge(self, *names: str) -> None:
        """Clear alarms, and begin new tests of their means, from the next sample on.

        Each new test may raise a false alarm with the probability of the first one. To keep this probability for k
        tests, one after another, use a ``confidence`` of 1 - (1 - confidence) / k. In a distributed run, call this
        method in every process.

        Args:
            *names: The means whose alarms are cleared; means without an alarm do not change. Default: all.

        Raises:
            ValueError: If a name is not in ``names`` of the monitor.
        """
        unknown = [name for name in names if name not in self.names]
        if unknown:
            suggestion = did_you_mean(unknown[0], self.names)
            raise InvalidValueError(
                "monitored", "names", unknown[0], choices=self.names, suggestion=suggestion
            )
        is_named = torch.tensor(
            [not names or name in names for name in self.names], device=self.raised.device
        )
        with self.gathered():
            is_cleared = is_named & self.alarms()
        self.begin_tests(is_cleared)
        self._computed = None

    def begin_tests(self, means: Tensor) -> None:
        """Clear the alarms of ``means``, bool (K,), and let their evidence begin at the next sample."""
        self.raised = torch.where(means, 0, self.raised)
        self.past = torch.where(means, torch.stack([self.loss, self.samples]), self.past)

    def compute(self) -> MonitorResult:
        """Return the means so far with their intervals, evidence and alarms."""
        self.check_computable()
        return self.reading()

    def reading(self) -> MonitorResult:
        """Return the value of `compute`, also if there was no batch."""
        low, high = anytime_interval(self.loss, self.samples, confidence=self.confidence)
        evidence = self.evidence_now()
        rate = self.scales * (self.loss / self.samples)
        return MonitorResult(
            rate,
            self.scales * low,
            self.scales * high,
            evidence,
            self.alarms(),
            evidence.mean(),
        )

    def shown_means(self) -> "list[MonitoredMean]":
        """Return the K means so far, for figures and tables."""
        from mpcs_torch.plots.forest import MonitoredMean

        reading = self.reading()
        no_limit = self.limits == 1
        lowest, highest = torch.where(no_limit, torch.inf, self.limits) * self.scales
        return [
            MonitoredMean(
                name=name,
                rate=reading.rate[mean].item(),
                low=reading.low[mean].item(),
                high=reading.high[mean].item(),
                evidence=reading.evidence[mean].item(),
                lowest=lowest[mean].item(),
                highest=highest[mean].item(),
                samples=self.samples[mean].item(),
                scale=self.scales[mean].item(),
                is_alarm=bool(reading.is_alarm[mean]),
                is_share=self._are_shares[mean],
            )
            for mean, name in enumerate(self.names)
        ]

    def _plot(self, val: Any = None, ax: Any = None) -> Any:
        readings = [val] if isinstance(val, MonitorResult) else val
        rates = [
            dict(zip(self.names, reading.rate.reshape(-1), strict=True))
            for reading in readings
        ]
        return super()._plot(rates, ax)

    def _draw(self, title: str, value: MonitorResult, on: Any) -> Any:  # noqa: ARG002  # `shown_means` has all of it
        from mpcs_torch.plots.forest import watched_means

        return watched_means(self.shown_means(), title, on=on)


def exact(values: Tensor) -> Tensor:
    """Round values up to multiples of `STEP`."""
    return (values / STEP).ceil() * STEP
