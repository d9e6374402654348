"""Make a `ConcernSpec` from a class hierarchy: releases of close classes, or costs by height."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mpcs_torch.concern.spec import ConcernSpec
from mpcs_torch.errors import InvalidValueError, require, shown

Path = tuple[str, ...]
"""The names of the branches from the root to a class, or to a branch."""


def spec_from_tree(tree: object, *, classes: Sequence[str] | None = None) -> ConcernSpec:
    """Make a spec that releases (tolerates) confusions of siblings: classes of the same branch of a class hierarchy.

    Args:
        tree: Nested mappings or lists whose leaves are class names; a class may also be a key without a value (None).
        classes: All classes in index order. Default: the order of the tree.

    Example:
        >>> tree = {"animal": ["cat", "dog"], "vehicle": ["car", "bus"]}
        >>> spec_from_tree(tree).releases
        ((0, 1), (1, 0), (2, 3), (3, 2))
    """
    paths = _class_paths(tree, classes)
    of_branch = defaultdict[Path, list[str]](list)
    for name, path in paths.items():
        of_branch[path].append(name)
    releases = []
    for name, path in paths.items():
        siblings = [other for other in of_branch[path] if other != name]
        if siblings:
            releases.append([name, *siblings])
    return ConcernSpec(list(classes or paths), releases=releases)


def spec_from_heights(
    tree: object, *, classes: Sequence[str] | None = None, dangerous: float | None = None
) -> ConcernSpec:
    """Make a spec in which an error costs the height of the lowest common ancestor of both classes in a hierarchy.

    The height of a branch is the number of edges to its farthest class. Costs are divided by the height of the root, so
    the largest is 1. `MeanSeverity` is then the mean severity of mistakes, as a share of the height of the tree.

    Args:
        tree: As in `spec_from_tree`; `tree_from_pairs` makes one from pairs (parent, child).
        classes: All classes in index order. Default: the order of the tree.
        dangerous: The minimum cost of a dangerous error. Default: every error is dangerous.

    References:
        Bertinetto et al.: Making Better Mistakes: Leveraging Class Hierarchies with Deep Networks, CVPR 2020, Section
        3.1. Deviation: heights are divided by that of the root.

    Example:
        >>> tree = {"animal": {"pet": ["cat", "dog"], "farm": ["cow"]}, "vehicle": ["car"]}
        >>> spec_from_heights(tree).costs()[0]  # of deciding for cat, dog, cow and car if the class is cat
        tensor([0.0000, 0.3333, 0.6667, 1.0000], dtype=torch.float64)
    """
    paths = _class_paths(tree, classes)
    heights = dict[Path, int]()  # of each branch; the path of the root is empty
    for path in paths.values():
        for depth in range(len(path) + 1):
            branch = path[:depth]
            height = len(path) + 1 - depth
            heights[branch] = max(heights.get(branch, 0), height)
    names = list(classes or paths)
    rows = list[list[float]]()
    for name in names:
        costs = list[float]()
        for other in names:
            ancestor = _common(paths[name], paths[other])
            costs.append(0.0 if other == name else heights[ancestor] / heights[()])
        rows.append(costs)
    return ConcernSpec(names, weights=rows, dangerous=dangerous)


def tree_from_pairs(pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the tree of pairs (parent, child) as nested mappings, in which the value of a class is None.

    Raises:
        ValueError: If there is no single root, a child has several parents, or there is a circle.

    Example:
        >>> tree_from_pairs([("thing", "animal"), ("thing", "car"), ("animal", "cat"), ("animal", "dog")])
        {'animal': {'cat': None, 'dog': None}, 'car': None}
    """
    branches = {parent: dict[str, Any]() for parent, _ in pairs}
    children = [child for _, child in pairs]
    repeated = [name for name, count in Counter(children).items() if count > 1]
    require(not repeated, "child_once", "pairs", repeated)
    roots = [name for name in branches if name not in children]
    require(len(roots) == 1, "one_root", "pairs", roots)
    for parent, child in pairs:
        branches[parent][child] = branches.get(child)
    # Each child has one parent, so a child that the root does not lead to is in a circle, or below one.
    reached = set[str]()
    waiting = list(roots)
    while waiting:
        name = waiting.pop()
        reached.add(name)
        waiting += branches.get(name, {})
    circle = sorted({*children} - reached)
    require(not circle, "no_circle", "pairs", circle)
    return branches[roots[0]]


def _class_paths(tree: object, classes: Sequence[str] | None) -> dict[str, Path]:
    """Return the path of each class; raise a ValueError if classes repeat, or if they are not ``classes``."""
    leaves = list(_leaves(tree, ()))
    names = [name for name, _ in leaves]
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    require(not repeated, "class_once", "tree", repeated)
    if classes is not None:
        require(
            sorted(classes) == sorted(names), "leaves", "classes", classes, leaves=names
        )
    return dict(leaves)


def _leaves(tree: object, above: Path) -> Iterator[tuple[str, Path]]:
    """Yield each class in ``tree``, and the names of the branches from the root to this class."""
    if isinstance(tree, str):
        yield tree, above
    elif isinstance(tree, Mapping):
        for name, branch in tree.items():
            if branch is None:
                yield str(name), above
            else:
                yield from _leaves(branch, (*above, str(name)))
    elif isinstance(tree, Sequence):
        for place, branch in enumerate(tree):
            # A class in a list belongs to the branch itself; a nested branch is named by its place.
            path = above if isinstance(branch, str) else (*above, str(place))
            yield from _leaves(branch, path)
    else:
        where = shown("/".join(above) or "its root")
        raise InvalidValueError("tree", "tree", tree, place=where)


def _common(path: Path, other: Path) -> Path:
    """Return the path to the lowest common ancestor of two classes."""
    depth = 0
    while depth < min(len(path), len(other)) and path[depth] == other[depth]:
        depth += 1
    return path[:depth]
