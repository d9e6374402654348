"""The H-measure: what decisions cost, averaged over the costs that errors may have."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mpcs_torch.functional.detection.binary_trials import (
    BinaryTrials,
    ClassAverage,
    average_classes,
    of_each_class,
    split_batch,
)
from mpcs_torch.functional.detection.errors import ErrorRates, hull_of


def h_measure(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the H-measure, in [0, 1]; higher is better, 1 is perfect, 0 no better than ignoring the scores.

    A false alarm costs c and a miss 1 - c, with c drawn from a distribution u that is the same for all detectors. With
    the share p of targets, L is the expected cost of the best threshold at each c, and :math:`L_0` that of the better
    constant decision:

    .. math::
        H = 1 - \frac{L}{L_0}, \quad
        L = \int \min_t \left( c (1 - p) P_{fa}(t) + (1 - c) p P_{miss}(t) \right) u(c) \, dc

    u is the beta distribution with the parameters 1 + p and 2 - p, whose mode is p, where both constant decisions cost
    the same. The area under the ROC is such a mean too, but with a u that depends on the scores themselves, so it
    weighs the errors of each detector by other costs. Needs scipy. Arguments and errors are those of `partial_auc`.

    Returns:
        Float64: a scalar, or ``(C,)`` with ``average="none"``.

    References:
        Hand: Measuring classifier performance: a coherent alternative to the area under the ROC curve, Machine Learning
        77, 2009; Hand, Anagnostopoulos: A better Beta for the H measure of classification performance, Pattern
        Recognition Letters 40, 2014.

    Example:
        >>> h_measure(torch.tensor([0.1, 0.4, 0.3, 0.9]), torch.tensor([0, 0, 1, 1]))
        tensor(0.5000, dtype=torch.float64)
    """
    found = split_batch(preds, target, num_classes=num_classes, average=average, ignore_index=ignore_index)
    return average_classes(h_measure_of_trials(found), num_classes=num_classes, average=average)


def h_measure_of_trials(found: Sequence[BinaryTrials]) -> Tensor:
    """Compute the measures of binary trials, stacked; NaN if targets or non-targets are missing."""
    return of_each_class(found, lambda trials: h_measure_of(hull_of(trials.errors()).rates()))


def h_measure_of(hull: ErrorRates) -> Tensor:
    """Compute the measure from a convex hull."""
    share = hull.targets.double() / (hull.targets + hull.nontargets)
    misses, alarms = share * hull.p_miss, (1 - share) * hull.p_fa
    # From one vertex to the next it pays to miss more and raise fewer false alarms once c is above this.
    turns = misses.diff() / (misses.diff() - alarms.diff())
    ends = torch.cat([turns.new_zeros(1), turns, turns.new_ones(1)])
    cost = (_mean_of_costs(ends, share) * alarms + _mean_of_rest(ends, share) * misses).sum()
    constant = torch.stack([share.new_zeros(()), share, share.new_ones(())])
    best = _mean_of_costs(constant, share)[0] * (1 - share) + _mean_of_rest(constant, share)[1] * share
    return 1 - cost / best


def _mean_of_costs(ends: Tensor, share: Tensor) -> Tensor:
    """Integrate c u(c) over the intervals between the ends."""
    return (1 + share) / 3 * _beta(ends, 2 + share, 2 - share).diff()


def _mean_of_rest(ends: Tensor, share: Tensor) -> Tensor:
    """Integrate (1 - c) u(c) over the intervals between the ends."""
    return (2 - share) / 3 * _beta(ends, 1 + share, 3 - share).diff()


def _beta(values: Tensor, alpha: Tensor, beta: Tensor) -> Tensor:
    """Return the distribution function of a beta distribution."""
    from scipy.special import betainc

    found: Any = betainc(alpha.item(), beta.item(), values.cpu().numpy())
    return torch.from_numpy(found).to(values)
