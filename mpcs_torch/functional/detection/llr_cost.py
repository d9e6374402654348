"""Log-likelihood ratios from class probabilities, their cost Cllr, and Bayes error rates at every operating point."""

from math import log
from typing import NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.detection.errors import ErrorCounts, convex_hull
from mpcs_torch.functional.detection.trial_measure import (
    BinaryTrials,
    ClassAverage,
    DetectorStatistic,
    ErrorStatistic,
)
from mpcs_torch.functional.inputs.checks import check_by_class, check_priors
from mpcs_torch.functional.inputs.probabilities import unlabelled_samples


def log_likelihood_ratios(
    preds: Tensor, *, priors: Tensor, from_logits: bool = True
) -> Tensor:
    r"""Compute the natural-log likelihood ratio of each class against the rest from class posteriors.

    .. math:: LLR_c = \log \frac{P_c}{1 - P_c} - \log \frac{\pi_c}{1 - \pi_c}

    P are the class probabilities of ``preds``, and :math:`\pi` the ``priors``. The ratios do not depend on the class
    frequencies of the training data, so they are valid for the prior and costs of any `OperatingPoint`. To evaluate the
    ratios, pass them to `cllr` or `actual_detection_cost` with ``num_classes``. For two classes, column 1 is the ratio
    of targets (class 1) to non-targets.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` logits or probabilities of the classes, floating point.
        priors: ``(C,)`` the class frequencies that ``preds`` assume, > 0 with a sum of 1: those of the training data,
            unless the classifier was corrected for other ones.
        from_logits: Whether ``preds`` are logits rather than probabilities; never guessed from the values.

    Returns:
        The ratios in the shape and dtype of ``preds``, but float32 for 16-bit types. A class with probability 0 has
        -inf. A class has +inf if the probabilities of all others are 0, but not if its own is merely rounded to 1.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Section 2.

    Example:
        >>> probs = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
        >>> log_likelihood_ratios(probs, priors=torch.tensor([0.8, 0.2]), from_logits=False)[:, 1]
        tensor([-0.8109,  1.3863])
    """
    check_priors(priors, len(priors) if isinstance(priors, Tensor) else 2, above_0=True)
    check_by_class(preds)
    scores = unlabelled_samples(preds, len(priors), from_logits=from_logits).wide()
    log_priors = priors.to(scores).log()
    ratios = _log_odds(scores if from_logits else scores.log()) - _log_odds(
        log_priors.unsqueeze(0)
    )
    return ratios.reshape(preds.movedim(1, -1).shape).movedim(-1, 1)


def _log_odds(logits: Tensor) -> Tensor:
    """Compute the log odds (M, C) of each class against the rest, from ``logits`` (M, C).

    For the most probable class, 1 - P is computed as the sum of the other probabilities. For every other class, P is at
    most 1/2, so that the subtraction loses no digits.
    """
    log_probs = logits.log_softmax(dim=1)
    top = log_probs.argmax(dim=1, keepdim=True)
    rest_of_top = log_probs.scatter(1, top, -torch.inf).logsumexp(dim=1, keepdim=True)
    rest = torch.log1p(-log_probs.exp()).scatter(1, top, rest_of_top)
    return log_probs - rest


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

    The scores s in ``preds`` are natural-log likelihood ratios, of T targets and N non-targets. An infinite ratio with
    the right sign costs nothing; an infinite ratio with the wrong sign makes the cost infinite. The other arguments,
    the shape of the result, errors and warnings are those of `equal_error_rate` (without ``method``).

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Eq. 20.

    Example:
        >>> cllr(torch.tensor([2.0, -2.0, 800.0]), torch.tensor([1, 0, 1]))
        tensor(0.1373, dtype=torch.float64)
    """
    return Cllr(num_classes, average, ignore_index)(preds, target)


def min_cllr(
    preds: Tensor,
    target: Tensor,
    *,
    num_classes: int | None = None,
    average: ClassAverage = "macro",
    ignore_index: int | None = None,
) -> Tensor:
    """Compute the minimum `cllr` over all increasing transforms of the scores, in bits; lower is better, in [0, 1].

    The minimum measures discrimination; `cllr` minus the minimum measures calibration. Arguments, result and errors are
    those of `cllr`, but the scores need not be likelihood ratios.

    References:
        Brummer, du Preez: Application-independent evaluation of speaker detection, 2006, Section 6 (PAV).

    Example:
        >>> min_cllr(torch.tensor([20.0, 10.0, 15.0, 30.0]), torch.tensor([1, 0, 0, 1]))
        tensor(0., dtype=torch.float64)
    """
    return MinCllr(num_classes, average, ignore_index)(preds, target)


class Cllr(DetectorStatistic):
    """The measure of `cllr`."""

    def statistics(self, trials: BinaryTrials) -> Tensor:
        """Return the cost."""
        trials.errors()  # warns if the scores seem to be reversed
        return cllr_from_scores(trials.scores, trials.labels)


class MinCllr(ErrorStatistic):
    """The measure of `min_cllr`."""

    limits = (0.0, 1.0)

    def from_counts(self, counts: ErrorCounts) -> Tensor:
        """Return the minimum cost."""
        rates = convex_hull(counts).rates()
        targets = rates.p_miss.diff()
        nontargets = -rates.p_fa.diff()
        ratio = targets.log() - nontargets.log()
        terms = torch.where(targets > 0, targets * softplus(-ratio), 0.0) + torch.where(
            nontargets > 0, nontargets * softplus(ratio), 0.0
        )
        return terms.sum() / (2 * log(2))


def cllr_from_scores(scores: Tensor, labels: Tensor) -> Tensor:
    """Compute `cllr` from float64 scores and bool labels (N,)."""
    return cllr_from_means(
        softplus(-scores[labels]).mean(), softplus(scores[~labels]).mean()
    )


def cllr_from_means(targets: Tensor, nontargets: Tensor) -> Tensor:
    """Return `cllr` in bits from two means in nats: log(1 + e^-s) over targets, and log(1 + e^s) over non-targets."""
    return (targets + nontargets) / (2 * log(2))


def softplus(x: Tensor) -> Tensor:
    """Compute log(1 + e^x) exactly; torch's softplus returns x itself if x is above 20."""
    return torch.logaddexp(x.new_zeros(()), x)


LOG_ODDS = torch.linspace(-9, 9, 361, dtype=torch.float64)
"""The log odds on the x-axis of figures."""


class BayesErrors(NamedTuple):
    """Error rates, divided by the error rate of the better constant decision (accept all or reject all)."""

    actual: Tensor
    """(P,): the rates at the Bayes threshold; above 1 if poor calibration makes the scores harmful."""
    minimum: Tensor
    """(P,): the rates at the best threshold; in [0, 1]."""


def bayes_errors_from_counts(counts: ErrorCounts, log_odds: Tensor) -> BayesErrors:
    r"""Compute the normalised error rates of natural-log likelihood ratios at each prior; lower is better.

    For each value :math:`o` of ``log_odds`` (P,), the prior is :math:`p = \sigma(o)`, and the Bayes threshold
    :math:`-o`:

    .. math:: \frac{p \, P_{miss}(-o) + (1 - p) P_{fa}(-o)}{\min(p, 1 - p)}

    A prior with two unequal costs is equivalent to another prior with equal costs, so that the rates over all priors
    cover all operating points.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 3 (normalized Bayes error-rate plots).
    """
    odds = log_odds.to(counts.thresholds)
    # Weights of misses and false alarms, scaled to a minimum of 1, so that tiny priors do not underflow.
    miss = odds.clamp(min=0).exp()
    false_alarm = (-odds).clamp(min=0).exp()
    curve = counts.rates()
    hull = convex_hull(counts).rates()
    place = torch.searchsorted(curve.thresholds, -odds).clamp(max=len(curve.thresholds) - 1)
    actual = miss * curve.p_miss[place] + false_alarm * curve.p_fa[place]
    minimum = (miss.unsqueeze(1) * hull.p_miss + false_alarm.unsqueeze(1) * hull.p_fa).amin(
        dim=1
    )
    return BayesErrors(actual, minimum)
