"""Drafts of a `ConcernSpec` from what is known about the classes: a hierarchy, costs or an order."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import torch

from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.errors import quoted, shown


def spec_from_tree(
    tree: object, *, classes: Sequence[str] | None = None, max_distance: int = 2, factor: float = 0.5
) -> ConcernSpec:
    """Release pairs of classes that are close in a class hierarchy.

    Args:
        tree: Nested mappings whose leaves are lists of class names, or lists of lists, as read from YAML.
        classes: All classes in index order. Default: the order of the tree.
        max_distance: Release pairs of classes that are at most this many edges apart; siblings are 2 apart.
        factor: The concern of a released pair.

    Raises:
        ValueError: If the tree contains anything else or a class twice, or ``classes`` differ from its leaves.

    Example:
        >>> tree = {"animal": ["cat", "dog"], "vehicle": ["car", "bus"]}
        >>> spec_from_tree(tree).releases
        ((0, 1), (1, 0), (2, 3), (3, 2))
    """
    paths = list(_leaves(tree, ()))
    names = [name for name, _ in paths]
    twice = sorted(name for name, count in Counter(names).items() if count > 1)
    if twice:
        raise ValueError(f"tree must contain each class once, but {shown(', '.join(twice))} appears twice.")
    releases = []
    for name, path in paths:
        near = [other for other, other_path in paths if other != name and _edges(path, other_path) <= max_distance]
        if near:
            releases.append([name, *near])
    if classes is not None and sorted(classes) != sorted(names):
        raise ValueError(f"classes must be the leaves of the tree, {quoted(names)}, but got {quoted(classes)}.")
    return ConcernSpec(list(classes or names), releases=releases, factor=factor)


def spec_from_costs(costs: Sequence[Sequence[float]], classes: Sequence[str]) -> ConcernSpec:
    """Weigh each confusion of a true class (row) with another (column) by its cost; the highest cost gets weight 1.

    Raises:
        ConcernError: If the costs are not a square matrix whose off-diagonal elements are above 0.
    """
    spec = ConcernSpec(list(classes), weights=costs)
    off_diagonal = spec.matrix().fill_diagonal_(0)
    return ConcernSpec(list(classes), weights=(off_diagonal / off_diagonal.max()).fill_diagonal_(1).tolist())


def spec_from_order(classes: Sequence[str], *, under: float = 1.0, over: float = 1.0) -> ConcernSpec:
    """Weigh each confusion by the distance of the two classes in their order; the largest weight is 1.

    Args:
        classes: The C class names, from the lowest to the highest.
        under: The cost of each step by which the predicted class is lower than the true one, finite and >= 0.
        over: The cost of each step by which the predicted class is higher than the true one, finite and >= 0.

    Raises:
        ValueError: If ``under`` or ``over`` is not a finite number >= 0, or both are 0.
        ConcernError: If there are fewer than 2 classes, or two have the same name.

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


def _leaves(tree: object, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each class with the branches that lead to it."""
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
        raise ValueError(
            f"tree must contain only mappings, lists and class names, but has {quoted(tree)} at {shown(where)}."
        )


def _edges(path: Sequence[str], other: Sequence[str]) -> int:
    """Count the edges between two leaves: up from one to the last shared branch, and down to the other."""
    shared = 0
    while shared < min(len(path), len(other)) and path[shared] == other[shared]:
        shared += 1
    return len(path) + len(other) - 2 * shared + 2
