"""Class probabilities under other class frequencies than those that a model was trained on."""

from torch import Tensor


def shift_priors(probs: Tensor, *, training_priors: Tensor, priors: Tensor) -> Tensor:
    r"""Correct class probabilities for class frequencies that differ between training and deployment.

    .. math:: p'_c = \frac{p_c \pi'_c / \pi_c}{\sum_j p_j \pi'_j / \pi_j}

    This is right if the samples of each class look the same in both, and the probabilities are calibrated.

    Args:
        probs: ``(N, C)`` or ``(N, C, ...)`` floating point probabilities.
        training_priors: :math:`\pi`, ``(C,)``: the class frequencies of the training data, > 0, with a sum of 1.
        priors: :math:`\pi'`, ``(C,)``: the class frequencies of the deployment, >= 0, with a sum of 1.

    Returns:
        Probabilities of the shape of ``probs``; NaN for a sample whose classes all have a prior of 0 in the deployment.

    Raises:
        ValueError: If priors break their rule above.

    References:
        Saerens, Latinne, Decaestecker: Adjusting the Outputs of a Classifier to New a Priori Probabilities, Neural
        Computation 14(1), 2002, Eq. 2.4.

    Example:
        >>> import torch
        >>> even = torch.tensor([0.5, 0.5])
        >>> shift_priors(torch.tensor([[0.9, 0.1]]), training_priors=even, priors=torch.tensor([0.1, 0.9]))
        tensor([[0.5000, 0.5000]])
    """
    check_priors(priors, probs.shape[1], name="priors")
    check_priors(training_priors, probs.shape[1], name="training_priors")
    return shifted(probs, priors / training_priors)


def shifted(probs: Tensor, ratio: Tensor) -> Tensor:
    """Multiply probabilities (N, C, ...) by the ratio (C,) of new to old priors, and normalize."""
    shape = (1, -1, *([1] * (probs.ndim - 2)))
    weighted = probs * ratio.to(probs).reshape(shape)
    return weighted / weighted.sum(dim=1, keepdim=True)


def check_priors(priors: Tensor, num_classes: int, *, name: str) -> None:
    """Refuse priors that are not (C,) and a distribution; those of the training data must be above 0."""
    if not isinstance(priors, Tensor) or priors.shape != (num_classes,):
        given = tuple(priors.shape) if isinstance(priors, Tensor) else repr(priors)
        raise ValueError(f"{name} must be a tensor of shape ({num_classes},), one prior per class, but got {given}.")
    lowest_allowed = ">= 0" if name == "priors" else "> 0"
    sound = (priors >= 0 if name == "priors" else priors > 0).all() and abs(priors.double().sum().item() - 1) <= 1e-3
    if not sound:
        raise ValueError(f"{name} must be {lowest_allowed} and sum to 1, but got {priors.tolist()}.")
