"""A metric of several systems under each condition."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

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
    intervals: Mapping[str, Sequence[tuple[float, float]]] = MappingProxyType({}),
) -> Figure:
    """Draw a metric of each system under each condition as points, with intervals, and over all samples as lines.

    Args:
        systems: The values of each system by its name, in the order of the conditions.
        pooled: The value of each system over all samples.
        conditions: The names of the conditions; at most `MOST` are drawn.
        metric: The name of the metric.
        column: What the conditions are conditions of.
        intervals: The 95 % interval of each value of a system, NaN where there is none. Default: none are drawn.
    """
    shown = conditions[:MOST]
    figure, axes = canvas(max(2.2, 0.8 + 0.3 * len(shown)), xlabel=literal(metric), ylabel=literal(column, MOST_NAME))
    axes.set_yticks(list(range(len(shown))), [literal(name, MOST_NAME) for name in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    grid(axes, "y")
    apart = 0.15 if intervals else 0.0  # bars of several systems would hide each other
    for number, (name, values) in enumerate(systems.items()):
        colour, marker = SYSTEMS[number % len(SYSTEMS)], MARKERS[number % len(MARKERS)]
        ends = list(intervals.get(name, ()))[:MOST]
        about = "; bars: 95 %" if ends else ""
        label = f"{literal(name, MOST_IN_SENTENCE)} (line: all, {pooled[name]:.4g}{about})"
        own = [place + apart * (number - (len(systems) - 1) / 2) for place in range(len(shown))]
        for place, (low, high) in zip(own, ends, strict=False):
            axes.plot([low, high], [place, place], color=colour, linewidth=1.5, alpha=0.6)
        axes.plot(values[:MOST], own, marker, color=colour, markersize=6, label=label)
        axes.axvline(pooled[name], color=colour, linewidth=1.0, linestyle="--")
    legend_below(figure)
    return figure
