"""Log-likelihood ratios from the class probabilities of a classifier."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_by_class, check_priors
from mpcs_torch.functional.inputs.faults import raise_first
from mpcs_torch.functional.inputs.probabilities import flatten_samples, scale_of


def log_likelihood_ratios(preds: Tensor, *, priors: Tensor, from_logits: bool = True) -> Tensor:
    r"""Compute the natural-log likelihood ratio of each class against the rest from class posteriors.

    .. math:: LLR_c = \log \frac{P_c}{1 - P_c} - \log \frac{\pi_c}{1 - \pi_c}

    The ratios do not depend on the class frequencies of the training data, so they can be used at any
    `OperatingPoint`; `cllr` and `actual_detection_cost` with ``num_classes`` evaluate them. For two classes, column 1
    holds the ratio of targets (class 1) against non-targets. Large ratios are exact where :math:`1 - P_c` rounds to 0.

    Args:
        preds: ``(N, C)`` or ``(N, C, ...)`` logits or probabilities of the classes, floating point.
        priors: ``(C,)`` prior probabilities > 0 that the posteriors include: those of the training data, unless the
            classifier was corrected for others. Must sum to 1.
        from_logits: Whether ``preds`` are logits rather than probabilities. Never guessed.

    Returns:
        Ratios of the shape of ``preds``, in its dtype, or in float32 for half types; -inf for a probability of 0, +inf
        for a probability of 1 beside zeros.

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
    unlabelled = torch.zeros(preds.shape[:1] + preds.shape[2:], dtype=torch.long, device=preds.device)
    samples = flatten_samples(
        preds, unlabelled, num_classes=len(priors), scale=scale_of(from_logits), ignore_index=None, sample_weight=None
    )
    raise_first(samples.find_faults())
    log_priors = priors.to(samples.scores).log()
    ratios = _log_odds(samples.scores if from_logits else samples.scores.log()) - _log_odds(log_priors.unsqueeze(0))
    return ratios.reshape(preds.movedim(1, -1).shape).movedim(-1, 1)


def _log_odds(logits: Tensor) -> Tensor:
    """Compute the log odds of each class against the rest: (M, C).

    The probability of the rest is summed over the rest for the top class. It is at least 1/2 for the other classes, for
    which 1 - P loses no digits.
    """
    log_probs = logits.log_softmax(dim=1)
    top = log_probs.argmax(dim=1, keepdim=True)
    rest_of_top = log_probs.scatter(1, top, -torch.inf).logsumexp(dim=1, keepdim=True)
    rest = torch.log1p(-log_probs.exp()).scatter(1, top, rest_of_top)
    return log_probs - rest
