"""Thin curves of millions of points to lines of a few thousand."""

from torch import Tensor

from mpcs_torch.functional.detection.visible import visible_points


def thinned(x: Tensor, y: Tensor) -> tuple[list[float], list[float]]:
    """Return a line that looks the same, through some of the points."""
    kept = visible_points(x, y)
    return x[kept].tolist(), y[kept].tolist()
