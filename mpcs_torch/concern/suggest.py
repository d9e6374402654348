"""Draft a `ConcernSpec` from costs, an order of classes, or an embedding."""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from mpcs_torch.concern.spec import ConcernSpec

MIN_SHARE = 0.01
"""The minimum share of neighbours of a released pair of classes, if no number of pairs is given."""


def spec_from_costs(costs: Sequence[Sequence[float]], classes: Sequence[str]) -> ConcernSpec:
    """Make a spec with weights proportional to ``costs`` (rows are true classes); the highest weight is 1."""
    spec = ConcernSpec(list(classes), weights=costs)
    off_diagonal = spec.mpcs_weights().fill_diagonal_(0)
    return ConcernSpec(list(classes), weights=(off_diagonal / off_diagonal.max()).fill_diagonal_(1).tolist())


def spec_from_order(classes: Sequence[str], *, under: float = 1.0, over: float = 1.0) -> ConcernSpec:
    """Make a spec whose weights are proportional to the distance of two ordered classes; the largest weight is 1.

    Args:
        classes: The C class names, from the lowest to the highest.
        under: The cost per step of predicting a class below the true one, finite and >= 0.
        over: The cost per step of predicting a class above the true one, finite and >= 0.

    Example:
        >>> spec_from_order(["healthy", "mild", "severe"], under=5).weights  # rows are true classes
        ((1.0, 0.1, 0.2), (0.5, 1.0, 0.1), (1.0, 0.5, 1.0))
    """
    for name, cost in (("under", under), ("over", over)):
        if not 0 <= cost < math.inf:
            raise ValueError(f"{name} must be a finite number >= 0, but got {cost}.")
    if under == over == 0:
        raise ValueError("under or over must be above 0, but both are 0.")
    place = torch.arange(len(classes), dtype=torch.float64)
    steps = (place.unsqueeze(0) - place.unsqueeze(1)) / max(len(classes) - 1, 1)  # below 0: predicted is lower
    highest = max(under, over)
    weights = torch.where(steps < 0, -steps * (under / highest), steps * (over / highest))
    rounded = [[round(weight, 12) for weight in row] for row in weights.fill_diagonal_(1).tolist()]  # 0.14, not 0.1399
    return ConcernSpec(list(classes), weights=rounded)


def neighbour_shares(embedding: Tensor, labels: Tensor, num_classes: int, *, neighbours: int = 10) -> Tensor:
    """Compute the share of each class among the nearest neighbours of each class in an embedding, such as t-SNE.

    Args:
        embedding: ``(N, D)`` floating-point positions.
        labels: ``(N,)`` integer class indices.
        num_classes: The number of classes, C.
        neighbours: The number of nearest neighbours per sample.

    Returns:
        ``(C, C)``, float64, in [0, 1]: row i has the share of each class among the neighbours of samples of class i.
    """
    from sklearn.neighbors import NearestNeighbors

    if len(labels) <= neighbours:
        raise ValueError(f"embedding must have more than {neighbours} samples, but has {len(labels)}.")
    nearest = NearestNeighbors(n_neighbors=neighbours).fit(embedding.numpy()).kneighbors(return_distance=False)
    near = labels[torch.from_numpy(nearest)]
    pairs = labels.unsqueeze(1) * num_classes + near
    counts = torch.bincount(pairs.flatten(), minlength=num_classes**2).reshape(num_classes, num_classes).double()
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1)


def spec_from_neighbours(
    shares: Tensor, classes: Sequence[str], *, pairs: int | None = None, factor: float = 0.5
) -> ConcernSpec:
    """Make a spec that releases (tolerates) confusions, in both directions, of classes close in an embedding.

    The MPCS paper released classes that are adjacent in a t-SNE projection. Such classes are hard to separate. Check
    that confusing them does no harm.

    Args:
        shares: ``(C, C)`` shares of neighbours in [0, 1] from `neighbour_shares`, or the mean of several such results.
            The share of a pair of classes i and j is the larger of ``shares[i, j]`` and ``shares[j, i]``.
        classes: The C class names.
        pairs: The number of ordered pairs (true, predicted) to release, which must be even, because both directions are
            released. Default: all pairs with a share of at least 0.01.
        factor: The concern (cost) of a released pair; other errors cost 1.

    Example:
        >>> shares = torch.tensor([[0.9, 0.1, 0.0], [0.0, 0.8, 0.2], [0.0, 0.3, 0.7]])
        >>> spec_from_neighbours(shares, ["cat", "dog", "wolf"], pairs=2).releases
        ((1, 2), (2, 1))
    """
    adjacent = _adjacent(shares, pairs)
    most = int(adjacent.sum())
    if pairs is not None and most < pairs:
        raise ValueError(f"pairs must be at most {most}, the pairs of classes that are neighbours, but got {pairs}.")
    releases = [[i, *row.nonzero().flatten().tolist()] for i, row in enumerate(adjacent) if row.any()]
    return ConcernSpec(list(classes), releases=releases, factor=factor)


def count_releases(shares: Tensor, *, pairs: int | None = None) -> Tensor:
    """Count for each pair of classes how many of R embeddings (with R seeds, say) would release it: int64 (C, C).

    ``shares`` (R, C, C) are results of `neighbour_shares`, and ``pairs`` is as in `spec_from_neighbours`.

    Example:
        >>> runs = torch.tensor([[[0.9, 0.1], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]])
        >>> count_releases(runs)
        tensor([[0, 1],
                [1, 0]])
    """
    return torch.stack([_adjacent(run, pairs) for run in shares]).long().sum(dim=0)


def _adjacent(shares: Tensor, pairs: int | None) -> Tensor:
    """Return whether to release each pair of classes, bool (C, C), symmetric; False if its share is 0."""
    mutual = torch.maximum(shares, shares.t())
    if pairs is None:
        return (mutual >= MIN_SHARE).fill_diagonal_(False)
    if pairs < 2 or pairs % 2:
        raise ValueError(f"pairs must be even and at least 2, as both directions are released, but got {pairs}.")
    upper = mutual.triu(1).flatten()
    nearest = upper.argsort(descending=True, stable=True)[: pairs // 2]
    adjacent = torch.zeros_like(upper, dtype=torch.bool)
    adjacent[nearest] = upper[nearest] > 0
    one_way = adjacent.reshape(mutual.shape)
    return one_way | one_way.t()
