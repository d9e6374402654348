"""Effects of one way of training on another, with intervals over seeds, and calibrated probabilities."""

import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student
from torch import Tensor

from mpcs_torch.calibration.scaling import ScalingMethod, make_scaling

Values = NDArray[np.float64]
"""A value for each seed."""


class Effect(NamedTuple):
    """A mean difference or a relative change, and its 95 % interval over seeds."""

    value: float
    low: float
    high: float


def calibrated_probs(
    method: ScalingMethod, validation: Tensor, labels: Tensor, test: Tensor
) -> Tensor:
    """Return the probabilities of test samples by their logits (N, C), calibrated by validation samples."""
    calibration = make_scaling(method, test.shape[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # no error on validation data: nothing is changed
        calibration.fit(validation, labels)
    logits: Tensor = calibration(test.double())
    return logits.softmax(dim=1)


def difference(ours: Sequence[float], theirs: Sequence[float]) -> Effect:
    """Return the mean difference over seeds and its interval of 95 %, by Student's t."""
    change = np.asarray(ours) - np.asarray(theirs)
    return _interval(float(change.mean()), change)


def reduction(ours: Sequence[float], theirs: Sequence[float]) -> Effect:
    """Return the share of the mean that is gone, and its interval of 95 %, by Student's t and the delta method."""
    mine, other = np.asarray(ours), np.asarray(theirs)
    if not other.any():
        share = -np.inf if mine.any() else 0.0
        return Effect(share, share, share)
    ratio = mine.mean() / other.mean()
    # The delta method: 1 - mean(mine) / mean(other) varies as the mean of these terms does.
    return _interval(float(1 - ratio), (ratio * other - mine) / other.mean())


def _interval(value: float, terms: Values) -> Effect:
    """Return the interval of a value that varies over seeds as the mean of the terms does."""
    if len(terms) < 2:
        return Effect(value, -np.inf, np.inf)
    deviation = terms.std(ddof=1) / np.sqrt(len(terms))
    spread = deviation * student.ppf(0.975, len(terms) - 1)
    return Effect(value, float(value - spread), float(value + spread))


def geometric_mean(pairs: Sequence[tuple[Values, Values]]) -> Effect:
    """Return the share that is gone over tasks, from counts of ours and of theirs under each seed of a task.

    It is 1 less the geometric mean of the ratios of ours to theirs. Half an error is added to the sums of both, so that
    a task without an error counts, too.
    """
    logs, variances = [], []
    for ours, theirs in pairs:
        mine = ours.mean() + 0.5 / len(ours)
        other = theirs.mean() + 0.5 / len(theirs)
        logs.append(np.log(mine / other))
        # The delta method: log(mine / other) varies as the mean of these terms does.
        terms = ours / mine - theirs / other
        variances.append(terms.var(ddof=1) / len(terms) if len(terms) > 1 else np.inf)
    mean = np.mean(logs)
    spread = 1.96 * np.sqrt(np.sum(variances)) / len(pairs)
    return Effect(
        value=float(1 - np.exp(mean)),
        low=float(1 - np.exp(mean + spread)),
        high=float(1 - np.exp(mean - spread)),
    )
