"""The mean loss of samples of which only some are labelled, with the help of predicted losses."""

from math import nan
from typing import NamedTuple

import torch
from torch import Tensor

FEWEST = 10
"""With fewer labelled samples that have a loss, the interval does not hold."""


class AuditedMean(NamedTuple):
    """A mean loss, estimated from an audit."""

    value: float
    low: float
    """The lower end of the interval; NaN with fewer than 10 labelled samples that have a loss."""
    high: float


def audited_mean(loss: Tensor, predicted: Tensor, chance: Tensor, *, confidence: float = 0.95) -> AuditedMean:
    r"""Estimate the mean loss of all samples from those that were labelled at random, and predictions for all.

    .. math:: \frac{1}{N} \sum_i \frac{l_i}{a_i} x_i - \lambda f_i \left( \frac{l_i}{a_i} - 1 \right)

    with :math:`l_i` = 1 for labelled samples, and the :math:`\lambda` that minimizes the variance (prediction-powered
    inference): it is unbiased whatever the predictions are, and the better they are, the shorter is the interval. The
    interval is of independent samples at one time. To look again and again, use `mpcs_torch.monitoring.RiskMonitor`.

    Args:
        loss: x, ``(N,)``: NaN for samples without a label.
        predicted: f, ``(N,)``: predicted losses, such as the risk that a `DecisionRule` estimates.
        chance: a, ``(N,)``: the probability with which each sample was chosen to be labelled, above 0 and at most 1.
        confidence: The probability that the interval holds the mean.

    Raises:
        ValueError: If an argument breaks its rule, or there are fewer than two samples.

    References:
        Angelopoulos, Duchi, Zrnic: PPI++: Efficient Prediction-Powered Inference, arXiv 2311.01453, 2023, Eq. 4.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> risk = torch.rand(20_000, generator=generator) ** 4
        >>> wrong = (torch.rand(20_000, generator=generator) < risk).double()
        >>> labelled = torch.rand(20_000, generator=generator) < 0.1
        >>> audit = audited_mean(wrong.where(labelled, torch.nan), risk, torch.full((20_000,), 0.1))
        >>> print(f"{wrong.mean():.3f}: {audit.value:.3f} [{audit.low:.3f}, {audit.high:.3f}]")
        0.198: 0.192 [0.179, 0.205]
    """
    loss, predicted, chance = (torch.as_tensor(values).double().cpu() for values in (loss, predicted, chance))
    if loss.ndim != 1 or not loss.shape == predicted.shape == chance.shape or len(loss) < 2:
        shapes = tuple(loss.shape), tuple(predicted.shape), tuple(chance.shape)
        raise ValueError(f"loss, predicted and chance must have the same shape (N,), N at least 2, but got {shapes}.")
    if not ((chance > 0) & (chance <= 1)).all():
        raise ValueError("chance must be above 0 and at most 1, but is not for all samples.")
    if not predicted.isfinite().all():
        raise ValueError("predicted must be finite, but is not for all samples.")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, but got {confidence}.")
    weight = torch.where(loss.isnan(), 0.0, 1 / chance)
    weighted, control = weight * loss.nan_to_num(0.0), predicted * (weight - 1)
    spread = control - control.mean()
    share = (spread @ weighted) / (spread @ spread) if spread.any() else torch.tensor(0.0).double()
    rows = weighted - share * control
    value = rows.mean().item()
    if (loss > 0).sum() < FEWEST:
        return AuditedMean(value, nan, nan)
    from scipy.special import stdtrit  # scipy.stats takes longer to import

    half = stdtrit(len(rows) - 1, (1 + confidence) / 2) * (rows.std() / len(rows) ** 0.5).item()
    return AuditedMean(value, value - half, value + half)
