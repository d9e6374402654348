"""Decisions with the minimum expected cost."""

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.checks import check_concern


def least_concern_decision(probs: Tensor, *, concern: Tensor) -> Tensor:
    r"""Decide for the class with the minimum expected concern: the Bayes decision for a concern matrix.

    .. math:: \hat{y} = \arg\min_j \sum_{i \ne j} p_i D_{ij}

    Equal weights give the most probable class. A larger weight of a confusion makes the decision avoid it. The expected
    concern is only right if the probabilities are calibrated.

    Args:
        probs: ``(N, C)`` or ``(N, C, ...)`` probabilities, floating point.
        concern: ``(C, C)`` weights > 0 for taking the true class (row) for another (column); the diagonal is not read.

    Returns:
        int64 class indices ``(N,)`` or ``(N, ...)``; ties go to the more probable class, then to the lower index.

    Raises:
        ValueError: If a shape or a dtype breaks its rule above.

    References:
        Duda, Hart, Stork: Pattern Classification, 2nd ed., Section 2.2 (conditional risk).

    Example:
        >>> probs = torch.tensor([[0.5, 0.4, 0.1]])
        >>> red_for_green_is_grave = torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 1.0], [9.0, 1.0, 0.0]])
        >>> least_concern_decision(probs, concern=red_for_green_is_grave)
        tensor([1])
    """
    if not probs.is_floating_point() or probs.ndim < 2:
        raise ValueError(
            f"probs must be floating point of shape (N, C) or (N, C, ...), but got {probs.dtype} {tuple(probs.shape)}."
        )
    check_concern(concern, probs.shape[1])
    return least_risk(probs.movedim(1, -1), concern)


def least_risk(rows: Tensor, concern: Tensor) -> Tensor:
    """Return the decisions for probabilities (..., C). Nothing here waits for an accelerator."""
    rows = rows.float() if rows.dtype in (torch.float16, torch.bfloat16) else rows
    risk = rows @ without_diagonal(concern).to(rows)
    return torch.where(risk <= risk.amin(dim=-1, keepdim=True), rows, -1.0).argmax(dim=-1)


def without_diagonal(concern: Tensor) -> Tensor:
    """Return the concern matrix with a diagonal of 0: right decisions cost nothing."""
    return concern.clone().fill_diagonal_(0)
