"""Draft a `ConcernSpec` from a class hierarchy, costs, or an order of classes."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

import torch

from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.errors import quoted, shown


def spec_from_tree(
    tree: object, *, classes: Sequence[str] | None = None, max_distance: int = 2, factor: float = 0.5
) -> ConcernSpec:
    """Make a spec that releases (tolerates) confusions of classes that are close in a class hierarchy.

    Args:
        tree: Nested mappings or lists whose leaves are class names.
        classes: All classes in index order. Default: the order of the tree.
        max_distance: The maximum number of edges between two released classes; siblings have a distance of 2.
        factor: The concern (cost) of a released pair; other errors cost 1.

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


def _leaves(tree: object, above: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each class in ``tree``, and the names of the branches from the root to this class."""
    if isinstance(tree, str):
        yield tree, above
    elif isinstance(tree, Mapping):
        for name, branch in tree.items():
            yield from _leaves(branch, (*above, str(name)))
    elif isinstance(tree, Sequence):
        for place, branch in enumerate(tree):
            yield from _leaves(branch, above if isinstance(branch, str) else (*above, str(place)))
    else:
        where = shown("/".join(above) or "its root")
        raise ValueError(f"tree must contain only mappings, lists and class names, but has {quoted(tree)} at {where}.")


def _edges(path: Sequence[str], other: Sequence[str]) -> int:
    """Count the edges between two leaves; ``path`` and ``other`` name the branches from the root to each leaf."""
    shared = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(path, other, strict=False))))
    return len(path) + len(other) - 2 * shared + 2
