"""Drafts of a `ConcernSpec` from an embedding: classes that are neighbours are hard to separate."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mpcs_torch.concern.spec import ConcernSpec


def neighbour_shares(embedding: Tensor, labels: Tensor, num_classes: int, *, neighbours: int = 10) -> Tensor:
    """Compute how much the classes overlap in an embedding such as t-SNE: the classes of the nearest neighbours.

    Args:
        embedding: ``(N, D)`` floating-point positions.
        labels: ``(N,)`` integer class indices.
        num_classes: The number of classes, C.
        neighbours: The number of nearest neighbours of each sample to count.

    Returns:
        ``(C, C)`` float64 in [0, 1]: of the neighbours of the row's samples, the share in the column's class.

    Raises:
        ValueError: If there are not more samples than ``neighbours``.
    """
    from sklearn.neighbors import NearestNeighbors

    if len(labels) <= neighbours:
        raise ValueError(f"embedding must have more than {neighbours} samples, but has {len(labels)}.")
    found = NearestNeighbors(n_neighbors=neighbours).fit(embedding.numpy()).kneighbors(return_distance=False)
    near = labels[torch.from_numpy(found)]
    pairs = labels.unsqueeze(1) * num_classes + near
    counts = torch.bincount(pairs.flatten(), minlength=num_classes**2).reshape(num_classes, num_classes).double()
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1)


def spec_from_neighbours(
    shares: Tensor,
    classes: Sequence[str],
    *,
    min_share: float | None = None,
    pairs: int | None = None,
    factor: float = 0.5,
) -> ConcernSpec:
    """Release the pairs of classes that are neighbours, in both directions: those with enough or the most neighbours.

    The paper released the pairs that are adjacent in a t-SNE projection, that is, classes that are hard to separate.
    This describes the data; only you can say whether such an error does harm.

    Args:
        shares: ``(C, C)`` shares of neighbours in [0, 1], from `neighbour_shares`, or the mean of several. Each pair
            of classes counts with the larger of its two shares.
        classes: The C class names.
        min_share: The smallest share of neighbours that releases a pair, above 0 and at most 1. Default: 0.01.
        pairs: Instead of ``min_share``: how many ordered pairs to release, an even number.
        factor: The concern of a released pair.

    Raises:
        ValueError: If ``min_share`` and ``pairs`` are both given or out of range, or fewer classes are neighbours.

    Example:
        >>> shares = torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.0, 0.3, 0.7]])
        >>> spec_from_neighbours(shares, ["cat", "dog", "wolf"], pairs=2).releases
        ((1, 2), (2, 1))
    """
    adjacent = _adjacent(shares, min_share, pairs)
    if pairs is not None and int(adjacent.sum()) < pairs:
        found = int(adjacent.sum())
        raise ValueError(f"pairs must be at most {found}, the pairs of classes that are neighbours, but got {pairs}.")
    releases = [[classes[i], *_where(adjacent[i], classes)] for i in range(len(classes)) if adjacent[i].any()]
    return ConcernSpec(list(classes), releases=releases, factor=factor)


def count_releases(shares: Tensor, *, min_share: float | None = None, pairs: int | None = None) -> Tensor:
    """Count the runs of an embedding, such as t-SNE with several seeds, that alone would release each pair of classes.

    Args:
        shares: ``(R, C, C)`` shares of neighbours in [0, 1] in each of R runs, from `neighbour_shares`.
        min_share: As in `spec_from_neighbours`.
        pairs: As in `spec_from_neighbours`; a run with fewer neighbours releases fewer pairs.

    Returns:
        ``(C, C)`` int64 in [0, R], symmetric, with a diagonal of 0.

    Raises:
        ValueError: If ``min_share`` and ``pairs`` are both given or out of range.

    Example:
        >>> runs = torch.tensor([[[0.9, 0.1], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> count_releases(runs, min_share=0.05)
        tensor([[0, 1],
                [1, 0]])
    """
    return torch.stack([_adjacent(run, min_share, pairs) for run in shares]).long().sum(dim=0)


def _adjacent(shares: Tensor, min_share: float | None, pairs: int | None) -> Tensor:
    """Return the pairs that the rule releases, bool (C, C) and symmetric; never a pair without common neighbours."""
    mutual = torch.maximum(shares, shares.t())
    if pairs is None:
        least = 0.01 if min_share is None else min_share
        if not 0 < least <= 1:
            raise ValueError(f"min_share must be above 0 and at most 1, but got {least}.")
        return (mutual >= least).fill_diagonal_(False)
    if min_share is not None:
        raise ValueError(f"pairs cannot be combined with min_share, but got {pairs} and {min_share}.")
    if pairs < 2 or pairs % 2:
        raise ValueError(f"pairs must be even and at least 2, as both directions are released, but got {pairs}.")
    upper = mutual.triu(1).flatten()
    nearest = upper.argsort(descending=True, stable=True)[: pairs // 2]
    adjacent = torch.zeros_like(upper, dtype=torch.bool)
    adjacent[nearest] = upper[nearest] > 0
    one_way = adjacent.reshape(mutual.shape)
    return one_way | one_way.t()


def _where(row: Tensor, classes: Sequence[str]) -> list[str]:
    return [name for name, adjacent in zip(classes, row.tolist(), strict=True) if adjacent]
