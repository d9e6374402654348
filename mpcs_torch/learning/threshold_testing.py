r"""Thresholds on the estimated risk of decisions, chosen so that error rates stay within limits.

A path is a list of thresholds, from deciding no sample to deciding all; a step is a position on it. A sample may have
several possible answers, such as a class or a group of classes. Each answer is allowed from some step on; the sample
gets the cheapest allowed answer.

All limits are tested at each step, until a test fails (fixed sequence testing). The path does not depend on the
calibration set, or it follows a single estimated risk. The last step violates a limit only if the first violating step
passed its test, which has a probability of at most :math:`\delta`. So several limits need no correction.

References:
    Angelopoulos, Bates, Candes, Jordan, Lei: Learn then Test, Annals of Applied Statistics 19(2), 2025, fixed sequence
    testing. Angelopoulos, Bates, Fisch, Lei, Schuster: Conformal Risk Control, ICLR 2024, Theorem 1, for limits in
    expectation.
"""

from math import inf

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from mpcs_torch.learning.guaranteed_limits import LimitedRate

Array = NDArray[np.float64]


def last_step(
    rates: list[LimitedRate], decided_at: Tensor, steps: int, *, first: int = 0
) -> int:
    """Test all limits step by step, from ``first`` on; return the last step before a failure, -1 if ``first`` fails.

    Args:
        rates: The limits.
        decided_at: ``(N, K)``, int64: for each of N samples, the first step at which each of its K possible answers is
            allowed; ``steps`` for an answer that is never allowed.
        steps: The number of steps.
        first: The first step to test. Earlier steps decide too few samples for a test to pass.
    """
    passed = torch.ones(steps, dtype=torch.bool)
    for rate in rates:
        passed &= rate.passes(decided_at, steps)
    failed = (~passed[first:]).nonzero()
    last = steps - 1 if not len(failed) else first + int(failed[0]) - 1
    return -1 if last < first else last


def first_step(
    rates: list[LimitedRate], decided_at: Tensor, steps: int, *, times: float
) -> int:
    """Predict the first step at which enough samples are decided for the tests of `last_step` to pass.

    The arguments are those of `last_step`, but for samples that no test uses. The tests use ``times`` as many samples
    (or clusters).
    """
    predicted = torch.zeros(steps, dtype=torch.float64)
    for rate in rates:
        if rate.confidence is not None:
            p_values = rate.p_values(decided_at, steps, times=times) / (1 - rate.confidence)
            predicted = torch.maximum(predicted, p_values)
    passing = (
        predicted <= 0.2
    ).nonzero()  # well below 1, the critical value: if the first test fails, all do
    return int(passing[0] if len(passing) else predicted.argmin())


def ends_of_steps(places: Tensor, *, rounding: float, most: int | None = None) -> Tensor:
    """Divide the range of ``places`` into steps; return the upper edge of each, (steps,), float64, the last infinite.

    Each edge is the middle of two neighboring positions, so that rounding changes no decision.

    Args:
        places: The position of each answer on the path of thresholds; infinite for an answer that is never used.
        rounding: The relative rounding error of positions. No edge is between positions that differ by less.
        most: The maximum number of steps. Default: one for each distinct position.
    """
    distinct = places[places.isfinite()].double().unique()  # type: ignore[no-untyped-call]
    if most is not None and len(distinct) > most:
        distinct = distinct[torch.linspace(0, len(distinct) - 1, most).long()]
    low = distinct[:-1]
    high = distinct[1:]
    ends = (low + high)[high - low > rounding * high.abs()] / 2
    return torch.cat([ends, ends.new_tensor([inf])])


class RiskPath:
    """A scale on which each position stands for J thresholds on estimated risks: one for each of J limits.

    At the position s, the threshold of a limit is the risk r with this property: if all samples with a risk up to r
    are decided, the limited rate, estimated from these risks, is s times the limit.

    Args:
        risk: ``(P, J)``, float64: the estimated risks, by each limit, of P samples outside the calibration set.
        limits: ``(J,)``: each limit; if it is not of decided samples, times the share of samples in its denominator.
        is_of_decided: For each limit, whether its rate is a mean over the decided samples instead of all samples.
    """

    def __init__(self, risk: Tensor, limits: Tensor, is_of_decided: list[bool]) -> None:
        self._knots = list[tuple[Array, Array]]()
        for risks, limit, of_decided in zip(
            risk.double().T, limits.tolist(), is_of_decided, strict=True
        ):
            ordered = risks[risks.isfinite()].sort().values
            number = torch.arange(1, len(ordered) + 1) if of_decided else len(ordered)
            # The second term makes it increase strictly, even for tiny risks.
            used = ordered.cumsum(0) / number / limit + 1e-6 * ordered
            at = nn.functional.pad(ordered, (1, 0))
            place = nn.functional.pad(used, (1, 0))
            # Tied risks share the last position.
            is_last = nn.functional.pad(at.diff() > 0, (0, 1), value=True)
            at = torch.cat([at[is_last], at[-1:] + 1])
            place = torch.cat([place[is_last], place[-1:] + 1 / limit])
            self._knots.append((at.numpy(), place.cummax(0).values.numpy()))

    def first_place(self, risk: Tensor) -> Tensor:
        """Return the lowest position (...) at which no ``risk`` (..., J) of an answer exceeds its threshold."""
        by_limit = zip(risk.double().unbind(-1), self._knots, strict=True)
        places = [np.interp(risks.numpy(), *knots) for risks, knots in by_limit]
        return torch.from_numpy(np.max(places, axis=0))

    def thresholds_at(self, place: float) -> Tensor:
        """Return the threshold of each limit at the position ``place`` of the scale: (J,), float64."""
        return torch.tensor(
            [float(np.interp(place, scale, at)) for at, scale in self._knots],
            dtype=torch.float64,
        )
