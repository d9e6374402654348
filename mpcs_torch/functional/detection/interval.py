"""Confidence intervals of error rates."""


def clopper_pearson(errors: int, trials: int, *, confidence: float = 0.95) -> tuple[float, float]:
    r"""Compute the exact confidence interval of an error rate, in [0, 1].

    With e errors in n trials and :math:`\alpha` = 1 - ``confidence``, the ends are quantiles of beta distributions:

    .. math:: B^{-1}(\alpha / 2; e, n - e + 1), \quad B^{-1}(1 - \alpha / 2; e + 1, n - e)

    The lower end is 0 if there are no errors, and the upper end is 1 if there is nothing else. The interval contains
    the true rate with a probability of at least ``confidence``. It assumes independent trials; trials that share a
    speaker or a patient are not independent. Needs scipy.

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
    from scipy.special import betaincinv  # scipy.stats takes longer to import

    if trials < 1:
        raise ValueError(f"trials must be at least 1, but got {trials}.")
    if not 0 <= errors <= trials:
        raise ValueError(f"errors must be from 0 to trials ({trials}), but got {errors}.")
    check_confidence(confidence)
    tail = (1 - confidence) / 2
    low = betaincinv(errors, trials - errors + 1, tail) if errors > 0 else 0.0
    high = betaincinv(errors + 1, trials - errors, 1 - tail) if errors < trials else 1.0
    return float(low), float(high)


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


def check_confidence(confidence: float) -> None:
    """Refuse a confidence outside (0, 1)."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be between 0 and 1, but got {confidence}.")
