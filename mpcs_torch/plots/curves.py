"""The points of a detector's curve that a figure shows."""

import torch
from torch import Tensor

CELLS = 2000
"""The number of grid cells along each axis: finer than a figure can show."""


def thinned(x: Tensor, y: Tensor) -> tuple[list[float], list[float]]:
    """Return a line that looks the same through the first and the last point in each cell of a fine grid.

    Args:
        x: ``(K,)``, in [0, 1].
        y: ``(K,)``, in [0, 1].
    """
    cells = torch.stack([_cells_of(x), _cells_of(y)])
    changes = (cells.diff(dim=1) != 0).any(dim=0)
    ends = changes.new_ones(1)
    kept = (torch.cat([ends, changes]) | torch.cat([changes, ends])).nonzero().squeeze(1)
    return x[kept].tolist(), y[kept].tolist()


def _cells_of(values: Tensor) -> Tensor:
    """Return the cells of rates on a logit scale, which is fine at both ends of [0, 1]."""
    tiny = 1e-12
    logit = values.clamp(min=tiny).log() - (1 - values).clamp(min=tiny).log()
    return (logit * (CELLS / 40)).round().long()
