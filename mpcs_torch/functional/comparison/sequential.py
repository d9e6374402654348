r"""Evidence and intervals that stay valid however often one looks, for rates and for bounded mean losses.

Losses come one after the other, each in [0, 1], with a mean of at most p given those before. For any q in (0, 1), the
product of

.. math:: (q / p)^{x_i} ((1 - q) / (1 - p))^{1 - x_i}

is then a nonnegative supermartingale as long as p is the mean (for losses of 0 and 1 it is the likelihood ratio, and
between them it lies below the chord), or at least the mean if q > p. It depends on the number of losses and their sum
alone, so that batches and processes add up. So does a mixture over q. By Ville's inequality, the probability that it
ever reaches :math:`1 / \delta` is at most :math:`\delta`.
"""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

ALTERNATIVES, LEAST, MOST = 25, 1.2, 40.0
"""The rates that evidence is a mixture over: from so many to so many times the limit."""
HALVINGS = 60
"""Of an interval, to the precision of float64."""


class AnytimeInterval(NamedTuple):
    """An interval that holds the mean at all times."""

    low: Tensor
    high: Tensor


def anytime_evidence(loss: Tensor, samples: Tensor, *, limit: float) -> Tensor:
    r"""Compute the evidence that the mean loss is above a limit; 20 or more rejects the limit with error 1 / 20.

    The mixture of the products above over 25 rates q from 1.2 to 40 times the limit, evenly on a logarithmic scale.
    The probability that the evidence ever reaches :math:`1 / \delta` is at most :math:`\delta`, if the mean loss of
    each sample, given those before, is at most the limit.

    Args:
        loss: ``(...)`` the sums of losses so far, each from 0 to 1.
        samples: ``(...)`` the numbers of losses.
        limit: The highest acceptable mean loss, above 0 and below 1.

    Returns:
        ``(...)``, float64: 1 without samples.

    Raises:
        ValueError: If an argument breaks its rule.

    References:
        Robbins: Statistical Methods Related to the Law of the Iterated Logarithm, Annals of Mathematical Statistics
        41(5), 1970 (mixtures). Ville: Etude critique de la notion de collectif, 1939.

    Example:
        >>> samples = torch.tensor([0, 200, 200])
        >>> anytime_evidence(torch.tensor([0, 1, 8]), samples, limit=0.01).round(decimals=2)
        tensor([ 1.0000,  0.1100, 42.6900], dtype=torch.float64)
    """
    if not 0 < limit < 1:
        raise ValueError(f"limit must be above 0 and below 1, but got {limit}.")
    loss, samples = _checked(loss, samples)
    factors = torch.logspace(log(LEAST), log(MOST), ALTERNATIVES, base=torch.e, dtype=torch.float64, device=loss.device)
    rates = (limit * factors).clamp(max=(1 + limit) / 2)
    ratios = loss.unsqueeze(-1) * (rates / limit).log()
    ratios = ratios + (samples - loss).unsqueeze(-1) * ((1 - rates) / (1 - limit)).log()
    return (ratios.logsumexp(dim=-1) - log(ALTERNATIVES)).exp()


def anytime_interval(loss: Tensor, samples: Tensor, *, confidence: float = 0.95) -> AnytimeInterval:
    r"""Compute an interval that holds the mean loss at all times, with one probability for all of them.

    All p that the mixture over q with the density Beta(1/2, 1/2) does not reject:

    .. math:: \frac{B(k + 1/2, n - k + 1/2)}{B(1/2, 1/2) \, p^k (1 - p)^{n - k}} < \frac{1}{1 - \mathrm{confidence}}

    Args:
        loss: ``(...)`` the sums of losses so far, k, each loss from 0 to 1.
        samples: ``(...)`` the numbers of losses, n.
        confidence: The probability that the interval holds the mean at all times, above 0 and below 1.

    Returns:
        Ends of shape ``(...)``, float64: 0 and 1 without samples.

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
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, but got {confidence}.")
    loss, samples = _checked(loss, samples)
    half = torch.full_like(loss, 0.5)
    mixed = _log_beta(loss + half, samples - loss + half) - _log_beta(half, half)

    def is_held(rate: Tensor) -> Tensor:
        likelihood = torch.xlogy(loss, rate) + torch.xlogy(samples - loss, 1 - rate)
        return mixed - likelihood < -log(1 - confidence)

    mean = torch.where(samples > 0, loss / samples.clamp(min=1), half)
    ends = []
    for outside in (torch.zeros_like(mean), torch.ones_like(mean)):
        inside, beyond = mean, outside
        for _ in range(HALVINGS):
            middle = (inside + beyond) / 2
            is_inside = is_held(middle)
            inside, beyond = torch.where(is_inside, middle, inside), torch.where(is_inside, beyond, middle)
        ends.append(torch.where(is_held(outside), outside, beyond))
    return AnytimeInterval(*ends)


def _log_beta(a: Tensor, b: Tensor) -> Tensor:
    return torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)


def _checked(loss: Tensor, samples: Tensor) -> tuple[Tensor, Tensor]:
    loss, samples = torch.as_tensor(loss).double(), torch.as_tensor(samples).double()
    loss, samples = loss + 0 * samples, samples + 0 * loss  # of the same shape
    if not ((samples >= 0) & (loss >= 0) & (loss <= samples * (1 + 1e-9))).all():
        raise ValueError("loss must be sums of losses from 0 to 1, so at least 0 and at most samples, but is not.")
    return loss, samples
