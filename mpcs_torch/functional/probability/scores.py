"""Scores of the probability of the true class: generalized means, the Brier score and the cross entropy."""

from dataclasses import dataclass
from math import exp, log
from typing import ClassVar, Literal, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.inputs.checks import check_choice, widened
from mpcs_torch.functional.inputs.labels import WeightedSum
from mpcs_torch.functional.inputs.logits import LossBatch
from mpcs_torch.functional.inputs.probabilities import (
    MIN_PROBABILITY,
    Samples,
    Scale,
    input_scale,
)
from mpcs_torch.functional.measure import IntervalRule, ProbabilityMeasure, Ratios

GEOMETRIC = 0.0
"""The power of geometric accuracy."""
DECISIVE = 1.0
"""The power of decisiveness."""
ROBUST = -2 / 3
"""The power of robustness."""
POWERS = (GEOMETRIC, DECISIVE, ROBUST)
"""The powers in the order of the fields of `ProbabilityMeans`."""


class ProbabilityMeans(NamedTuple):
    """Three generalized means of probabilities: scalars in [0, 1]; robustness is lowest, decisiveness is highest."""

    geometric_accuracy: Tensor
    decisiveness: Tensor
    robustness: Tensor


def geometric_accuracy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    from_logits: bool = True,
    epsilon: float = 0.005,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the geometric mean of the probability of the true class; in [0, 1], higher is better.

    If no probability is below ``epsilon``, this is exp(-cross entropy).

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` floating point scores; 16-bit types are upcast.
        target: ``(N,)`` or ``(N, ...)`` integer class indices in ``[0, C)``.
        sample_weight: ``(N,)`` or ``(N, ...)`` weights >= 0 of the samples. Default: 1.
        num_classes: C, at least 2.
        from_logits: Whether ``preds`` are logits rather than probabilities; never guessed from the values.
        epsilon: The smallest probability, in [0, 1); smaller probabilities are raised to it.
        ignore_index: Label of samples to leave out.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Section 3 (r = 0).

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
        >>> geometric_accuracy(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.6000, dtype=torch.float64)
    """
    measure = GeometricAccuracy(num_classes, from_logits, ignore_index, epsilon)
    return measure(preds, target, sample_weight)


def decisiveness(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    from_logits: bool = True,
    epsilon: float = 0.005,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the arithmetic mean of the probability of the true class; in [0, 1], higher is better.

    It is hardly sensitive to small probabilities. Arguments, result and errors are those of `geometric_accuracy`.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Section 3 (r = 1).

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
        >>> decisiveness(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.6500, dtype=torch.float64)
    """
    measure = Decisiveness(num_classes, from_logits, ignore_index, epsilon)
    return measure(preds, target, sample_weight)


def robustness(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    from_logits: bool = True,
    epsilon: float = 0.005,
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the generalized mean, with power -2/3, of the probability of the true class; in [0, 1], higher is better.

    A few true classes with probabilities near 0 lower this mean strongly, so it depends much on ``epsilon``. Arguments,
    result and errors are those of `geometric_accuracy`.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Section 3 (r = -2/3).

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
        >>> robustness(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.5684, dtype=torch.float64)
    """
    measure = Robustness(num_classes, from_logits, ignore_index, epsilon)
    return measure(preds, target, sample_weight)


def overconfidence(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    from_logits: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean confidence in decisions minus their accuracy; in [-1, 1], 0 is best.

    .. math:: \frac{1}{N} \sum_n \max_c p_{nc} - [\hat{y}_n = y_n]

    The confidence in a decision is the probability of the most probable class. Above 0, the classifier is surer than it
    should be. A value of 0 does not mean that it is calibrated: doubt can be too large in some places, and too small in
    others. Arguments and errors are those of `geometric_accuracy`, without ``epsilon``.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples.

    References:
        Guo, Pleiss, Sun, Weinberger: On Calibration of Modern Neural Networks, ICML 2017, Section 2 (the gap between
        confidence and accuracy).

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.6, 0.4]])
        >>> overconfidence(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.2500, dtype=torch.float64)
    """
    measure = Overconfidence(num_classes, from_logits, ignore_index)
    return measure(preds, target, sample_weight)


class Overconfidence(ProbabilityMeasure):
    """The measure of `overconfidence`."""

    direction = None
    limits = (-1.0, 1.0)
    interval_rule = "bounded"
    row_limits = (-1, 1)

    def term(self, samples: Samples) -> Tensor:
        """Return the confidence in the decision, minus 1 if it is right."""
        confidence, decided = samples.probs().max(dim=1)
        return widened(confidence) - widened(decided == samples.labels.target)


def prob_of_true_class(samples: Samples) -> Tensor:
    """Return the probability of the true class of each sample: (M,)."""
    return samples.true_class_values(samples.probs())


def floored_powers(probs: Tensor, power: float, epsilon: float) -> Tensor:
    """Return powers (for power 0, logarithms) of ``probs`` clamped to >= ``epsilon``: float64 (float32 on MPS)."""
    floored = widened(probs).clamp(min=epsilon)
    return floored.log() if power == 0 else floored**power


def mean_from_total(total: Tensor, weight: Tensor, power: float) -> Tensor:
    """Return the generalized mean with the exponent ``power``, from the weighted sum of powers and the total weight."""
    mean = total / weight
    return mean.exp() if power == 0 else mean ** (1 / power)


def means_from_probs(probs: Tensor, weights: Tensor, epsilon: float) -> ProbabilityMeans:
    """Return geometric accuracy, decisiveness and robustness of ``probs`` with ``weights``."""
    return means_of_sums(power_sums(probs, weights, epsilon), weights.sum())


def power_sums(probs: Tensor, weights: Tensor, epsilon: float) -> Tensor:
    """Return weighted sums (3,) of log p, p and p^(-2/3), where p are ``probs`` clamped to >= ``epsilon``."""
    sums: list[Tensor] = []  # torch.compile cannot trace list[Tensor]()
    for power in POWERS:
        powers = floored_powers(probs, power, epsilon)
        # A power may be infinite, and infinity times the weight 0 is NaN.
        sums.append(torch.where(weights > 0, weights * powers, 0.0).sum())
    return torch.stack(sums)


def means_of_sums(sums: Tensor, weight: Tensor) -> ProbabilityMeans:
    """Return geometric accuracy, decisiveness and robustness from their power ``sums`` (3,) and the total weight."""
    return ProbabilityMeans(
        mean_from_total(sums[0], weight, GEOMETRIC),
        mean_from_total(sums[1], weight, DECISIVE),
        mean_from_total(sums[2], weight, ROBUST),
    )


def check_floor(epsilon: float) -> None:
    """Check that ``epsilon``, the smallest probability, is in [0, 1)."""
    require(0 <= epsilon < 1, "from_below", "epsilon", epsilon, minimum=0, maximum=1)


@dataclass(eq=False)
class GeometricAccuracy(ProbabilityMeasure):
    """The measure of `geometric_accuracy`, and the base of that of other generalized means."""

    epsilon: float = 0.005

    sums_settings = ("power", "num_classes", "from_logits", "epsilon", "ignore_index")
    direction = "max"
    limits = (0.0, 1.0)
    interval_rule: ClassVar[IntervalRule] = "mean"
    power: ClassVar[float] = GEOMETRIC

    def __post_init__(self) -> None:
        """Check the floor."""
        check_floor(self.epsilon)
        super().__post_init__()

    def term(self, samples: Samples) -> Tensor:
        """Return p ** ``power``, or log(p) for the geometric mean, (M,); p is the probability of the true class."""
        return floored_powers(prob_of_true_class(samples), self.power, self.epsilon)

    def value(self, sums: WeightedSum) -> Tensor:
        """Return the generalized mean over samples; NaN if there are no samples."""
        return mean_from_total(sums.total, sums.weight, self.power)

    def value_from_ratio(self, ratio: float, whole: WeightedSum) -> float:  # noqa: ARG002  # the same for any samples
        """Return the generalized mean of probabilities, given ``ratio``, the mean of the terms."""
        if self.power == GEOMETRIC:
            return min(1.0, exp(ratio))
        if ratio > 0:
            return min(1.0, float(ratio ** (1 / self.power)))
        return 1.0 if self.power < 0 else 0.0

    def row_ratios(self, whole: WeightedSum) -> Ratios:  # noqa: ARG002  # the same for any samples
        """Return the terms of the extreme probabilities, each with the denominator 1; empty if a term has no bound."""
        if self.epsilon == 0 and self.power != DECISIVE:
            return []
        if self.power == GEOMETRIC:
            return [(log(self.epsilon), 1), (0, 1)]
        return [(self.epsilon**self.power, 1), (1, 1)]


class Decisiveness(GeometricAccuracy):
    """The measure of `decisiveness`."""

    power = DECISIVE


class Robustness(GeometricAccuracy):
    """The measure of `robustness`."""

    power = ROBUST
    # The mean is dominated by rare unlikely labels, which a sample of 100 often lacks.
    interval_rule = "bounded"


def generalized_mean_loss(batch: LossBatch, power: float) -> Tensor:
    """Compute the loss `mpcs_torch.learning.GeneralizedMeanLoss`, a scalar, with the exponent ``power``."""
    counts = widened(batch.mass())
    mass = counts
    if batch.is_soft:
        share_weight = batch.class_shares().sum(dim=1)
        logs = -batch.cross_entropy() / share_weight
        mass = widened(share_weight) * counts
    else:
        # Class weights are in the mass of a sample, so they must not be in its logarithm.
        unweighted = batch._replace(settings=batch.settings._replace(weight=None))
        logs = -unweighted.cross_entropy()  # 0 for ignored samples
    # A weight of 0 also drops a sample whose true class is impossible.
    logs = widened(torch.where(mass == 0, 0.0, logs))
    total = mass.sum()
    if abs(power) < 1e-8:  # rounding errors are larger than the difference to the power 0
        log_mean = (mass * logs).sum() / total
    else:
        log_mean = (torch.logsumexp(power * logs + mass.log(), dim=0) - total.log()) / power
    return -(log_mean * (total / counts.sum())).to(batch.scores.dtype)


OverClasses = Literal["sum", "mean"]


def brier_score(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    over_classes: OverClasses = "sum",
    from_logits: bool = True,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the Brier score of probabilities; in [0, 2] (mean over classes: [0, 2 / C]), lower is better.

    .. math:: \frac{1}{N} \sum_n \sum_c (p_{nc} - [y_n = c])^2

    ``over_classes`` is ``"sum"`` as in the equation, or ``"mean"`` to divide it by C, as the MPCS paper does. The other
    arguments, the result and the errors are those of `geometric_accuracy`, without ``epsilon``.

    References:
        Brier: Verification of forecasts expressed in terms of probability, Monthly Weather Review 78, 1950, Eq. 2.

    Example:
        >>> probs = torch.tensor([[0.75, 0.25], [0.5, 0.5]])
        >>> brier_score(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.3125, dtype=torch.float64)
    """
    measure = BrierScore(num_classes, from_logits, ignore_index, over_classes)
    return measure(preds, target, sample_weight)


@dataclass(eq=False)
class TopKAccuracy(ProbabilityMeasure):
    """The share of samples whose class is among the ``top_k`` highest scores; ties go to the lower class index."""

    top_k: int = 2

    sums_settings: ClassVar[tuple[str, ...]] = (*ProbabilityMeasure.sums_settings, "top_k")
    direction = "max"
    limits = (0.0, 1.0)
    interval_rule = "bounded"
    row_limits = (0, 1)

    def term(self, samples: Samples) -> Tensor:
        """Return whether fewer than ``top_k`` classes are before the true class: (M,)."""
        target = samples.labels.target.unsqueeze(1)
        of_target = samples.scores.gather(1, target)
        is_lower_index = torch.arange(self.num_classes, device=target.device) < target
        is_before = (samples.scores > of_target) | (
            (samples.scores == of_target) & is_lower_index
        )
        return (is_before.sum(1) < self.top_k).double()


@dataclass(eq=False)
class BrierScore(ProbabilityMeasure):
    """The measure of `brier_score`."""

    over_classes: OverClasses = "sum"

    limits = (0.0, 2.0)
    interval_rule = "mean"
    row_limits = (0, 2)

    def __post_init__(self) -> None:
        """Check the settings."""
        check_choice("over_classes", self.over_classes, OverClasses)
        super().__post_init__()

    def term(self, samples: Samples) -> Tensor:
        """Return the sum of squared differences of probabilities and one-hot label for each sample: (M,)."""
        # exp(log_softmax) and softmax differ in the last digit; records of training runs contain the former.
        probs = samples.probs() if samples.scale == "probs" else samples.log_probs().exp()
        label = samples.labels.target.unsqueeze(1)
        minus_one = torch.full_like(label, -1, dtype=probs.dtype)
        squares = probs.scatter_add(1, label, minus_one).square()
        return widened(squares).sum(1)  # faster than a sum with a dtype

    def value(self, sums: WeightedSum) -> Tensor:
        """Return the mean over samples; NaN if there are no samples."""
        if self.over_classes == "sum":
            return sums.total / sums.weight
        return sums.total / (sums.weight * self.num_classes)

    def value_from_ratio(self, ratio: float, whole: WeightedSum) -> float:  # noqa: ARG002  # the same for any samples
        """Return ``ratio``, divided by the number of classes if ``over_classes`` is ``"mean"``."""
        return ratio if self.over_classes == "sum" else ratio / self.num_classes


def cross_entropy(
    preds: Tensor,
    target: Tensor,
    sample_weight: Tensor | None = None,
    *,
    num_classes: int,
    from_logits: bool = True,
    normalized: bool = False,
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the mean cross entropy of probabilities; in nats, lower is better, 0 is perfect.

    .. math:: \frac{1}{N} \sum_n -\log p_{n y_n}

    This is `torch.nn.functional.cross_entropy`, summed in float64; probabilities are accepted too. Set ``normalized``
    if the logits are log-probabilities: this saves a `log_softmax`. The other arguments and errors are those of
    `geometric_accuracy`, without ``epsilon``.

    Returns:
        A float64 scalar (float32 on MPS); NaN without samples, infinite if a true class has probability 0.

    Example:
        >>> probs = torch.tensor([[0.5, 0.5], [0.2, 0.8]])
        >>> cross_entropy(probs, torch.tensor([0, 1]), num_classes=2, from_logits=False)
        tensor(0.4581, dtype=torch.float64)
    """
    measure = CrossEntropy(num_classes, from_logits, ignore_index, normalized)
    return measure(preds, target, sample_weight)


UNSEEN_LOSS = -log(MIN_PROBABILITY)
"""The loss that intervals assume for one unseen sample, because test sets often lack confidently wrong samples."""


@dataclass(eq=False)
class CrossEntropy(ProbabilityMeasure):
    """The measure of `cross_entropy`."""

    normalized: bool = False

    sums_settings = ("num_classes", "from_logits", "normalized", "ignore_index")
    interval_rule = "mean"
    row_limits = (0.0, UNSEEN_LOSS)
    has_range = False

    def __post_init__(self) -> None:
        """Check the settings."""
        require(
            self.from_logits or not self.normalized,
            "needs",
            "normalized=True",
            other="from_logits=True",
        )
        super().__post_init__()

    @property
    def scale(self) -> Scale:
        """The scale of ``preds``."""
        return "log_probs" if self.normalized else input_scale(self.from_logits)

    def term(self, samples: Samples) -> Tensor:
        """Return -log of the probability of the true class of each sample: (M,), float64 (float32 on MPS)."""
        if samples.scale == "probs":
            return -widened(prob_of_true_class(samples)).log()
        return -widened(samples.true_class_values(samples.log_probs()))
