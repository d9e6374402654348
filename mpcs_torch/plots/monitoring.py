"""Draw the means of monitors with their intervals against their limits, now and over time."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import Place, canvas, grid, legend_below, lines

HIGHEST = 1e6
"""Evidence is drawn up to so many times the threshold."""


class Watched(NamedTuple):
    """A mean that is monitored."""

    name: str
    rate: float
    low: float
    high: float
    lowest: float
    """The lowest acceptable mean; 0 for none."""
    highest: float
    """The highest acceptable mean; infinite for none."""
    is_alarm: bool


def watched_means(means: Sequence[Watched], title: str = "", *, on: Place = None) -> Figure:
    """Draw each mean, at least one, with its interval and its limits, one below the other."""
    figure, axes = canvas(1.1 + 0.32 * len(means), title, on=on, xlabel="mean, with its interval at any time")
    for place, mean in enumerate(means):
        colour = style.RED if mean.is_alarm else style.BLUE
        label = "alarm" if mean.is_alarm else "no alarm"
        axes.plot([mean.low, mean.high], [place, place], color=colour, linewidth=2)
        if isfinite(mean.rate):
            axes.plot([mean.rate], [place], style.MARKERS[2 if mean.is_alarm else 0], color=colour, label=label)
        for limit in [mean.lowest] * (mean.lowest > 0) + [mean.highest] * isfinite(mean.highest):
            axes.plot([limit] * 2, [place - 0.38, place + 0.38], color=style.BLACK, linewidth=2, label="limit")
    seen = [end for mean in means for end in (mean.high, mean.highest) if isfinite(end)]
    axes.set(xlim=(0, 1.05 * max(seen)), ylim=(len(means) - 0.4, -0.6))
    axes.set_yticks(range(len(means)), [lines(mean.name, 24, 2) for mean in means])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    grid(axes, "x")
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    return legend_below(figure, handles=list(handles.values()), on=on)


class Point(NamedTuple):
    """A mean at one time."""

    place: float
    """The number of rows so far."""
    mean: Watched
    evidence: float


def watched_over_time(
    points: Sequence[Point], *, threshold: float, times: Sequence[str] = (), title: str = ""
) -> Figure:
    """Draw a mean with its interval and its limits over the rows, and the evidence below.

    Args:
        points: In their order, at least one.
        threshold: The evidence from which on there is an alarm.
        times: The time of the first and of the last point, in words, if they are known.
        title: The title of the figure.
    """
    figure = Figure(figsize=(style.WIDTH, 4.0), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 2])
    figure.suptitle(lines(title), fontsize=style.NORMAL)
    places = [point.place for point in points]
    _draw_means(above, points)
    most = HIGHEST * threshold
    evidence = [min(max(point.evidence, 1 / most), most) for point in points]
    below.plot(places, evidence, color=style.DARK_GREY, linewidth=1.5, label="evidence, no rate")
    below.axhline(threshold, color=style.RED, linestyle="--", linewidth=1.2, label=f"alarm from {threshold:g} on")
    below.set(yscale="log", ylabel="won by a bet\non an excess", xlabel="rows")
    below.set_ylim(min(0.5, *evidence) / 2, max(2 * threshold, *evidence) * 2)
    if times:
        below.set_xlabel(f"rows, {times[0]} to {times[-1]}")
    below.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    for axes in (above, below):
        axes.tick_params(labelsize=style.SMALL)
        axes.spines[["top", "right"]].set_visible(False)
        grid(axes)
    handles = [*above.get_legend_handles_labels()[0], *below.get_legend_handles_labels()[0]]
    return legend_below(figure, handles=handles)


def _draw_means(axes: Axes, points: Sequence[Point]) -> None:
    places = [point.place for point in points]
    means = [point.mean for point in points]
    axes.fill_between(
        places,
        [m.low for m in means],
        [m.high for m in means],
        color=style.SKY,
        alpha=0.5,
        label="where the rate may be",
    )
    axes.plot(places, [m.rate for m in means], color=style.BLUE, linewidth=1.5, label="rate so far")
    limits = [*[means[-1].lowest] * (means[-1].lowest > 0), *[means[-1].highest] * isfinite(means[-1].highest)]
    for number, limit in enumerate(limits):
        axes.axhline(limit, color=style.BLACK, linewidth=1.2, label="_" if number else "limit")
    seen = [m.high for m in means[len(means) // 4 :]] + [2 * limit for limit in limits]
    axes.set(ylim=(0, 1.1 * max(seen)), ylabel="rate")
