"""Curves of millions of points as lines of a few thousand."""

import torch
from torch import Tensor

CELLS = 2000
"""Along each axis: finer than a figure shows."""


def thinned(x: Tensor, y: Tensor) -> tuple[list[float], list[float]]:
    """A line that looks the same: of points in one cell of a fine grid that follow each other, first and last."""
    cells = torch.stack([_cells_of(x), _cells_of(y)])
    changes = (cells.diff(dim=1) != 0).any(dim=0)
    ends = changes.new_ones(1)
    kept = torch.cat([ends, changes]) | torch.cat([changes, ends])
    return x[kept].tolist(), y[kept].tolist()


def _cells_of(values: Tensor) -> Tensor:
    """By logarithm, of a rate and of what is left of 1, so that no end of an axis is coarse."""
    tiny = 1e-12
    logit = values.clamp(min=tiny).log() - (1 - values).clamp(min=tiny).log()
    return (logit * (CELLS / 40)).round().long()
