"""Class probabilities under other class frequencies than those that a model was trained on."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_by_class, check_priors
from mpcs_torch.functional.inputs.probabilities import Samples


def shift_priors(probs: Tensor, *, training_priors: Tensor, priors: Tensor) -> Tensor:
    r"""Correct class probabilities for class frequencies that differ between training and deployment.

    .. math:: p'_c = \frac{p_c \pi'_c / \pi_c}{\sum_j p_j \pi'_j / \pi_j}

    This is right if the samples of each class look the same in both, and the probabilities are calibrated.

    Args:
        probs: ``(N, C)`` or ``(N, C, ...)`` floating point probabilities.
        training_priors: :math:`\pi`, ``(C,)``: the class frequencies of the training data, > 0, with a sum of 1.
        priors: :math:`\pi'`, ``(C,)``: the class frequencies of the deployment, >= 0, with a sum of 1.

    Returns:
        Probabilities of the shape of ``probs``. Where the classes that can occur have a probability of 0, the ratios of
        the priors decide alone.

    Raises:
        ValueError: If a shape or priors break their rule above.

    References:
        Saerens, Latinne, Decaestecker: Adjusting the Outputs of a Classifier to New a Priori Probabilities, Neural
        Computation 14(1), 2002, Eq. 2.4.

    Example:
        >>> import torch
        >>> even = torch.tensor([0.5, 0.5])
        >>> shift_priors(torch.tensor([[0.9, 0.1]]), training_priors=even, priors=torch.tensor([0.1, 0.9]))
        tensor([[0.5000, 0.5000]])
    """
    check_by_class(probs, "probs")
    check_priors(priors, probs.shape[1], name="priors")
    check_priors(training_priors, probs.shape[1], name="training_priors", above_0=True)
    rows = probs.movedim(1, -1)
    shifted = _normalized(rows * (priors / training_priors).to(rows), priors / training_priors)
    return shifted.movedim(-1, 1)


def shifted_probs(samples: Samples, ratio: Tensor) -> Tensor:
    """Return the probabilities (M, C) of samples under other priors, given the ratio (C,) of new to old ones."""
    if samples.scale == "probs":
        return _normalized(samples.scores * ratio.to(samples.scores), ratio)
    # In logarithms, because probabilities of 0 may come from an underflow.
    log_shifted = samples.log_probs() + ratio.to(samples.scores).log()
    highest = log_shifted.amax(dim=1, keepdim=True)
    return _normalized((log_shifted - highest.nan_to_num(neginf=0.0)).exp(), ratio)


def _normalized(weights: Tensor, ratio: Tensor) -> Tensor:
    """Divide rows (..., C) by their sums; rows without any weight become the ratio."""
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, weights / total, (ratio / ratio.sum()).to(weights))


def prior_ratio(training_priors: Tensor | None, priors: Tensor | None, num_classes: int) -> Tensor | None:
    """Return the checked ratio (C,) of priors in deployment to those of the training data; None where both are None."""
    if training_priors is None and priors is None:
        return None
    if training_priors is None or priors is None:
        missing, given = ("training_priors", "priors") if training_priors is None else ("priors", "training_priors")
        raise ValueError(f"{missing} must be given together with {given}, but got None.")
    check_priors(priors, num_classes, name="priors")
    check_priors(training_priors, num_classes, name="training_priors", above_0=True)
    return priors / training_priors
