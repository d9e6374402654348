"""A metric of several systems under each condition."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots.canvas import canvas, grid, legend_below
from mpcs_torch.plots.palette import SYSTEMS
from mpcs_torch.plots.text import MOST_IN_SENTENCE, literal

MARKERS = "osD^vPX"
MOST = 40
"""The number of conditions that fit a figure."""
MOST_NAME = 20
"""The most characters of the name of a condition."""


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
    figure, axes = canvas(max(2.2, 0.8 + 0.3 * len(shown)), xlabel=literal(metric), ylabel=literal(column, MOST_NAME))
    places = range(len(shown))
    axes.set_yticks(list(places), [literal(name, MOST_NAME) for name in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    grid(axes, "y")
    for number, (name, values) in enumerate(systems.items()):
        colour, marker = SYSTEMS[number % len(SYSTEMS)], MARKERS[number % len(MARKERS)]
        label = f"{literal(name, MOST_IN_SENTENCE)} (line: all, {pooled[name]:.4g})"
        axes.plot(values[:MOST], places, marker, color=colour, markersize=6, label=label)
        axes.axvline(pooled[name], color=colour, linewidth=1.0, linestyle="--")
    legend_below(figure)
    return figure
