"""The points of a detector's curve that a figure shows."""

from math import inf

import torch
from torch import Tensor

CELLS = 2000
"""The number of grid cells along each axis: finer than a figure can show."""
BINS = 100
"""The number of bins of a histogram of scores."""
DRAWN = 1e300
"""Scores of a larger magnitude are drawn like infinite ones: their differences can overflow."""


def visible_points(x: Tensor, y: Tensor) -> Tensor:
    """Return the indices of the points that a line needs: in each cell of a fine grid, the first and the last.

    Args:
        x: ``(K,)``, in [0, 1].
        y: ``(K,)``, in [0, 1].
    """
    cells = torch.stack([_cells_of(x), _cells_of(y)])
    changes = (cells.diff(dim=1) != 0).any(dim=0)
    ends = changes.new_ones(1)
    return (torch.cat([ends, changes]) | torch.cat([changes, ends])).nonzero().squeeze(1)


def _cells_of(values: Tensor) -> Tensor:
    """Return the cells of rates on a logit scale, which is fine at both ends of [0, 1]."""
    tiny = 1e-12
    logit = values.clamp(min=tiny).log() - (1 - values).clamp(min=tiny).log()
    return (logit * (CELLS / 40)).round().long()


def drawn_range(thresholds: Tensor) -> tuple[float, float]:
    """Return the lowest and the highest threshold that is drawn: infinity and minus infinity if there is none."""
    drawn = thresholds[thresholds.abs() < DRAWN]
    return (drawn[0].item(), drawn[-1].item()) if len(drawn) else (inf, -inf)


def bin_edges(low: float, high: float) -> Tensor:
    """Return the edges of the bins of scores within a range: ``(BINS + 1,)``, float64."""
    if low > high:
        low = high = 0.0
    return torch.linspace(low, high if high > low else low + BINS, BINS + 1, dtype=torch.float64)


def thinned(x: Tensor, y: Tensor) -> tuple[list[float], list[float]]:
    """Return a line that looks the same, through some of the points."""
    kept = visible_points(x, y)
    return x[kept].tolist(), y[kept].tolist()
