"""The most probable classes of each sample; of classes with equal scores, the lower index is preferred."""

import torch
from torch import Tensor


def highest_class(scores: Tensor, dim: int = 1) -> tuple[Tensor, Tensor]:
    """Return the highest score along dimension ``dim`` (NaN if any is NaN) and its class, the lower one of a tie."""
    highest, label = scores.max(dim=dim)  # PyTorch documents that the first of several maxima is returned
    return highest, label


def highest_classes(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest scores of each sample, (M, k), and their classes, int64; ties go to the lower class.

    Args:
        scores: (M, C), floating point.
        k: From 1 to C.

    Returns:
        Both in descending order of the scores, with NaN first. The order of classes with equal scores is not defined.
    """
    # A sort is faster for few classes, and on accelerators it avoids the synchronization of the check for ties.
    if scores.shape[1] <= 16 or not scores.is_cpu or torch.compiler.is_compiling():
        scores = scores if scores.is_cpu else scores + 0.0  # a GPU sort ranks -0.0 below 0.0
        highest, label = scores.sort(dim=1, descending=True, stable=True)
        return highest[:, :k], label[:, :k]
    # topk is much faster than a sort, but does not define which class it drops in a tie for rank k.
    highest, label = scores.topk(min(k + 1, scores.shape[1]), dim=1)
    if k < scores.shape[1]:
        tied = highest[:, k - 1] == highest[:, k]
        if tied.any():
            rows, last = scores[tied], highest[tied, k - 1 : k]
            higher, equal = ~(rows <= last), rows == last  # NaN ranks highest
            n_equal = k - higher.sum(dim=1, keepdim=True)
            members = (higher | (equal & (equal.cumsum(dim=1) <= n_equal))).nonzero()[:, 1].view(-1, k)
            order = rows.gather(1, members).sort(dim=1, descending=True, stable=True).indices
            label[tied, :k] = members.gather(1, order)
    return highest[:, :k], label[:, :k]
