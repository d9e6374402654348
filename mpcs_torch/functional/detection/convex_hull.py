"""The convex hull of a curve of error counts, fast for millions of points."""

from typing import Protocol

import torch
from torch import Tensor

SAMPLE = 2**13
"""The number of points from which a first, coarse hull is made."""


class Staircase(Protocol):
    """Points with integer coordinates, from all false alarms to all misses."""

    @property
    def misses(self) -> Tensor:
        """(K,), int64, never falling."""

    @property
    def false_alarms(self) -> Tensor:
        """(K,), int64, never rising."""


def hull_vertices(points: Staircase) -> Tensor:
    """Return the indices of the vertices of the lower convex hull, both ends included: ascending, int64.

    Integer products are exact up to 2^63. Most points are removed first: those that a neighbour improves on without
    more errors of the other kind, and those above the hull of a sample.
    """
    x, y = points.false_alarms, points.misses
    last = len(x) - 1
    corners = ((x[1:-1] < x[:-2]) & (y[1:-1] < y[2:])).nonzero().squeeze(1) + 1
    ends = corners.new_tensor([0, last])
    if len(corners) > SAMPLE:
        sample = torch.cat([ends[:1], corners[:: len(corners) // SAMPLE], ends[1:]])
        coarse = sample[_quickhull(x[sample], y[sample])]
        corners = torch.cat([coarse[1:-1], corners[_depth(x, y, coarse, corners)[0] > 0]]).unique()  # type: ignore[no-untyped-call]
    inner = torch.cat([ends[:1], corners, ends[1:]])
    return inner[_quickhull(x[inner], y[inner])]


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
