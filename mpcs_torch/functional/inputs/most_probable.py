"""The most probable classes of each sample, where ties go to the lower class: the one place that decides it."""

import torch
from torch import Tensor


def highest_class(scores: Tensor, dim: int = 1) -> tuple[Tensor, Tensor]:
    """Return the highest score of each sample of (N, C, ...), NaN if one is, and its class, the lowest of several."""
    highest, label = scores.max(dim=dim)  # of several maximal values, PyTorch promises the first
    return highest, label


def highest_classes(scores: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Return the k highest scores of each sample, (M, k), and their classes, int64, the lower ones of equal scores.

    Args:
        scores: (M, C), floating point.
        k: From 1 to C.

    Returns:
        In descending order of the scores, with NaN first. Classes of equal scores come in any order.
    """
    # A sort is quicker for few classes, and needs no look at whether there are ties, which others would wait for.
    if scores.shape[1] <= 16 or not scores.is_cpu or torch.compiler.is_compiling():
        scores = scores if scores.is_cpu else scores + 0.0  # on a GPU, a sort takes -0.0 for less than 0.0
        highest, label = scores.sort(dim=1, descending=True, stable=True)
        return highest[:, :k], label[:, :k]
    # Much quicker than a sort, but which of the classes is left out that tie for the last place is not defined.
    highest, label = scores.topk(min(k + 1, scores.shape[1]), dim=1)
    if k < scores.shape[1]:
        tied = highest[:, k - 1] == highest[:, k]
        if tied.any():
            rows, last = scores[tied], highest[tied, k - 1 : k]
            higher, equal = ~(rows <= last), rows == last  # NaN is higher
            left = k - higher.sum(dim=1, keepdim=True)
            members = (higher | (equal & (equal.cumsum(dim=1) <= left))).nonzero()[:, 1].view(-1, k)
            order = rows.gather(1, members).sort(dim=1, descending=True, stable=True).indices
            label[tied, :k] = members.gather(1, order)
    return highest[:, :k], label[:, :k]
