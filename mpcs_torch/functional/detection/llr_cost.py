"""Cllr: the cost of log-likelihood ratios, averaged over all operating points."""

from collections.abc import Sequence
from math import log

import torch
from torch import Tensor

from mpcs_torch.functional.detection.binary_trials import (
    BinaryTrials,
    ClassAverage,
    average_classes,
    of_each_class,
    split_batch,
)
from mpcs_torch.functional.detection.errors import ErrorCounts, hull_of


def cllr(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    r"""Compute the cost of log-likelihood ratios in bits; lower is better, 0 is perfect, 1 is uninformative.

    .. math:: C_{llr} = \frac{1}{2} \left( \frac{1}{T} \sum_{targets} \log_2(1 + e^{-s}) +
        \frac{1}{N} \sum_{nontargets} \log_2(1 + e^{s}) \right)

    There is no ``sample_weight``: trials are counted in whole numbers, so that ties and crossings are exact.

    Args:
        preds: ``(N, ...)`` natural-log likelihood ratios, floating point; an infinite one on the right side costs
            nothing. With classes ``(N, C, ...)``.
        target: ``(N, ...)`` integers or bools: 1 for targets, 0 for non-targets; with classes, class indices. Both
            targets and non-targets must occur, with classes for each class.
        num_classes: None, or C to evaluate each class against the rest.
        average: With classes: ``"macro"`` for the mean over classes, ``"micro"`` for one detector of all N x C scores,
            ``"none"`` for one value per class.
        ignore_index: Label of trials to ignore.

    Returns:
        Float64: a scalar, or ``(C,)`` with ``average="none"``; infinite if an infinite ratio is on the wrong side.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    Warns:
        ReversedScoresWarning: If an area under the ROC is below 1/2.

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Eq. 20.

    Example:
        >>> cllr(torch.tensor([2.0, -2.0, 800.0]), torch.tensor([1, 0, 1]))
        tensor(0.1373, dtype=torch.float64)
    """
    found = split_batch(preds, target, num_classes=num_classes, average=average, ignore_index=ignore_index)
    return average_classes(cllr_of_trials(found), num_classes=num_classes, average=average)


def min_cllr(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the minimum `cllr` over all rising transforms of the scores, in bits; lower is better, in [0, 1].

    It measures discrimination alone; `cllr` minus this measures calibration. Scores may be of any range. Arguments,
    result and errors are those of `cllr`.

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Section 6 (PAV).

    Example:
        >>> min_cllr(torch.tensor([20.0, 10.0, 15.0, 30.0]), torch.tensor([1, 0, 0, 1]))
        tensor(0., dtype=torch.float64)
    """
    found = split_batch(preds, target, num_classes=num_classes, average=average, ignore_index=ignore_index)
    return average_classes(min_cllr_of_trials(found), num_classes=num_classes, average=average)


def cllr_of_trials(found: Sequence[BinaryTrials]) -> Tensor:
    """Compute the cost of binary trials, stacked; NaN if targets or non-targets are missing."""

    def cost(trials: BinaryTrials) -> Tensor:
        trials.errors()  # warns if the scores seem to be reversed
        return cllr_of(trials.scores, trials.labels)

    return of_each_class(found, cost)


def min_cllr_of_trials(found: Sequence[BinaryTrials]) -> Tensor:
    """Compute the minimum cost of binary trials, stacked; NaN if targets or non-targets are missing."""
    return of_each_class(found, lambda trials: min_cllr_of(hull_of(trials.errors())))


def cllr_of(scores: Tensor, labels: Tensor) -> Tensor:
    """Compute the cost of float64 scores and bool labels (N,)."""
    return mean_cost_of(softplus(-scores[labels]).mean(), softplus(scores[~labels]).mean())


def mean_cost_of(targets: Tensor, nontargets: Tensor) -> Tensor:
    """Return the cost in bits from the mean logarithmic costs of targets and of non-targets in nats."""
    return (targets + nontargets) / (2 * log(2))


def min_cllr_of(hull: ErrorCounts) -> Tensor:
    """Compute the minimum cost from a convex hull, whose edges are the blocks of pool-adjacent-violators."""
    rates = hull.rates()
    targets, nontargets = rates.p_miss.diff(), -rates.p_fa.diff()
    ratio = targets.log() - nontargets.log()
    terms = torch.where(targets > 0, targets * softplus(-ratio), 0.0) + torch.where(
        nontargets > 0, nontargets * softplus(ratio), 0.0
    )
    return terms.sum() / (2 * log(2))


def softplus(x: Tensor) -> Tensor:
    """Compute log(1 + e^x) to the last digit; torch's own softplus returns x above 20."""
    return torch.logaddexp(x.new_zeros(()), x)
