"""Confidence intervals of error rates and other statistics of trials."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from mpcs_torch.functional.detection.errors import ReversedScoresWarning, checked_scores


def clopper_pearson(errors: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """Compute the exact confidence interval of an error rate, in [0, 1].

    It contains the true rate with a probability of at least ``confidence``. It assumes independent trials; trials that
    share a speaker or a patient are not independent. Needs scipy.

    Args:
        errors: The number of errors, from 0 to ``trials``.
        trials: The number of trials, at least 1.
        confidence: In (0, 1).

    Returns:
        The lower and the upper end.

    Raises:
        ValueError: If a setting breaks its rule above.

    References:
        Clopper, Pearson: The use of confidence or fiducial limits, Biometrika 26, 1934.

    Example:
        >>> low, high = clopper_pearson(0, 10)
        >>> print(f"{low:.3f} {high:.3f}")
        0.000 0.308
    """
    from scipy.stats import binomtest

    if trials < 1:
        raise ValueError(f"trials must be at least 1, but got {trials}.")
    if not 0 <= errors <= trials:
        raise ValueError(f"errors must be from 0 to trials ({trials}), but got {errors}.")
    check_confidence(confidence)
    interval = binomtest(errors, trials).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def meets_rule_of_30(errors: int) -> bool:
    """Check whether an error rate is based on at least 30 errors.

    With 30 errors and independent trials, the true rate lies within 30 % of the measured one with 90 % confidence.

    References:
        Doddington et al.: The NIST speaker recognition evaluation, Speech Communication 31, 2000.

    Example:
        >>> meets_rule_of_30(29), meets_rule_of_30(30)
        (False, True)
    """
    return errors >= 30


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

    Each resample has as many targets and non-targets as the data. Trials are assumed to be independent. Do not use it
    for statistics that search for the best threshold, such as minimum costs: resamples repeat scores, which a threshold
    overfits, so the interval misses the true value far too often.

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
        >>> from mpcs_torch.functional import equal_error_rate
        >>> scores, labels = torch.arange(100.0), torch.arange(100) % 25 > 12
        >>> low, high = stratified_bootstrap(equal_error_rate, scores, labels, resamples=200)
        >>> bool(low < equal_error_rate(scores, labels) < high)
        True
    """
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1, but got {resamples}.")
    check_confidence(confidence)
    scores, labels = checked_scores(preds, target)
    strata = scores[labels], scores[~labels]
    stacked = torch.cat([torch.ones_like(strata[0], dtype=torch.bool), torch.zeros_like(strata[1], dtype=torch.bool)])
    generator = torch.Generator().manual_seed(seed)
    values = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReversedScoresWarning)  # resamples of scores near chance can look reversed
        for _ in range(resamples):
            drawn = [
                stratum[torch.randint(len(stratum), (len(stratum),), generator=generator).to(stratum.device)]
                for stratum in strata
            ]
            values.append(statistic(torch.cat(drawn), stacked).double())
            advance()
    tail = (1 - confidence) / 2
    found = torch.stack(values)
    # Take the ends from the drawn values: interpolation between a finite and an infinite value gives NaN.
    return found.quantile(tail, dim=0, interpolation="lower"), found.quantile(1 - tail, dim=0, interpolation="higher")


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, but got {confidence}.")
