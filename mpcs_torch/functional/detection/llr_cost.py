"""What log-likelihood ratios cost on average over all operating points."""

from math import log

import torch
from torch import Tensor

from mpcs_torch.functional.detection.curve import (
    ErrorCounts,
    checked_scores,
    count_errors,
    hull_of,
    observed_errors,
    warn_if_reversed,
)


def cllr(preds: Tensor, target: Tensor) -> Tensor:
    r"""Cost of log-likelihood ratios; in bits, lower is better, 0 is perfect, 1 is what a detector without a clue has.

    .. math:: C_{llr} = \frac{1}{2} \left( \frac{1}{T} \sum_{targets} \log_2(1 + e^{-s}) +
        \frac{1}{N} \sum_{nontargets} \log_2(1 + e^{s}) \right)

    Args:
        preds: ``(N,)`` natural-log likelihood ratios, floating point; infinite ones cost nothing on their own side.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for nontargets; both must occur.

    Returns:
        A float64 scalar; infinite if an infinite ratio is on the wrong side.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Eq. 20.

    Example:
        >>> cllr(torch.tensor([2.0, -2.0, 800.0]), torch.tensor([1, 0, 1]))
        tensor(0.1373, dtype=torch.float64)
    """
    scores, labels = checked_scores(preds, target)
    warn_if_reversed(count_errors(scores, labels))
    return cllr_of(scores, labels)


def min_cllr(preds: Tensor, target: Tensor) -> Tensor:
    """The least `cllr` that a rising transform of the scores can have; in bits, lower is better, in [0, 1].

    What remains is a lack of discrimination; `cllr` minus this is a lack of calibration. Scores may be of any range.
    Arguments and errors are those of `cllr`.

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Section 6 (PAV).

    Example:
        >>> min_cllr(torch.tensor([20.0, 10.0, 15.0, 30.0]), torch.tensor([1, 0, 0, 1]))
        tensor(0., dtype=torch.float64)
    """
    return min_cllr_of(hull_of(observed_errors(preds, target)))


def cllr_of(scores: Tensor, labels: Tensor) -> Tensor:
    """The cost of checked scores."""
    return (_softplus(-scores[labels]).mean() + _softplus(scores[~labels]).mean()) / (2 * log(2))


def min_cllr_of(hull: ErrorCounts) -> Tensor:
    """The least cost of a convex hull: its edges are the blocks of pool-adjacent-violators."""
    rates = hull.rates()
    targets, nontargets = rates.p_miss.diff(), -rates.p_fa.diff()
    ratio = targets.log() - nontargets.log()
    parts = torch.where(targets > 0, targets * _softplus(-ratio), 0.0) + torch.where(
        nontargets > 0, nontargets * _softplus(ratio), 0.0
    )
    return parts.sum() / (2 * log(2))


def _softplus(x: Tensor) -> Tensor:
    """log(1 + e^x) to the last digit; torch's own takes x for it above 20."""
    return torch.logaddexp(x.new_zeros(()), x)
