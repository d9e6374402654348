"""The points of a detector's curve that a figure shows, and the distributions of its scores."""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.functional.detection.equal_error_rate import equal_error_of
from mpcs_torch.functional.detection.errors import ErrorRates, middle_of
from mpcs_torch.plots.canvas import BLACK, NONTARGETS, TARGETS, canvas, legend_below

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


BINS = 100
DRAWN = 1e300
"""Scores of a larger magnitude are drawn like infinite ones: their differences can overflow."""


def score_histograms(rates: ErrorRates, title: str) -> Figure:
    """Draw the density of the scores of targets and non-targets, and the threshold of equal errors.

    Infinite scores are drawn in the outer bins.

    Args:
        rates: The curve of the detector, as returned by `functional.detection_curve`.
        title: The title of the figure.
    """
    counts = rates.counts()
    equal = equal_error_of(counts, "nearest")
    drawn = counts.thresholds[counts.thresholds.abs() < DRAWN]
    low, high = (drawn[0].item(), drawn[-1].item()) if len(drawn) else (0.0, 0.0)
    edges = torch.linspace(low, high if high > low else low + BINS, BINS + 1, dtype=torch.float64)
    low, high = edges[0].item(), edges[-1].item()
    width = (high - low) / BINS or 1.0  # the edges of one huge score can be equal
    figure, axes = canvas(3.0, title, xlabel="score", ylabel="density")
    first, last = edges.new_tensor([0]).long(), edges.new_tensor([len(counts.thresholds) - 1]).long()
    places = torch.cat([first, torch.searchsorted(counts.thresholds, edges[1:-1]), last])
    kinds = ("non-targets", -counts.false_alarms, NONTARGETS), ("targets", counts.misses, TARGETS)
    for name, below, colour in kinds:
        in_bins = below[places].diff()
        density = (in_bins.double() / in_bins.sum() / width).tolist()
        axes.stairs(density, edges.tolist(), fill=True, alpha=0.45, color=colour, label=f"{int(in_bins.sum())} {name}")
    middle = middle_of(equal.low, equal.high).item()
    if low <= middle <= high:
        label = f"equal error rates at {middle:.4g}"
        axes.axvline(middle, color=BLACK, linewidth=0.9, linestyle=":", label=label)
    legend_below(figure)
    return figure
