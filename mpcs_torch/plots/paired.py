"""Counts of two ways, seed by seed."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mpcs_torch.plots.canvas import canvas, legend_below
from mpcs_torch.plots.palette import CROSS_ENTROPY, LIGHT_GREY, MPCS
from mpcs_torch.plots.text import MOST_IN_SENTENCE, literal


def paired_counts(counts: Mapping[str, Sequence[float]], *, ylabel: str) -> Figure:
    """Draw the counts of two ways under each seed, joined by a line, and the mean of each as a dashed line.

    Args:
        counts: The counts of the baseline and of the other way, by name; one for each seed, in the same order.
        ylabel: What is counted.
    """
    figure, axes = canvas(3.3, xlabel="seed", ylabel=ylabel)
    baseline, other = counts.values()
    seeds = range(len(baseline))
    axes.vlines(seeds, baseline, other, color=LIGHT_GREY, linewidth=3, zorder=1)
    for (name, values), colour in zip(counts.items(), (CROSS_ENTROPY, MPCS), strict=True):
        mean = sum(values) / len(values)
        axes.scatter(
            seeds, values, color=colour, zorder=2, label=f"{literal(name, MOST_IN_SENTENCE)} (mean {mean:.1f})"
        )
        axes.axhline(mean, color=colour, linestyle="--", linewidth=1, zorder=0)
    axes.set_ylim(bottom=0, top=1.05 * max(*baseline, *other, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    legend_below(figure)
    return figure
