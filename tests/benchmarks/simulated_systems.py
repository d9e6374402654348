"""Simulated systems whose true error rates and costs are known."""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

import numpy as np
import torch
from scipy.special import ndtr
from torch import Tensor

from mpcs_torch.functional import OperatingPoint
from mpcs_torch.functional.detection.llr_cost import softplus

SHARED = 0.7
"""The correlation of the scores of two systems, given the label."""
SPEAKER_SHIFT, SPREAD, SPEAKER_MEAN = 0.8, 1.5, 2.0
"""Of scores of trials that share a speaker: the spread of the shift of all scores of a speaker, that within a speaker,
and the mean of targets (minus that of non-targets)."""


class Trials(NamedTuple):
    """Scores of one or two systems for the same trials."""

    scores: list[Tensor]
    labels: Tensor
    speakers: Tensor


class Predictions(NamedTuple):
    """Probabilities of two systems for the same samples."""

    probs: list[Tensor]
    target: Tensor


class Truth(NamedTuple):
    """The quantities of a normal score in the population: its mean, minus the mean, and its spread."""

    mean: float
    spread: float

    @property
    def equal_error(self) -> float:
        """The equal error rate."""
        return float(ndtr(-self.mean / self.spread))

    @property
    def area(self) -> float:
        """The area under the ROC."""
        return float(ndtr(sqrt(2) * self.mean / self.spread))

    @property
    def cllr(self) -> float:
        """The Cllr in bits: targets and non-targets mirror each other."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(150)
        costs = softplus(torch.from_numpy(-(self.mean + self.spread * nodes))).numpy()
        return float((weights * costs).sum() / weights.sum() / np.log(2))

    def rates(self, threshold: float) -> tuple[float, float]:
        """Return the miss rate and the false-alarm rate at a threshold."""
        miss = ndtr((threshold - self.mean) / self.spread)
        return float(miss), float(ndtr((-threshold - self.mean) / self.spread))

    def cost(self, point: OperatingPoint, threshold: float | None = None) -> float:
        """Return the normalised cost at a threshold, or at the Bayes threshold."""
        rates = self.rates(point.bayes_threshold if threshold is None else threshold)
        return sum(w * rate for w, rate in zip(point.weights, rates, strict=True)) / min(point.weights)


def llr_truth(separation: float) -> Truth:
    """Return the truth of log-likelihood ratios of two normal distributions so many standard deviations apart."""
    return Truth(separation**2 / 2, separation)


SPEAKER_TRUTH = Truth(SPEAKER_MEAN, sqrt(SPEAKER_SHIFT**2 + SPREAD**2))


def trials(generator: torch.Generator, targets: int, nontargets: int, separations: tuple[float, ...]) -> Trials:
    """Draw independent trials: log-likelihood ratios of systems of different separations."""
    labels = torch.arange(targets + nontargets) < targets
    normal = _normal(generator, len(separations) + 1, len(labels))
    scores = []
    for own, separation in zip(normal[1:], separations, strict=True):
        noise = sqrt(SHARED) * normal[0] + sqrt(1 - SHARED) * own
        scores.append(separation * noise + torch.where(labels, 1.0, -1.0) * separation**2 / 2)
    return Trials(scores, labels, torch.arange(len(labels)))


def speaker_trials(generator: torch.Generator, speakers: int, targets: int = 5, nontargets: int = 15) -> Trials:
    """Draw trials of one system; those of a speaker share shifts, one of targets and one of non-targets."""
    labels = (torch.arange(targets + nontargets) < targets).repeat(speakers)
    speaker = torch.arange(speakers).repeat_interleave(targets + nontargets)
    shift = SPEAKER_SHIFT * _normal(generator, speakers, 2)
    mean = torch.where(labels, SPEAKER_MEAN + shift[speaker, 0], -SPEAKER_MEAN + shift[speaker, 1])
    return Trials([mean + SPREAD * _normal(generator, len(labels))], labels, speaker)


def predictions(
    generator: torch.Generator, samples: int, strengths: tuple[float, ...], classes: int = 4
) -> Predictions:
    """Draw probabilities of systems whose logits stand out by different strengths at the true class."""
    target = torch.randint(classes, (samples,), generator=generator)
    normal = _normal(generator, len(strengths) + 1, samples, classes)
    is_true = torch.nn.functional.one_hot(target, classes)
    probs = [
        (strength * is_true + sqrt(SHARED) * normal[0] + sqrt(1 - SHARED) * own).softmax(1)
        for own, strength in zip(normal[1:], strengths, strict=True)
    ]
    return Predictions(probs, target)


def share(calls: int, holds: Callable[[int], list[bool]], advance: Callable[[], None]) -> Tensor:
    """Return how often each of some findings holds."""
    found = []
    for number in range(calls):
        found.append(holds(number))
        advance()
    return torch.tensor(found).double().mean(0)


def _normal(generator: torch.Generator, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=generator, dtype=torch.float64)
