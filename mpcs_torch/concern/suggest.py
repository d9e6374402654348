"""Drafts of a ConcernSpec, to be read by somebody who knows what the classes mean."""

from collections.abc import Iterator, Mapping, Sequence

import torch
from torch import Tensor

from mpcs_torch.concern.spec import ConcernSpec


def neighbour_shares(embedding: Tensor, labels: Tensor, num_classes: int, *, neighbours: int = 10) -> Tensor:
    """How the classes border on each other in an embedding such as t-SNE.

    Args:
        embedding: ``(N, D)`` floating point positions.
        labels: ``(N,)`` integer class indices.
        num_classes: C.
        neighbours: How many nearest neighbours of each sample to look at.

    Returns:
        ``(C, C)`` float64: of the neighbours of the row's samples, the share in the column's class.
    """
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=neighbours).fit(embedding.numpy()).kneighbors(return_distance=False)
    near = labels[torch.from_numpy(found)]
    pairs = labels.unsqueeze(1) * num_classes + near
    counts = torch.bincount(pairs.flatten(), minlength=num_classes**2).reshape(num_classes, num_classes).double()
    return counts / counts.sum(dim=1, keepdim=True).clamp(min=1)


def spec_from_neighbours(
    shares: Tensor, classes: Sequence[str], *, least_share: float = 0.01, factor: float = 0.5
) -> ConcernSpec:
    """Release, in both directions, each pair of classes of which one has at least this share of the other's neighbours.

    The paper released the pairs that are adjacent in a t-SNE projection: what is hard to tell apart is forgiven. That
    is a statement about the data; whether such an error does no harm is for you to say.
    """
    adjacent = (torch.maximum(shares, shares.t()) >= least_share).fill_diagonal_(False)
    releases = [[classes[i], *_where(adjacent[i], classes)] for i in range(len(classes)) if adjacent[i].any()]
    return ConcernSpec(list(classes), releases=releases, factor=factor)


def spec_from_tree(
    tree: object, *, classes: Sequence[str] | None = None, farthest: int = 2, factor: float = 0.5
) -> ConcernSpec:
    """Release pairs of classes that are near in a class hierarchy.

    Args:
        tree: Nested mappings whose leaves are lists of class names, or lists of lists, as read from YAML.
        farthest: Release pairs of classes up to so many edges apart; 2 are siblings.
        classes: All classes in index order. Default: in the order of the tree.
        factor: Concern of a released pair.

    Raises:
        ValueError: If the tree holds something else or a class twice, or ``classes`` are others.

    Example:
        >>> tree = {"animal": ["cat", "dog"], "vehicle": ["car", "bus"]}
        >>> spec_from_tree(tree).releases
        ((0, 1), (1, 0), (2, 3), (3, 2))
    """
    paths = list(_leaves(tree, ()))
    names = [name for name, _ in paths]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ValueError(f"tree must hold each class once, but {', '.join(sorted(twice))} stands twice.")
    releases = []
    for name, path in paths:
        near = [other for other, other_path in paths if other != name and _edges(path, other_path) <= farthest]
        if near:
            releases.append([name, *near])
    if classes is not None and sorted(classes) != sorted(names):
        raise ValueError(f"classes must be the leaves of the tree, {', '.join(names)}, but got {', '.join(classes)}.")
    return ConcernSpec(list(classes or names), releases=releases, factor=factor)


def spec_from_costs(costs: Sequence[Sequence[float]], classes: Sequence[str]) -> ConcernSpec:
    """Weights in proportion to the costs of taking each true class (row) for another (column); the dearest weighs 1.

    Raises:
        ConcernError: If the costs are no square matrix of numbers above 0 off the diagonal.
    """
    spec = ConcernSpec(list(classes), weights=costs)
    off_diagonal = spec.matrix().fill_diagonal_(0)
    return ConcernSpec(list(classes), weights=(off_diagonal / off_diagonal.max()).fill_diagonal_(1).tolist())


def spec_from_order(classes: Sequence[str]) -> ConcernSpec:
    """Weights in proportion to how far apart classes stand in their order, the farthest weighing 1.

    Example:
        >>> spec_from_order(["healthy", "mild", "severe"]).weights
        ((1.0, 0.5, 1.0), (0.5, 1.0, 0.5), (1.0, 0.5, 1.0))
    """
    place = torch.arange(len(classes), dtype=torch.float64)
    distances = (place.unsqueeze(0) - place.unsqueeze(1)).abs() / max(len(classes) - 1, 1)
    return ConcernSpec(list(classes), weights=distances.fill_diagonal_(1).tolist())


def _where(row: Tensor, classes: Sequence[str]) -> list[str]:
    return [name for name, adjacent in zip(classes, row.tolist(), strict=True) if adjacent]


def _leaves(tree: object, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """The classes, each with the branches that lead to it."""
    if isinstance(tree, str):
        yield tree, above
    elif isinstance(tree, Mapping):
        for name, branch in tree.items():
            yield from _leaves(branch, (*above, str(name)))
    elif isinstance(tree, Sequence):
        for place, branch in enumerate(tree):
            yield from _leaves(branch, above if isinstance(branch, str) else (*above, str(place)))
    else:
        where = "/".join(above) or "its root"
        raise ValueError(f"tree must hold mappings, lists and class names, but has {tree!r} at {where}.")


def _edges(path: Sequence[str], other: Sequence[str]) -> int:
    """Edges between two leaves: up from one to the last shared branch, and down to the other."""
    shared = 0
    while shared < min(len(path), len(other)) and path[shared] == other[shared]:
        shared += 1
    return len(path) + len(other) - 2 * shared + 2
