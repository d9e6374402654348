"""Thresholds on the estimated risk of a decision that hold the true risk under a limit."""

from math import ceil, expm1, floor, log, log1p, log10
from typing import NamedTuple

import torch
from torch import Tensor


class UnattainableLimitError(ValueError):
    """A limit that so few samples cannot guarantee at any threshold."""

    def __init__(
        self, limit: float, sure: str, samples: int, lowest: float, needed: int, name: str = "max_loss"
    ) -> None:
        self.limit, self.sure, self.samples, self.lowest, self.needed = limit, sure, samples, lowest, needed
        super().__init__(limit, sure, samples, lowest, needed, name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name} {self.limit:g} cannot be guaranteed {self.sure} by {self.samples} samples, unless all are "
            f"referred: they can guarantee {_rounded_up(self.lowest):g}, and {self.limit:g} takes {self.needed} "
            "samples."
        )

    def named(self, name: str, *, needed: int) -> "UnattainableLimitError":
        """Return the same error for a limit of another name that takes more samples."""
        return UnattainableLimitError(self.limit, self.sure, self.samples, self.lowest, needed, name)


class RiskThreshold(NamedTuple):
    """A threshold, and what it does to the samples that it was chosen by."""

    threshold: Tensor
    """Scalar: a sample is decided if its estimated risk is below it, and referred otherwise; infinite if all are."""
    coverage: Tensor
    """Scalar: the share of samples that are decided."""
    loss: Tensor
    """Scalar: the loss of the decided samples, summed, per sample."""


def risk_threshold(
    risk: Tensor, loss: Tensor, *, max_loss: float, confidence: float | None = None, highest_loss: float = 1.0
) -> RiskThreshold:
    r"""Choose the highest threshold on the estimated risk whose expected loss is at most a limit.

    The loss of a threshold t is that of the samples with a risk below t, per sample: a referred sample has none. It
    rises with t. Without ``confidence``, t is chosen by conformal risk control, and the expected loss of a new sample,
    over samples to choose by and new ones, is at most :math:`\alpha`:

    .. math:: t = \sup\{t : \sum_i L_i [r_i < t] + B \le \alpha (n + 1)\}

    With ``confidence`` :math:`1 - \delta`, losses are 0 or 1, and t is the last of a rising sequence of thresholds at
    which the exact binomial test still rejects that the expected loss is above :math:`\alpha` (Learn then Test). With
    at least this probability over samples to choose by, the expected loss of a new sample is at most :math:`\alpha`:

    .. math:: t = \sup\{t : P[\mathrm{Bin}(n, \alpha) \le \sum_i L_i [r_i < t]] \le \delta\}

    Both hold for any model, if samples to choose by and new ones are exchangeable, and neither the model nor the
    estimate of the risk has seen them.

    Args:
        risk: ``(N,)`` floating point estimates of the loss of each decision, whose order matters; without NaN.
        loss: ``(N,)`` losses of the decisions, from 0 to ``highest_loss``; with ``confidence`` bools or 0 and 1.
        max_loss: :math:`\alpha`, above 0 and below ``highest_loss``.
        confidence: :math:`1 - \delta`, above 0 and below 1. Default: the limit holds in expectation.
        highest_loss: B, the highest possible loss, above 0.

    Raises:
        ValueError: If an argument breaks its rule, or, an `UnattainableLimitError`, if so few samples cannot guarantee
            the limit at any threshold: the message says which limit they can guarantee, and how many it takes.

    References:
        Angelopoulos, Bates, Fisch, Lei, Schuster: Conformal Risk Control, ICLR 2024, Theorem 1. Angelopoulos, Bates,
        Candes, Jordan, Lei: Learn then Test, Annals of Applied Statistics 19(2), 2025, fixed sequence testing; because
        the loss rises with t, all thresholds may be tested instead of a grid.

    Example:
        >>> risk = torch.arange(1000) / 1000
        >>> loss = torch.arange(1000) >= 900  # the riskiest tenth is wrong
        >>> risk_threshold(risk, loss, max_loss=0.01, confidence=0.95).threshold
        tensor(0.9040)
    """
    _check(risk, loss, max_loss=max_loss, confidence=confidence, highest_loss=highest_loss)
    losses = loss.double()
    budget = _budget(len(risk), max_loss, confidence, highest_loss)
    order = risk.sort(stable=True)
    # The first sample, from the lowest risk on, that would break the budget, and all of the same risk, are referred.
    breaks = losses[order.indices].cumsum(0) > budget
    first = int(breaks.int().argmax()) if breaks.any() else None
    threshold = torch.tensor(torch.inf, dtype=risk.dtype) if first is None else order.values[first].cpu()
    decided = risk.cpu() < threshold
    return RiskThreshold(threshold, decided.double().mean(), (losses.cpu() * decided).mean())


def _budget(samples: int, max_loss: float, confidence: float | None, highest_loss: float) -> float:
    """Return how much loss the decided samples may have."""
    if confidence is None:
        budget = max_loss * (samples + 1) - highest_loss
        # A sum of losses that meets the limit exactly must not break it by rounding.
        if budget >= -1e-9 * highest_loss:
            return budget + 1e-9 * highest_loss
        lowest, needed = highest_loss / (samples + 1), ceil(highest_loss * (1 - 1e-9) / max_loss) - 1
        raise UnattainableLimitError(max_loss, "in expectation", samples, lowest, needed)
    allowed = _binomial_quantile(samples, max_loss, 1 - confidence)
    if allowed >= 0:
        return float(allowed)
    lowest = -expm1(log(1 - confidence) / samples) if samples else 1.0
    needed = ceil((log(1 - confidence) + 5e-13) / log1p(-max_loss))  # rounding must not ask for one more either
    raise UnattainableLimitError(max_loss, f"with confidence {confidence:g}", samples, lowest, needed)


def _binomial_quantile(samples: int, rate: float, level: float) -> int:
    """Return the largest k with P[Bin(samples, rate) <= k] <= level; -1 if there is none."""
    k = torch.arange(floor(samples * rate) + 1, dtype=torch.float64)  # above its mean, the probability exceeds 1/4
    if level > 0.25:
        k = torch.arange(samples + 1, dtype=torch.float64)
    n = torch.tensor(float(samples), dtype=torch.float64)
    choose = torch.lgamma(n + 1) - torch.lgamma(k + 1) - torch.lgamma(n - k + 1)
    cumulative = (choose + k * log(rate) + (n - k) * log1p(-rate)).exp().cumsum(0)
    # Where a sum meets the level exactly, rounding must not decide; the error grows with the samples (lgamma).
    return int((cumulative <= level * (1 + 1e-14 * max(samples, 100))).sum()) - 1


def _check(risk: Tensor, loss: Tensor, *, max_loss: float, confidence: float | None, highest_loss: float) -> None:
    if not risk.is_floating_point() or risk.ndim != 1 or risk.isnan().any():
        raise ValueError(f"risk must be floating point of shape (N,) without NaN, but got {risk.dtype} {risk.shape}.")
    if loss.shape != risk.shape:
        raise ValueError(f"loss must have the shape of risk {tuple(risk.shape)}, but got {tuple(loss.shape)}.")
    if not 0 < highest_loss < float("inf"):
        raise ValueError(f"highest_loss must be finite and above 0, but got {highest_loss}.")
    if not 0 < max_loss < highest_loss:
        raise ValueError(f"max_loss must be above 0 and below the highest loss {highest_loss:g}, but got {max_loss}.")
    if confidence is not None and not 0 < confidence < 1:
        raise ValueError(f"confidence must be above 0 and below 1, but got {confidence}.")
    values = loss.double()
    sound = (values == 0) | (values == 1) if confidence is not None else (values >= 0) & (values <= highest_loss)
    if not sound.all():
        rule = "0 or 1 (confidence takes no other losses)" if confidence is not None else f"from 0 to {highest_loss:g}"
        raise ValueError(f"loss must be {rule}, but got {values[~sound][0].item():g}.")


def _rounded_up(value: float) -> float:
    """Return the value with three digits, not below it."""
    unit = 10.0 ** (floor(log10(value)) - 2)
    return ceil(value / unit) * unit
