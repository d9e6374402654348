"""Rules with a guarantee on random splits of test predictions, and how often chance alone breaks the limit."""

import warnings
from collections.abc import Callable
from math import floor
from typing import NamedTuple

import torch
from scipy.stats import binom, hypergeom
from torch import Tensor

from mpcs_torch.calibration import CalibrationWarning
from mpcs_torch.functional import risk_threshold
from mpcs_torch.functional.inputs.decisions import REFERRED
from mpcs_torch.learning import DecisionRule, Limit, RareClassWarning
from mpcs_torch.learning.decision_rule import CalibrationMethod
from mpcs_torch.learning.rule_samples import CALIBRATION_SHARE
from tests.benchmarks.held_out import HeldOut

ROUNDING = 1e-9

Decide = Callable[[Tensor], Tensor]
"""From logits (N, C) to classes (N,), or -1 for a referral."""


Fit = Callable[[HeldOut, Limit], Decide]


class Method(NamedTuple):
    """A way of deciding and referring under a limit."""

    fit: Fit
    calibrating: float = 0.0
    """The share of the samples of the fit that calibrate instead of choosing the threshold."""

    def judged(self, samples: int) -> int:
        """Return how many samples choose the threshold."""
        return samples - round(self.calibrating * samples)


def by_rule(calibration: CalibrationMethod) -> Fit:
    """Return the fit of a `DecisionRule`."""

    def fit(held_out: HeldOut, limit: Limit) -> Decide:
        rule = DecisionRule(held_out.concern, limit, calibration=calibration)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RareClassWarning)
            warnings.simplefilter("ignore", CalibrationWarning)  # no error among a few digits: the temperature is 1
            return rule.fit(held_out.logits, held_out.target)

    return fit


def by_largest_probability(held_out: HeldOut, limit: Limit) -> Decide:
    """Choose a threshold on the largest probability, for the most probable class, under the same guarantee."""
    decided, doubt = _most_probable(held_out.logits)
    loss = held_out.concern.dangerous_pairs()[held_out.target, decided]
    found = risk_threshold(doubt, loss, max_loss=limit.at_most, confidence=limit.confidence)

    def decide(logits: Tensor) -> Tensor:
        decided, doubt = _most_probable(logits)
        return torch.where(doubt < found.threshold, decided, REFERRED)

    return decide


def _most_probable(logits: Tensor) -> tuple[Tensor, Tensor]:
    largest = logits.double().softmax(dim=1).max(dim=1)
    return largest.indices, 1 - largest.values


METHODS = {
    "rule": Method(by_rule("temperature"), CALIBRATION_SHARE),
    "rule, not calibrated": Method(by_rule(None)),
    "largest probability": Method(by_largest_probability),
}


class Outcome(NamedTuple):
    """The effect of a rule on samples that it was not fitted to."""

    coverage: float
    """The share of samples that are decided."""
    dangerous: int
    """The number of dangerous errors."""
    samples: int

    @property
    def rate(self) -> float:
        """The number of dangerous errors per sample; a referred sample is none."""
        return self.dangerous / self.samples

    def exceeds(self, limit: Limit) -> bool:
        """Tell whether the rate is above the limit."""
        return self.dangerous > limit.at_most * self.samples + ROUNDING


def outcome_of(decide: Decide, held_out: HeldOut) -> Outcome:
    """Apply a rule to samples."""
    decisions = decide(held_out.logits)
    decided = decisions != REFERRED
    errors = held_out.concern.dangerous_pairs()[held_out.target[decided], decisions[decided]]
    return Outcome(decided.double().mean().item(), int(errors.sum()), len(decisions))


def on_the_rest(pool: HeldOut, fit: Fit, limit: Limit, samples: int, seed: int) -> Outcome:
    """Fit to samples drawn without replacement, and apply the rule to all others.

    Raises:
        ValueError: If so few samples cannot guarantee the limit.
    """
    order = torch.randperm(len(pool.target), generator=torch.Generator().manual_seed(seed))
    return outcome_of(fit(pool.at(order[:samples]), limit), pool.at(order[samples:]))


def on_the_population(pool: HeldOut, fit: Fit, limit: Limit, samples: int, seed: int) -> Outcome:
    """Fit to samples drawn with replacement, and apply the rule to the pool, which is then the whole population.

    Raises:
        ValueError: If so few samples cannot guarantee the limit.
    """
    drawn = torch.randint(len(pool.target), (samples,), generator=torch.Generator().manual_seed(seed))
    return outcome_of(fit(pool.at(drawn), limit), pool)


def allowed_errors(judged: int, limit: Limit) -> int:
    """Return how many dangerous errors the exact binomial test allows among the samples that choose the threshold."""
    assert limit.confidence is not None
    return int(binom.ppf(1 - limit.confidence, judged, limit.at_most)) - 1


def share_on_the_rest(judged: int, rest: int, limit: Limit) -> float:
    """Compute the probability that the rate on the rest of a split exceeds the limit, for any model.

    Sort all dangerous errors of both parts by their estimated risk. The limit is exceeded if, of the first ones, so
    many lie in the rest that its rate is too high, before the samples that choose the threshold hold one more than is
    allowed. Which part an error lies in is chance, so this is a hypergeometric probability. It needs a pool with enough
    dangerous errors, and without equal risks. It is not bounded by 1 - confidence, because the rate on the rest is
    itself an estimate; with an infinite rest, it would be.
    """
    allowed = allowed_errors(judged, limit)
    too_many = floor(limit.at_most * rest + ROUNDING) + 1
    return float(hypergeom.cdf(allowed, judged + rest, allowed + too_many, judged))


def share_on_the_population(judged: int, population: int, limit: Limit) -> float:
    """Compute the probability that the rate in the population exceeds the limit: at most 1 - confidence."""
    too_many = floor(limit.at_most * population + ROUNDING) + 1
    return float(binom.cdf(allowed_errors(judged, limit), judged, too_many / population))
