"""The limit that a decision rule guarantees, the samples that it is fitted to, and what a rule does to samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor, nn

from mpcs_torch.concern import ConcernSpec
from mpcs_torch.functional import UnattainableLimitError, dangerous_errors_details, expected_concern, risk_threshold
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples

CALIBRATION_SHARE = 0.2


def checked_logits(preds: Tensor, target: Tensor, num_classes: int) -> tuple[Tensor, Tensor]:
    """Check logits (N, C) and labels (N,), at least one of them; upcast half types."""
    if preds.ndim != 2:
        raise ValueError(f"preds must have shape (N, C), but got {tuple(preds.shape)}.")
    samples = flatten_samples(
        preds, target, num_classes=num_classes, scale="logits", ignore_index=None, sample_weight=None
    )
    raise_first(samples.find_faults())
    if not len(preds):
        raise ValueError("preds must hold at least one sample, but is empty.")
    return samples.scores, samples.labels.target


def class_frequencies(target: Tensor, class_names: Sequence[str]) -> Tensor:
    """Return the share of each class among labels (N,): (C,); refuse a class without samples."""
    counts = target.bincount(minlength=len(class_names))
    absent = [class_names[label] for label in (counts == 0).nonzero().flatten().tolist()]
    if absent:
        raise ValueError(f"target must hold every class to correct for priors, but has no {', '.join(absent)}.")
    return counts / len(target)


def calibration_samples(given: int) -> int:
    """Return how many of the given samples fit the calibration if the others guarantee a limit."""
    return max(1, round(CALIBRATION_SHARE * given))


def given_samples(judging: int) -> int:
    """Return how many samples must be given so that a number of them is left to judge."""
    given = judging
    while given - calibration_samples(given) < judging:
        given += 1
    return given


@dataclass(frozen=True)
class RuleLimit:
    """A limit on dangerous errors or on costs per sample, or none."""

    max_dangerous: float | None
    max_cost: float | None
    confidence: float | None

    def __post_init__(self) -> None:
        if self.max_dangerous is not None and self.max_cost is not None:
            raise ValueError(f"max_cost must not be given together with max_dangerous, but got {self.max_cost}.")
        if self.max_dangerous is not None and not 0 < self.max_dangerous < 1:
            raise ValueError(f"max_dangerous must be above 0 and below 1, but got {self.max_dangerous}.")
        if self.max_cost is not None and not 0 < self.max_cost < float("inf"):
            raise ValueError(f"max_cost must be finite and above 0, but got {self.max_cost}.")
        if self.confidence is not None and (self.max_dangerous is None or not 0 < self.confidence < 1):
            rule = "must be above 0 and below 1, and goes with max_dangerous"
            raise ValueError(f"confidence {rule}, but got {self.confidence}.")

    def __bool__(self) -> bool:
        """Tell whether there is a limit."""
        return self.max_dangerous is not None or self.max_cost is not None

    def threshold(self, risk: Tensor, loss: Tensor, *, highest_loss: float, splits: bool) -> Tensor:
        """Choose the threshold on the estimated risk of decisions that guarantees the limit.

        Args:
            risk: ``(N,)`` estimates, of the samples that choose.
            loss: ``(N,)`` losses of the decisions.
            highest_loss: The highest possible loss.
            splits: Whether other samples were split off to calibrate.

        Raises:
            ValueError: If so few samples cannot guarantee it.
        """
        name, value = ("max_dangerous", self.max_dangerous) if self.max_cost is None else ("max_cost", self.max_cost)
        assert value is not None
        if value >= highest_loss:  # no decision can cost more
            raise ValueError(f"{name} must be below the highest possible loss {highest_loss:g}, but got {value}.")
        try:
            limited = risk_threshold(risk, loss, max_loss=value, confidence=self.confidence, highest_loss=highest_loss)
        except UnattainableLimitError as error:
            raise error.named(name, needed=given_samples(error.needed) if splits else error.needed) from None
        return limited.threshold


class RuleReport(NamedTuple):
    """The effect of a rule on samples; after a fit with a limit, on those that guarantee it."""

    calibrated_by: int
    """The number of samples of the fit that went to the calibration."""
    judged_by: int
    """The number of samples that the other values are measured on."""
    coverage: float
    """The share of samples that are decided, not referred."""
    dangerous_rate: float
    """Dangerous errors per sample; a referred sample is no error."""
    cost: float
    """The cost of decisions and referrals per sample; a referral without a cost of its own counts 0."""


def report_on(decisions: Tensor, target: Tensor, concern: ConcernSpec) -> RuleReport:
    """Measure decisions (N,), with -1 for referrals, against labels (N,)."""
    classes, device = len(concern.classes), target.device
    dangerous = concern.dangerous_pairs().to(device)
    counts = dangerous_errors_details(decisions, target, num_classes=classes, concern=dangerous)
    costs = concern.costs() if concern.refer is not None else nn.functional.pad(concern.costs(), (0, 1))
    cost = expected_concern(decisions, target, num_classes=classes, concern=costs.to(device), normalize=False)
    coverage, dangerous_rate = counts.decided / counts.samples, counts.dangerous / counts.samples
    return RuleReport(0, len(target), coverage.item(), dangerous_rate.item(), cost.item())
