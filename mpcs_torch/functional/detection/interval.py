"""How far error rates that were measured on a sample can be trusted."""

import warnings
from collections.abc import Callable

import torch
from torch import Tensor

from mpcs_torch.functional.detection.errors import ReversedScoresWarning, checked_scores


def clopper_pearson(errors: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of an error rate, in [0, 1]: it holds the true rate at least as often as ``confidence`` says.

    It takes trials to be independent, which scores that share a speaker or a patient are not. Needs scipy.

    Args:
        errors: How many trials were decided wrongly, from 0 to ``trials``.
        trials: At least 1.
        confidence: In (0, 1).

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
    """Whether an error rate rests on at least 30 errors.

    Only then is the true rate within 30 % of the measured one with a confidence of 90 %, if trials are independent.

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
    """The percentile interval of a statistic of scores, from resamples that keep the number of targets and nontargets.

    It takes trials to be independent. It is not for what looks for the best threshold, such as least costs: resamples
    repeat scores, a threshold finds more to fit in them, and the interval misses the true value far too often.

    Args:
        statistic: Takes scores and labels, as the functions for detection do, and gives a tensor of any shape.
        preds: ``(N,)`` scores, floating point, higher for targets; of any range.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for nontargets; both must occur.
        resamples: How many to draw, at least 1.
        confidence: In (0, 1).
        seed: Of the draws, which are the same on every device.
        advance: Called after each resample, to show progress.

    Returns:
        The lower and the upper end, float64, each of the statistic's shape.

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
        warnings.simplefilter("ignore", ReversedScoresWarning)  # of the resamples; those of the scores come before
        for _ in range(resamples):
            drawn = [
                part[torch.randint(len(part), (len(part),), generator=generator).to(part.device)] for part in strata
            ]
            values.append(statistic(torch.cat(drawn), stacked).double())
            advance()
    tail = (1 - confidence) / 2
    found = torch.stack(values)
    # Ends are values that were drawn: between a finite and an infinite one would lie NaN.
    return found.quantile(tail, dim=0, interpolation="lower"), found.quantile(1 - tail, dim=0, interpolation="higher")


def check_confidence(confidence: float) -> None:
    """Refuse a share outside (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, but got {confidence}.")
