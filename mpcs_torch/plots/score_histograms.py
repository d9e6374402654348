"""The distributions of the scores of targets and non-targets."""

import torch
from matplotlib.figure import Figure

from mpcs_torch.functional.detection.equal_error_rate import equal_error_of
from mpcs_torch.functional.detection.errors import ErrorRates, middle_of
from mpcs_torch.plots.canvas import BLACK, NONTARGETS, TARGETS, canvas, legend_below

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
