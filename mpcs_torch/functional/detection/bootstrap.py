"""Bootstrap intervals of statistics of trials."""

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.errors import ErrorCounts, ReversedScoresWarning, checked_scores
from mpcs_torch.functional.detection.interval import check_confidence

BLOCK = 2**16
"""The minimum number of draws at a time, which bounds the memory of a process that counts few of them."""


def stratified_bootstrap(
    statistic: Callable[[Tensor, Tensor], Tensor],
    preds: Tensor,
    target: Tensor,
    *,
    resamples: int = 1000,
    confidence: float = 0.95,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:
    """Compute the percentile interval of a statistic of scores by bootstrap, with targets and non-targets separate.

    Each resample has as many targets and non-targets as the data. They are drawn with replacement: the same number of
    independent uniform draws from the targets, then from the non-targets. Trials are assumed to be independent. Do not
    use it for statistics that search for the best threshold, such as minimum costs: resamples repeat scores, which a
    threshold overfits, so the interval misses the true value far too often. For the same reason compute the equal error
    rate with ``method="interpolated"`` (see `equal_error_statistic`).

    Args:
        statistic: A function of scores and labels, like the detection functions, that returns a tensor of any shape.
        preds: ``(N,)`` scores, floating point, higher for targets; of any range.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.
        resamples: The number of resamples, at least 1.
        confidence: In (0, 1).
        seed: The seed of the draws, which are the same on every device.
        advance: Called after each resample, to show progress.

    Returns:
        The lower and the upper end, float64, each in the shape of the statistic.

    Raises:
        ValueError: If a setting, a shape, a dtype or a value breaks its rule above.

    References:
        Efron, Tibshirani: An Introduction to the Bootstrap, 1993, Chapter 13.

    Example:
        >>> from mpcs_torch.functional import partial_auc
        >>> scores, labels = torch.arange(100.0), torch.arange(100) % 25 > 12
        >>> low, high = stratified_bootstrap(partial_auc, scores, labels, resamples=200)
        >>> bool(low < partial_auc(scores, labels) < high)
        True
    """
    scores, labels = checked_scores(preds, target)
    targets, nontargets = scores[labels].sort().values, scores[~labels].sort().values
    is_target = torch.cat([torch.ones_like(targets, dtype=torch.bool), torch.zeros_like(nontargets, dtype=torch.bool)])

    def of_drawn(drawn: "TrialDraws") -> Tensor:
        repeated = targets.repeat_interleave(drawn.targets), nontargets.repeat_interleave(drawn.nontargets)
        return statistic(torch.cat(repeated), is_target)

    places = [(range(size), size) for size in (len(targets), len(nontargets))]
    return interval_of_resamples(
        of_drawn, places, scores.device, resamples=resamples, confidence=confidence, seed=seed, advance=advance
    )


class TrialDraws(NamedTuple):
    """The draws of each trial; statistics of these counts need no sort, because the scores are sorted once."""

    targets: Tensor
    """(T,), int64: of each target, by ascending score."""
    nontargets: Tensor
    """(N,), int64: of each non-target, by ascending score."""

    def errors(self, data: ErrorCounts) -> ErrorCounts:
        """Count the errors of the resample, at those thresholds of the data that one of the drawn trials separates."""
        missed, rejected = _before(self.targets), _before(self.nontargets)
        misses = missed[data.misses]
        false_alarms = rejected[-1] - rejected[data.nontargets - data.false_alarms]
        differs = (misses.diff() > 0) | (false_alarms.diff() < 0)
        kept = torch.cat([differs, differs.new_ones(1)])
        return ErrorCounts(misses[kept], false_alarms[kept], data.thresholds[kept])


def interval_of_resamples(
    statistic: Callable[[TrialDraws], Tensor],
    places: Sequence[tuple[range, int]],
    device: torch.device,
    *,
    resamples: int,
    confidence: float,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> tuple[Tensor, Tensor]:
    """Compute the percentile interval of a function of resamples; `stratified_bootstrap` describes the arguments.

    Of the targets and of the non-targets, ``places`` gives those whose draws are counted, by ascending score, and the
    number of all.
    """
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, but got {resamples}.")
    check_confidence(confidence)
    generator = torch.Generator().manual_seed(seed)
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReversedScoresWarning)  # resamples of scores near chance can look reversed
        for _ in range(resamples):
            drawn = TrialDraws(*(_draw(own, size, generator).to(device) for own, size in places))
            values.append(statistic(drawn).double())
            advance()
    tail = (1 - confidence) / 2
    found = torch.stack(values)
    # Take the ends from the drawn values: interpolation between a finite and an infinite value gives NaN.
    return found.quantile(tail, dim=0, interpolation="lower"), found.quantile(1 - tail, dim=0, interpolation="higher")


def turning_points(counts: ErrorCounts) -> Tensor:
    """Return the indices of the thresholds between which errors of one kind alone change, or both at once.

    The straight lines between these points have the same hull and the same area as all points, in every resample.
    """
    fewer_alarms, more_misses = counts.false_alarms.diff() < 0, counts.misses.diff() > 0
    goes_on = (fewer_alarms[1:] == fewer_alarms[:-1]) & (more_misses[1:] == more_misses[:-1])
    is_straight = goes_on & ~(fewer_alarms & more_misses)[1:]
    ends = is_straight.new_ones(1)
    return torch.cat([ends, ~is_straight, ends])[: len(counts.misses)].nonzero().squeeze(1)  # without trials, one point


def _draw(own: range, size: int, generator: torch.Generator) -> Tensor:
    """Draw as many of ``size`` trials with replacement, and count how often each of some was drawn: int64 (own,)."""
    counts = torch.zeros(len(own), dtype=torch.int64)
    block = max(BLOCK, len(own))  # no shorter than the counts, which every block adds up
    for start in range(0, size, block):
        drawn = torch.randint(size, (min(block, size - start),), generator=generator)
        if len(own) < size:
            drawn = drawn[(drawn >= own.start) & (drawn < own.stop)] - own.start
        counts += drawn.bincount(minlength=len(own))
    return counts


def _before(drawn: Tensor) -> Tensor:
    """Return the number of draws from the first i trials, for each i from 0 to all: (n + 1,)."""
    return torch.cat([drawn.new_zeros(1), drawn.cumsum(0)])
