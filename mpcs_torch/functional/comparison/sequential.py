r"""Tests and intervals for error rates and mean losses that stay valid at every look at a growing set of samples.

Let losses x in [0, 1] arrive one after another. For a limit p and any rate q in (0, 1), the product of

.. math:: (q / p)^{x_i} ((1 - q) / (1 - p))^{1 - x_i}

is a nonnegative supermartingale if the conditional mean of each loss is p, or at most p for q > p. So is a mixture over
q. By Ville's inequality, such a product ever reaches :math:`1 / \delta` with a probability of at most :math:`\delta`.
For losses of 0 and 1 it is the likelihood ratio. Only the number and the sum of losses matter. A factor may have an
exponent w from 0 to 1: a sample that is labelled with chance a gets w = min a / a.
"""

from math import log
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, require
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, LEVEL, check_confidence

ALTERNATIVES = 25
"""The number of rates q in `anytime_evidence`."""
MIN_STAKE = 1.2
"""The lowest odds of a rate q divided by the odds of the limit."""
MAX_STAKE = 40.0
"""The highest odds of a rate q divided by the odds of the limit."""
MAX_LABELS = 100_000
"""The highest number of labels that `labels_to_alarm` returns."""
AT_ONCE = 64
"""The number of labels for which `labels_to_alarm` computes the evidence at once."""


class AnytimeInterval(NamedTuple):
    """The lower and the upper end of the interval of the mean loss, from all losses so far."""

    low: Tensor
    high: Tensor


def anytime_evidence(loss: Tensor, samples: Tensor, *, limit: float | Tensor) -> Tensor:
    r"""Compute the evidence that the mean loss is above a limit; from 20 on, it is significant at the level 1 / 20.

    Let k be the sum of the losses, n their number, and p the limit. The evidence is the mean of the likelihood ratios
    :math:`(q / p)^k ((1 - q) / (1 - p))^{n - k}` over 25 rates q, whose odds are log-spaced from 1.2 to 40 times those
    of p. If the expected loss of each sample, given the samples before it, is at most p, the probability that the
    evidence ever reaches :math:`1 / \delta` is at most :math:`\delta`. For evidence that the mean is *below* p, pass
    ``samples - loss`` as ``loss`` and ``1 - p`` as ``limit``.

    Args:
        loss: ``(...)`` k, the sum of the losses so far. Each is from 0 to 1, and may have a weight from 0 to 1.
        samples: ``(...)`` n, the number of losses or, if they have weights, the sum of the weights.
        limit: p, the highest acceptable mean loss, above 0 and below 1; a number or ``(...)``.

    Returns:
        The evidence, ``(...)``, float64. It is 1 if there are no samples.

    Raises:
        ValueError: If an argument breaks its rule.

    References:
        Robbins: Statistical Methods Related to the Law of the Iterated Logarithm, Annals of Mathematical Statistics
        41(5), 1970 (mixtures). Ville: Etude critique de la notion de collectif, 1939.

    Example:
        >>> samples = torch.tensor([0, 200, 200])
        >>> anytime_evidence(torch.tensor([0, 1, 8]), samples, limit=0.01).round(decimals=2)
        tensor([ 1.0000,  0.1100, 44.4800], dtype=torch.float64)
    """
    loss, samples = _checked(loss, samples)
    limits = torch.as_tensor(limit, dtype=torch.float64, device=loss.device)
    is_share = ((limits > 0) & (limits < 1)).all()
    require(is_share, "open_between", "limit", limits.tolist(), minimum=0, maximum=1)
    return mean_product(loss, samples, limits)


def mean_product(loss: Tensor, samples: Tensor, limits: Tensor) -> Tensor:
    """Return the value of `anytime_evidence`, without checks, which would wait for an accelerator."""
    log_sum = log_products(loss, samples, limits).logsumexp(dim=-1)
    return (log_sum - log(ALTERNATIVES)).exp()


def log_products(loss: Tensor, samples: Tensor, limits: Tensor) -> Tensor:
    """Return the logs of the likelihood ratios in `anytime_evidence`, for each of 25 rates: (..., 25)."""
    factors = torch.logspace(
        log(MIN_STAKE),
        log(MAX_STAKE),
        ALTERNATIVES,
        base=torch.e,
        dtype=limits.dtype,
        device=loss.device,
    )
    # A loss of 0 multiplies the ratio by (1 - q) / (1 - p), and a loss of 1 by q / p, which is this times the factor.
    log_for_0 = -torch.log1p(limits.unsqueeze(-1) * (factors - 1))
    return samples.unsqueeze(-1) * log_for_0 + loss.unsqueeze(-1) * factors.log()


def labels_to_alarm(
    rate: float, *, limit: float, level: float = LEVEL, chance: float = 0.5
) -> int:
    """Compute the number of labels within which a rate above the limit raises an alarm with probability ``chance``.

    The number is exact if errors are independent and have this rate from the first label on. If a random share of the
    samples is labelled, divide by this share to get the number of samples. For K monitored rates, use ``level / K``.

    Args:
        rate: The true rate, above the limit and below 1.
        limit: The highest acceptable rate, above 0.
        level: The highest acceptable probability of a false alarm, above 0 and below 1.
        chance: The probability of an alarm within the returned number of labels, above 0 and below 1.

    Raises:
        ValueError: If an argument breaks its rule, or more than 100 000 labels are needed.

    Example:
        >>> labels_to_alarm(0.02, limit=0.005), labels_to_alarm(0.02, limit=0.005, chance=0.9)
        (256, 721)
    """
    require(0 < limit < rate < 1, "above_limit", "rate", rate, limit=limit)
    for name, value in (("level", level), ("chance", chance)):
        check_confidence(value, name)
    # For each number of errors, the probability that it occurs without an alarm so far.
    no_alarm = np.ones(1)
    for start in range(1, MAX_LABELS, AT_ONCE):
        labels = torch.arange(start, start + AT_ONCE, dtype=torch.float64).unsqueeze(1)
        first = len(no_alarm) - 1  # more labels never need fewer errors
        errors = torch.arange(first, first + AT_ONCE + 1, dtype=torch.float64)
        evidence = anytime_evidence(errors.minimum(labels), labels, limit=limit)
        # The numbers of errors that raise an alarm after each number of labels: evidence grows with errors.
        errors_to_alarm = first + (evidence < 1 / level).sum(dim=1)
        for offset, alarm_at in enumerate(errors_to_alarm.tolist()):
            no_alarm = np.convolve(no_alarm, [1 - rate, rate])[:alarm_at]
            if no_alarm.sum() <= 1 - chance:
                return start + offset
    raise InvalidValueError("seen_within", "rate", rate, labels=MAX_LABELS, limit=limit)


def e_benjamini_hochberg(evidence: Tensor, *, level: float = LEVEL) -> Tensor:
    r"""Select the hypotheses that are rejected at a false discovery rate (e-BH).

    Let :math:`E_{(k)}` be the k-th highest evidence of K hypotheses. The k hypotheses with the highest evidence are
    rejected, with the largest k for which :math:`E_{(k)} \ge K / (k \cdot \mathrm{level})`. Under any dependence, the
    false discovery rate is at most ``level``; if all hypotheses are true, so is the probability of ever rejecting one.

    Args:
        evidence: ``(..., K)`` the evidence against each hypothesis, from `anytime_evidence`.
        level: The highest acceptable false discovery rate, above 0 and below 1.

    Returns:
        ``(..., K)``, bool: whether each hypothesis is rejected.

    References:
        Wang, Ramdas: False Discovery Rate Control with E-values, Journal of the Royal Statistical Society B 84(3),
        2022.

    Example:
        >>> e_benjamini_hochberg(torch.tensor([1.0, 50.0, 0.2, 30.0]))
        tensor([False, False, False, False])
        >>> e_benjamini_hochberg(torch.tensor([1.0, 50.0, 0.2, 40.0]))
        tensor([False,  True, False,  True])
    """
    check_confidence(level, "level")
    evidence = torch.as_tensor(evidence).double()
    number = evidence.shape[-1]
    descending = evidence.sort(dim=-1, descending=True).values
    ranks = torch.arange(1, number + 1, device=evidence.device)
    passes = descending >= number / (ranks * level)
    threshold = torch.where(passes, descending, torch.inf).amin(dim=-1, keepdim=True)
    return evidence >= threshold


def anytime_interval(
    loss: Tensor, samples: Tensor, *, confidence: float = CONFIDENCE
) -> AnytimeInterval:
    r"""Compute a confidence sequence: with probability ``confidence``, the intervals at all times contain the mean.

    With the sum k of the losses so far and their number n, an interval contains all p for which

    .. math:: \frac{B(k + 1/2, n - k + 1/2)}{B(1/2, 1/2) \, p^k (1 - p)^{n - k}} < \frac{1}{1 - \mathrm{confidence}}

    Args:
        loss: ``(...)`` k, the sum of the losses so far. Each is from 0 to 1, and may have a weight from 0 to 1.
        samples: ``(...)`` n, the number of losses or, if they have weights, the sum of the weights.
        confidence: The probability that the intervals at all times contain the mean, above 0 and below 1.

    Returns:
        The lower and the upper end, ``(...)`` each, float64. They are 0 and 1 if there are no samples.

    Raises:
        ValueError: If an argument breaks its rule.

    References:
        Robbins, Siegmund: Boundary Crossing Probabilities for the Wiener Process and Sample Sums, Annals of
        Mathematical Statistics 41(5), 1970.

    Example:
        >>> low, high = anytime_interval(torch.tensor([0, 8]), torch.tensor([200, 200]))
        >>> low, high
        (tensor([0.0000, 0.0089], dtype=torch.float64), tensor([0.0306, 0.1060], dtype=torch.float64))
    """
    check_confidence(confidence)
    loss, samples = _checked(loss, samples)
    half = torch.full_like(loss, 0.5)
    mixed = _log_beta(loss + half, samples - loss + half) - _log_beta(half, half)
    return _ends(loss, samples, mixed + log(1 - confidence))


def chernoff_interval(
    loss: Tensor, samples: Tensor, *, confidence: float
) -> AnytimeInterval:
    r"""Compute the confidence interval of the mean of losses in [0, 1], if their number is fixed in advance.

    With the sum k of the losses and their number n, the interval contains all p with :math:`n \, \mathrm{KL}(k / n, p)
    < \log(2 / (1 - \mathrm{confidence}))`. KL is the divergence of the Bernoulli distributions with the means k / n and
    p. The arguments are those of `anytime_interval`.

    References:
        Hoeffding: Probability Inequalities for Sums of Bounded Random Variables, Journal of the American Statistical
        Association 58, 1963, Theorem 1.
    """
    loss, samples = _checked(loss, samples)
    maximum = (
        torch.xlogy(loss, loss)
        + torch.xlogy(samples - loss, samples - loss)
        - torch.xlogy(samples, samples)
    )
    return _ends(loss, samples, maximum - log(2 / (1 - confidence)))


def _ends(loss: Tensor, samples: Tensor, threshold: Tensor) -> AnytimeInterval:
    """Find the lowest and the highest rate with a log-likelihood above ``threshold``, by bisection."""

    def is_inside(rate: Tensor) -> Tensor:
        return torch.xlogy(loss, rate) + torch.xlogy(samples - loss, 1 - rate) > threshold

    # The maximum; without samples, all rates are inside.
    mean = loss / samples.clamp(min=1e-300)

    def end_towards(border: Tensor) -> Tensor:
        """Return the end between the mean and ``border``, which is 0 or 1; ``border`` itself if it is inside."""
        inside = mean
        outside = border
        for _ in range(60):  # to the precision of float64
            middle = (inside + outside) / 2
            moves = is_inside(middle)
            inside = torch.where(moves, middle, inside)
            outside = torch.where(moves, outside, middle)
        return torch.where(is_inside(border), border, outside)

    low = end_towards(torch.zeros_like(mean))
    return AnytimeInterval(low, end_towards(torch.ones_like(mean)))


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)


def _checked(loss: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
    """Return both sums as float64 of the same shape; refuse a sum of losses above the number, but for rounding."""
    loss = torch.as_tensor(loss).double()
    samples = torch.as_tensor(samples).double()
    loss, samples = torch.broadcast_tensors(loss, samples)  # type: ignore[no-untyped-call]
    is_valid = ((samples >= 0) & (loss >= 0) & (loss <= samples * (1 + 1e-9))).all()
    require(is_valid, "sums_of_losses", "loss")
    return loss, samples
