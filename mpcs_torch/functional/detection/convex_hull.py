"""The convex hull of a curve of error counts, fast for millions of points."""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from mpcs_torch.functional.detection.errors import ErrorCounts

SAMPLE = 2**13
"""The number of points from which a first, coarse hull is made."""


def hull_vertices(counts: "ErrorCounts") -> Tensor:
    """Return the indices of the vertices of the lower convex hull, both ends included: ascending, int64.

    Integer products are exact up to 2^63. Most points are removed first: those that a neighbour improves on without
    more errors of the other kind, and those above the hull of a sample.
    """
    x, y = counts.false_alarms, counts.misses
    last = len(x) - 1
    corners = ((x[1:-1] < x[:-2]) & (y[1:-1] < y[2:])).nonzero().squeeze(1) + 1
    ends = corners.new_tensor([0, last])
    if len(corners) > SAMPLE:
        sample = torch.cat([ends[:1], corners[:: len(corners) // SAMPLE], ends[1:]])
        coarse = sample[_quickhull(x[sample], y[sample])]
        corners = torch.cat([coarse[1:-1], corners[_depth(x, y, coarse, corners)[0] > 0]]).unique()  # type: ignore[no-untyped-call]
    inner = torch.cat([ends[:1], corners, ends[1:]])
    return inner[_quickhull(x[inner], y[inner])]


def edge_of_equal_rates(counts: "ErrorCounts") -> Tensor:
    """Return the two neighbouring vertices of the hull between which misses become as frequent as false alarms.

    It runs quickhull on the edge that crosses the diagonal alone.

    Returns:
        Their indices (2,), int64: the last vertex with rarer misses and the next one.
    """
    x, y = counts.false_alarms, counts.misses
    ends = torch.tensor([0, len(x) - 1], device=x.device)
    inside = torch.arange(1, len(x) - 1, device=x.device)
    while len(inside):
        low, high = ends
        depth = (x[low] - x[high]) * (y[high] - y[inside]) - (x[inside] - x[high]) * (y[high] - y[low])
        deepest = depth.amax()
        if deepest <= 0:
            break
        vertex, below = inside[depth == deepest][0], depth > 0
        misses_are_rarer = bool(y[vertex] * x[0] < x[vertex] * y[-1])
        ends = torch.stack([vertex, high] if misses_are_rarer else [low, vertex])
        inside = inside[below & ((inside > vertex) if misses_are_rarer else (inside < vertex))]
    return ends


def _quickhull(x: Tensor, y: Tensor) -> Tensor:
    """Run quickhull on all edges at once: each round keeps the points below an edge and makes the lowest a vertex."""
    vertices = torch.tensor([0, len(x) - 1], device=x.device)
    inside = torch.arange(1, len(x) - 1, device=x.device)
    while len(inside):
        depth, edge = _depth(x, y, vertices, inside)
        below = depth > 0
        inside, edge, depth = inside[below], edge[below], depth[below]
        deepest = depth.new_zeros(len(vertices) - 1).scatter_reduce(0, edge, depth, "amax")
        is_deepest = depth == deepest[edge]
        first = torch.full_like(deepest, len(x)).scatter_reduce(0, edge[is_deepest], inside[is_deepest], "amin")
        vertices = torch.cat([vertices, first[first < len(x)]]).unique()  # type: ignore[no-untyped-call]
        inside = inside[torch.isin(inside, vertices, invert=True, assume_unique=True)]
    return vertices


def _depth(x: Tensor, y: Tensor, vertices: Tensor, inside: Tensor) -> tuple[Tensor, Tensor]:
    """Return twice the triangle area of each point and the edge above it (positive below the edge), and its edge."""
    edge = torch.searchsorted(vertices, inside, right=True).clamp(max=len(vertices) - 1) - 1
    a, b = vertices[edge], vertices[edge + 1]
    return (x[a] - x[b]) * (y[b] - y[inside]) - (x[inside] - x[b]) * (y[b] - y[a]), edge
