r"""Thresholds on the estimated risk of decisions that keep limits on errors.

Samples are decided one after the other along a path: at each step some more, from none to all. A sample may have
several answers, which become allowed at different steps; of those that are, it gets the cheapest. The path is fixed
before the samples that judge it are looked at, or follows one estimated risk. At each step every limit is tested, and
the path is followed as far as all tests pass (fixed sequence testing). If a limit does not hold at some step, the first
such step had to pass the test of a limit that does not hold there, which it does with a probability of at most
:math:`\delta`: so several limits, and limits of several groups, need no correction for each other.
"""

from math import inf
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.functional.concern.limited_rate import LimitedRate
from mpcs_torch.functional.inputs.confidence import check_confidence

Array = NDArray[np.float64]


def last_step(rates: list[LimitedRate], decided_at: Tensor, steps: int, *, first: int = 0) -> int:
    """Return the last step up to which, from a first one on, the tests of all limits pass; -1 if the first fails.

    Args:
        rates: The limits.
        decided_at: ``(N, K)``, int64: the first step at which each answer is allowed; ``steps`` for never.
        steps: Their number.
        first: The step to begin with: before it, too few samples may be decided to show anything.
    """
    passed = torch.ones(steps, dtype=torch.bool)
    for rate in rates:
        passed &= rate.passes(decided_at, steps)
    failed = (~passed[first:]).nonzero()
    last = steps - 1 if not len(failed) else first + int(failed[0]) - 1
    return -1 if last < first else last


def first_step(rates: list[LimitedRate], decided_at: Tensor, steps: int, *, times: float) -> int:
    """Return where to begin to test limits of decided samples, as other samples than those that judge foresee it.

    Before it, too few samples are decided to show that a limit holds.

    Args:
        rates: The limits, of the other samples.
        decided_at: ``(P, K)``: as in `last_step`.
        steps: The number of steps.
        times: The number of samples that will judge, divided by that of these.
    """
    foreseen = torch.zeros(steps, dtype=torch.float64)
    for rate in rates:
        if rate.confidence is not None:
            p_values = rate.p_values(decided_at, steps, times=times) / (1 - rate.confidence)
            foreseen = torch.maximum(foreseen, p_values)
    passing = (foreseen <= 0.2).nonzero()  # of the allowed p-value: if the first test fails, all do
    return int(passing[0] if len(passing) else foreseen.argmin())


def ends_of_steps(places: Tensor, *, rounding: float, most: int | None = None) -> Tensor:
    """Return the ends of the steps of a path, rising, the last infinite: (steps,), float64.

    They are midway between different places, so that no sample is decided by the last bit of its risk.

    Args:
        places: Of answers; those that are never given have infinite ones.
        rounding: The relative difference of places that may come from rounding.
        most: The most steps. Default: one for each different place.
    """
    different = places[places.isfinite()].double().unique()  # type: ignore[no-untyped-call]
    if most is not None and len(different) > most:
        different = different[torch.linspace(0, len(different) - 1, most).long()]
    low, high = different[:-1], different[1:]
    ends = (low + high)[high - low > rounding * high.abs()] / 2
    return torch.cat([ends, ends.new_tensor([inf])])


class RiskPath:
    """One scale for the estimated risks of several limits, on which each limit is used up alike.

    At a place s of the scale, each limit allows decisions up to a threshold at which, by the model's own estimates, the
    share s of the limit is used.

    Args:
        risk: ``(P, J)``, float64: the estimated risks of samples that judge nothing else.
        limits: ``(J,)``: the limit by the share of samples that it counts errors of.
        is_of_decided: By limit: whether it is on the mean risk of decided samples instead of all.
    """

    def __init__(self, risk: Tensor, limits: Tensor, is_of_decided: list[bool]) -> None:
        self._knots = list[tuple[Array, Array]]()
        for risks, limit, of_decided in zip(risk.double().T, limits.tolist(), is_of_decided, strict=True):
            ordered = risks[risks.isfinite()].sort().values
            number = torch.arange(1, len(ordered) + 1) if of_decided else len(ordered)
            used = ordered.cumsum(0) / number / limit + 1e-6 * ordered  # steps must rise where risks are 0
            last = ordered[-1:] if len(ordered) else ordered.new_zeros(1)
            top = used[-1:] if len(used) else used.new_zeros(1)
            # Ties have one place, the last of them.
            keep = torch.cat([ordered.diff() > 0, torch.ones(min(1, len(ordered)), dtype=torch.bool)]) & (ordered > 0)
            zero = ordered.new_zeros(1)
            at = torch.cat([zero, ordered[keep], last + 1])
            place = torch.cat([zero, used[keep], top + 1 / limit])
            self._knots.append((at.numpy(), place.cummax(0).values.numpy()))

    def place_of(self, risk: Tensor) -> Tensor:
        """Return the place of answers by their risks (..., J): (...), the highest of their limits."""
        by_limit = zip(risk.double().unbind(-1), self._knots, strict=True)
        places = [np.interp(risks.numpy(), *knots) for risks, knots in by_limit]
        return torch.from_numpy(np.max(places, axis=0))

    def thresholds_at(self, place: float) -> Tensor:
        """Return the threshold of each limit at a place of the scale: (J,), float64."""
        return torch.tensor([float(np.interp(place, scale, at)) for at, scale in self._knots], dtype=torch.float64)


class RiskThreshold(NamedTuple):
    """A threshold, and what it does to the samples that it was chosen by."""

    threshold: Tensor
    """Scalar: a sample is decided if its estimated risk is below it, and referred otherwise. It is midway between two
    risks, infinite if all are decided, and minus infinity if none is."""
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
        tensor(0.9035)
    """
    _check(risk, loss, max_loss=max_loss, confidence=confidence, highest_loss=highest_loss)
    sure = "in expectation" if confidence is None else f"with confidence {confidence:g}"
    losses, risks = loss.double().cpu(), risk.cpu()
    every = torch.ones(len(risk), 1, dtype=torch.bool)
    rate = LimitedRate(
        f"max_loss {max_loss:g} {sure}", max_loss, confidence, losses[:, None], every, highest_loss=highest_loss
    )
    rate.check_attainable()
    ends = ends_of_steps(risks, rounding=64 * torch.finfo(risk.dtype).eps)
    last = last_step([rate], torch.bucketize(risks.double(), ends, right=True)[:, None], len(ends))
    threshold = (ends[last] if last >= 0 else torch.tensor(-inf)).to(risk.dtype)
    decided = risks < threshold
    return RiskThreshold(threshold, decided.double().mean(), (losses * decided).mean())


def _check(risk: Tensor, loss: Tensor, *, max_loss: float, confidence: float | None, highest_loss: float) -> None:
    if not risk.is_floating_point() or risk.ndim != 1 or risk.isnan().any():
        raise ValueError(f"risk must be floating point of shape (N,) without NaN, but got {risk.dtype} {risk.shape}.")
    if loss.shape != risk.shape:
        raise ValueError(f"loss must have the shape of risk {tuple(risk.shape)}, but got {tuple(loss.shape)}.")
    if not 0 < highest_loss < float("inf"):
        raise ValueError(f"highest_loss must be finite and above 0, but got {highest_loss}.")
    if not 0 < max_loss < highest_loss:
        raise ValueError(f"max_loss must be above 0 and below the highest loss {highest_loss:g}, but got {max_loss}.")
    if confidence is not None:
        check_confidence(confidence)
    values = loss.double()
    sound = (values == 0) | (values == 1) if confidence is not None else (values >= 0) & (values <= highest_loss)
    if not sound.all():
        rule = "0 or 1 (confidence takes no other losses)" if confidence is not None else f"from 0 to {highest_loss:g}"
        raise ValueError(f"loss must be {rule}, but got {values[~sound][0].item():g}.")
