"""Normalised Bayes errors: the error rates of log-likelihood ratios at every operating point."""

from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.errors import ErrorCounts, hull_of, observed_errors

MAX_LOG_ODDS = 700
"""Larger log odds are infinite as odds in floating point."""


LOG_ODDS = torch.linspace(-9, 9, 361, dtype=torch.float64)
"""Those of figures."""


class BayesErrors(NamedTuple):
    """Error rates divided by that of the better constant decision: 1 is no better than ignoring the scores."""

    actual: Tensor
    """(P,): at the Bayes threshold; above 1 where bad calibration makes the scores harmful."""
    minimum: Tensor
    """(P,): at the best threshold; in [0, 1]."""


def normalized_bayes_error(preds: Tensor, target: Tensor, *, log_odds: Tensor) -> BayesErrors:
    r"""Compute the normalised error rates of natural-log likelihood ratios at each prior; lower is better.

    With the prior :math:`p = \sigma(o)` of log odds :math:`o` and the Bayes threshold :math:`-o`:

    .. math:: \frac{p \, P_{miss}(-o) + (1 - p) P_{fa}(-o)}{\min(p, 1 - p)}

    Every pair of costs is equivalent to a prior, so the curve covers every operating point.

    Args:
        preds: ``(N,)`` natural-log likelihood ratios, floating point.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.
        log_odds: ``(P,)`` natural-log odds of a target, floating point, from -700 to 700.

    Returns:
        `BayesErrors`: two ``(P,)`` float64 tensors.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 3 (normalized Bayes error-rate plots).

    Example:
        >>> scores, labels = torch.tensor([-2.0, 1.0, 3.0]), torch.tensor([0, 1, 1])
        >>> normalized_bayes_error(scores, labels, log_odds=torch.tensor([-2.0, 0.0])).actual
        tensor([0.5000, 0.0000], dtype=torch.float64)
    """
    if log_odds.ndim != 1 or not log_odds.is_floating_point() or not (log_odds.abs() <= MAX_LOG_ODDS).all():
        rule = f"log_odds must be floating point numbers (P,) from -{MAX_LOG_ODDS} to {MAX_LOG_ODDS}"
        raise ValueError(f"{rule}, but got {log_odds}.")
    return bayes_errors_of(observed_errors(preds, target), log_odds)


def bayes_errors_of(counts: ErrorCounts, log_odds: Tensor) -> BayesErrors:
    """Compute the normalised Bayes errors of counted errors."""
    odds = log_odds.to(counts.thresholds)
    # Weights of misses and false alarms, scaled so that the smaller is 1: a tiny prior does not underflow.
    miss, false_alarm = odds.clamp(min=0).exp(), (-odds).clamp(min=0).exp()
    curve, hull = counts.rates(), hull_of(counts).rates()
    place = torch.searchsorted(curve.thresholds, -odds).clamp(max=len(curve.thresholds) - 1)
    actual = miss * curve.p_miss[place] + false_alarm * curve.p_fa[place]
    minimum = (miss.unsqueeze(1) * hull.p_miss + false_alarm.unsqueeze(1) * hull.p_fa).amin(dim=1)
    return BayesErrors(actual, minimum)
