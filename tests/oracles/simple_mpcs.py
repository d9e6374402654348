"""MPCS by a stable sort of all classes and one logarithm for each confidence: slow, and simple enough to read."""

import torch
from torch import Tensor


def scores(
    probs: Tensor, target: Tensor, *, k: int, t: int, concern: Tensor | None, correct_concern: str, by_class: bool
) -> Tensor:
    """Return the score of each row of (M, C).

    The members of a pattern are summed up one after the other, in the order of their probabilities or of their classes;
    the order matters for the last bit.
    """
    classes = probs.shape[1]
    pattern = probs.sort(dim=1, descending=True, stable=True).indices[:, :k]
    if by_class:
        pattern = pattern.sort(dim=1).values
    interval = (probs.double() * t).floor()
    present = (pattern == target.unsqueeze(1)).any(dim=1)
    weights = torch.ones(classes, classes, dtype=torch.float64) if concern is None else concern.double()
    others, punished = torch.zeros(len(probs), dtype=torch.float64), torch.zeros(len(probs), dtype=torch.float64)
    for member in pattern.t():
        level = t - 1 - interval.gather(1, member.unsqueeze(1)).squeeze(1)
        weight = torch.where(present, weights[target, member], 1) * (member != target)
        others += weight
        punished += -(level.clamp(min=1e-7) / (t - 1)).log() * weight
    level = interval.gather(1, target.unsqueeze(1)).squeeze(1).clamp(1e-7, t - 1)
    of_true = others if correct_concern == "sum" and k > 1 else torch.full_like(others, max(k - 1, 1))
    of_true = of_true * present
    return (punished - (level / (t - 1)).log() * of_true) / (others + of_true)
