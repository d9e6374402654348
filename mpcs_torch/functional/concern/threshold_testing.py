r"""Thresholds on the estimated risk of decisions, chosen so that error rates stay within limits.

Each step of a path of thresholds decides more samples, from none to all. A sample may have several answers, which are
allowed from different steps on; it gets the cheapest allowed answer. Either the path does not depend on the calibration
set, or it follows a single estimated risk. All limits are tested at each step, until a test fails (fixed sequence
testing). The path can end at a step that violates a limit only if the first such step passes its test, which has a
probability of at most :math:`\delta`. So several limits, or limits of several groups, need no multiplicity correction.
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
    """Return the last step up to which all limits pass, starting at step ``first``; -1 if step ``first`` fails.

    Args:
        rates: The limits.
        decided_at: ``(N, K)``, int64: the first step at which each answer is allowed; ``steps`` for never.
        steps: The number of steps.
        first: The step at which to start testing, where enough samples are decided for the tests to have power.
    """
    passed = torch.ones(steps, dtype=torch.bool)
    for rate in rates:
        passed &= rate.passes(decided_at, steps)
    failed = (~passed[first:]).nonzero()
    last = steps - 1 if not len(failed) else first + int(failed[0]) - 1
    return -1 if last < first else last


def first_step(rates: list[LimitedRate], decided_at: Tensor, steps: int, *, times: float) -> int:
    """Return the step at which to start testing, predicted on other samples than those of the tests.

    At earlier steps, too few samples are decided to show that a limit holds.

    Args:
        rates: The limits, on the prediction samples.
        decided_at: ``(P, K)``: as in `last_step`.
        steps: The number of steps.
        times: The number of test samples divided by the number of prediction samples.
    """
    predicted = torch.zeros(steps, dtype=torch.float64)
    for rate in rates:
        if rate.confidence is not None:
            p_values = rate.p_values(decided_at, steps, times=times) / (1 - rate.confidence)
            predicted = torch.maximum(predicted, p_values)
    passing = (predicted <= 0.2).nonzero()  # well below 1, the critical value: if the first test fails, all do
    return int(passing[0] if len(passing) else predicted.argmin())


def ends_of_steps(places: Tensor, *, rounding: float, most: int | None = None) -> Tensor:
    """Return the upper edges of the steps of a path: (steps,), float64, ascending; the last edge is infinite.

    Edges lie midway between distinct places, so no decision depends on the last bit of a risk.

    Args:
        places: The places of answers on the path; infinite for answers that are never used.
        rounding: The relative rounding error of places.
        most: The maximum number of steps. Default: one for each distinct place.
    """
    distinct = places[places.isfinite()].double().unique()  # type: ignore[no-untyped-call]
    if most is not None and len(distinct) > most:
        distinct = distinct[torch.linspace(0, len(distinct) - 1, most).long()]
    low, high = distinct[:-1], distinct[1:]
    ends = (low + high)[high - low > rounding * high.abs()] / 2
    return torch.cat([ends, ends.new_tensor([inf])])


class RiskPath:
    """A common scale for the estimated risks of several limits.

    A place s on the scale stands for one threshold per limit: if all samples with a risk up to this threshold are
    decided, their estimated risks use up the share s of the limit.

    Args:
        risk: ``(P, J)``, float64: the estimated risks of samples that are not in the calibration set.
        limits: ``(J,)``: each limit, multiplied by the share of samples in its denominator.
        is_of_decided: For each limit, whether it is on the mean risk of decided samples instead of all.
    """

    def __init__(self, risk: Tensor, limits: Tensor, is_of_decided: list[bool]) -> None:
        self._knots = list[tuple[Array, Array]]()
        for risks, limit, of_decided in zip(risk.double().T, limits.tolist(), is_of_decided, strict=True):
            ordered = risks[risks.isfinite()].sort().values
            number = torch.arange(1, len(ordered) + 1) if of_decided else len(ordered)
            used = ordered.cumsum(0) / number / limit + 1e-6 * ordered  # strictly increasing even for tiny risks
            last = ordered[-1:] if len(ordered) else ordered.new_zeros(1)
            top = used[-1:] if len(used) else used.new_zeros(1)
            # Tied risks share the place of the last of them.
            keep = torch.cat([ordered.diff() > 0, torch.ones(min(1, len(ordered)), dtype=torch.bool)]) & (ordered > 0)
            zero = ordered.new_zeros(1)
            at = torch.cat([zero, ordered[keep], last + 1])
            place = torch.cat([zero, used[keep], top + 1 / limit])
            self._knots.append((at.numpy(), place.cummax(0).values.numpy()))

    def place_of(self, risk: Tensor) -> Tensor:
        """Return the place of each answer on the scale: (...), the maximum over the limits, for risks (..., J)."""
        by_limit = zip(risk.double().unbind(-1), self._knots, strict=True)
        places = [np.interp(risks.numpy(), *knots) for risks, knots in by_limit]
        return torch.from_numpy(np.max(places, axis=0))

    def thresholds_at(self, place: float) -> Tensor:
        """Return the threshold of each limit at a place of the scale: (J,), float64."""
        return torch.tensor([float(np.interp(place, scale, at)) for at, scale in self._knots], dtype=torch.float64)


class RiskThreshold(NamedTuple):
    """A threshold, with its coverage and loss on the calibration set."""

    threshold: Tensor
    """Scalar, midway between two risks; inf if all samples are decided, and -inf if none is. A sample is decided if its
    estimated risk is below the threshold, and referred otherwise."""
    coverage: Tensor
    """Scalar: the share of samples that are decided."""
    loss: Tensor
    """Scalar: the sum of the losses of decided samples, divided by the number of all samples."""


def risk_threshold(
    risk: Tensor, loss: Tensor, *, max_loss: float, confidence: float | None = None, highest_loss: float = 1.0
) -> RiskThreshold:
    r"""Choose the highest threshold on the estimated risk whose expected loss is at most a limit.

    A sample with a risk below the threshold t is decided; a referred sample has no loss. The loss of t, a mean over all
    samples, rises with t. Without ``confidence``, t is chosen by conformal risk control, and the expected loss of a new
    sample, over calibration sets and new samples, is at most :math:`\alpha`:

    .. math:: t = \sup\{t : \sum_i L_i [r_i < t] + B \le \alpha (n + 1)\}

    With ``confidence`` :math:`1 - \delta`, losses are 0 or 1, and t is the last of an ascending sequence of thresholds
    at which the exact binomial test still rejects an expected loss above :math:`\alpha` (Learn then Test). With a
    probability of at least :math:`1 - \delta` over calibration sets, the expected loss is at most :math:`\alpha`:

    .. math:: t = \sup\{t : P[\mathrm{Bin}(n, \alpha) \le \sum_i L_i [r_i < t]] \le \delta\}

    Both guarantees hold for any model, if calibration and new samples are exchangeable, and neither the model nor the
    risk estimate was fitted on them.

    Args:
        risk: ``(N,)`` floating point estimates of the loss of each decision, without NaN; only their order matters.
        loss: ``(N,)`` losses of the decisions, from 0 to ``highest_loss``; with ``confidence`` bools or 0 and 1.
        max_loss: :math:`\alpha`, above 0 and below ``highest_loss``.
        confidence: :math:`1 - \delta`, above 0 and below 1. Default: the limit holds in expectation.
        highest_loss: B, the highest possible loss, above 0.

    Raises:
        ValueError: If an argument breaks its rule above.
        UnattainableLimitError: If there are too few samples to guarantee the limit at any threshold; the message gives
            the lowest limit that they can guarantee, and the number of samples needed.

    References:
        Angelopoulos, Bates, Fisch, Lei, Schuster: Conformal Risk Control, ICLR 2024, Theorem 1. Angelopoulos, Bates,
        Candes, Jordan, Lei: Learn then Test, Annals of Applied Statistics 19(2), 2025, fixed sequence testing; all
        thresholds are tested instead of a grid, because the loss rises with t.

    Example:
        >>> risk = torch.arange(1000) / 1000
        >>> loss = torch.arange(1000) >= 900  # the riskiest tenth is wrong
        >>> risk_threshold(risk, loss, max_loss=0.01, confidence=0.95).threshold
        tensor(0.9035)
    """
    _check(risk, loss, max_loss=max_loss, confidence=confidence, highest_loss=highest_loss)
    guarantee = "in expectation" if confidence is None else f"with confidence {confidence:g}"
    losses, risks = loss.double().cpu(), risk.cpu()
    counted = torch.ones(len(risk), 1, dtype=torch.bool)
    rate = LimitedRate(
        f"max_loss {max_loss:g} {guarantee}", max_loss, confidence, losses[:, None], counted, highest_loss=highest_loss
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
    is_valid = (values == 0) | (values == 1) if confidence is not None else (values >= 0) & (values <= highest_loss)
    if not is_valid.all():
        rule = "0 or 1 with a confidence" if confidence is not None else f"from 0 to {highest_loss:g}"
        raise ValueError(f"loss must be {rule}, but got {values[~is_valid][0].item():g}.")
