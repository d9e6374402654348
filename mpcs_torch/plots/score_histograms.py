"""The distributions of the scores of targets and non-targets."""

import torch
from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.functional.detection.equal_error_rate import equal_error_rate_details
from mpcs_torch.functional.detection.errors import checked_scores, middle_of
from mpcs_torch.plots.palette import BLACK, NONTARGETS, TARGETS
from mpcs_torch.plots.text import literal

BINS = 100
DRAWN = 1e300
"""Scores of a larger magnitude are drawn like infinite ones: their differences can overflow."""


def score_histograms(preds: Tensor, target: Tensor, title: str) -> Figure:
    """Draw the density of the scores of targets and non-targets, and the threshold of equal errors.

    Infinite scores are drawn in the outer bins.

    Args:
        preds: ``(N,)`` scores, floating point, higher for targets; of any range.
        target: ``(N,)`` integers or bools: 1 for targets, 0 for non-targets; both must occur.
        title: The title of the figure.

    Raises:
        ValueError: If a shape, a dtype or a value breaks its rule above.
    """
    scores, labels = checked_scores(preds, target)
    equal = equal_error_rate_details(scores, labels, method="nearest")
    finite = scores[scores.abs() < DRAWN]
    low, high = (finite.min().item(), finite.max().item()) if len(finite) else (0.0, 0.0)
    width = (high - low) / BINS or 1.0
    figure = Figure(figsize=(7, 3.8), layout="constrained")
    axes = figure.add_subplot(xlabel="score", ylabel="density", title=literal(title))
    axes.title.set_fontsize(10)
    place = ((scores.clamp(low, high) - low) / width).long().clamp(max=BINS - 1)
    edges = [low + width * number for number in range(BINS + 1)]
    for name, is_class, colour in (("non-targets", ~labels, NONTARGETS), ("targets", labels, TARGETS)):
        counts = torch.bincount(place[is_class], minlength=BINS)
        density = (counts.double() / counts.sum() / width).tolist()
        axes.stairs(density, edges, fill=True, alpha=0.45, color=colour, label=f"{int(counts.sum())} {name}")
    middle = middle_of(equal.low, equal.high).item()
    if low <= middle <= high:
        label = f"equal error rates at {middle:.4g}"
        axes.axvline(middle, color=BLACK, linewidth=0.9, linestyle=":", label=label)
    axes.legend(fontsize=9)
    return figure
