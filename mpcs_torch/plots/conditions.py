"""A metric of several systems under each condition."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots.palette import GRID, SYSTEMS
from mpcs_torch.plots.text import literal

MARKERS = "osD^vPX"
MOST = 40
"""The number of conditions that fit a figure."""


def condition_chart(
    systems: Mapping[str, Sequence[float]],
    pooled: Mapping[str, float],
    conditions: Sequence[str],
    *,
    metric: str,
    column: str,
) -> Figure:
    """Draw a metric of each system under each condition as points, and over all samples as lines.

    Args:
        systems: The values of each system by its name, in the order of the conditions.
        pooled: The value of each system over all samples.
        conditions: The names of the conditions; at most `MOST` are drawn.
        metric: The name of the metric.
        column: What the conditions are conditions of.
    """
    shown = conditions[:MOST]
    figure = Figure(figsize=(7, 1.4 + 0.32 * len(shown) + 0.22 * len(systems)), layout="constrained")
    axes = figure.add_subplot(xlabel=literal(metric), ylabel=literal(column))
    places = range(len(shown))
    axes.set_yticks(list(places), [literal(name if len(name) <= 40 else f"{name[:37]}...") for name in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    axes.grid(axis="y", color=GRID)
    axes.set_axisbelow(True)
    for number, (name, values) in enumerate(systems.items()):
        colour, marker = SYSTEMS[number % len(SYSTEMS)], MARKERS[number % len(MARKERS)]
        label = f"{literal(name)} (line: all, {pooled[name]:.4g})"
        axes.plot(values[:MOST], places, marker, color=colour, markersize=6, label=label)
        axes.axvline(pooled[name], color=colour, linewidth=1.0, linestyle="--")
    figure.legend(loc="outside lower center", ncols=1, frameon=False, fontsize=9)
    return figure
