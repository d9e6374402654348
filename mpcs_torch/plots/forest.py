"""Forest plots, with a value and its interval in each row: differences, metrics by group, and monitored means."""

from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import (
    Place,
    canvas,
    coloured,
    grid,
    legend_below,
    lines,
    literal,
)

Effect = tuple[float, float, float]
"""A value and the lower and upper end of its interval; a missing number is NaN."""
MAX_ROWS = 40
"""The maximum number of rows of a figure."""


def forest_figure(
    effects: Mapping[str, Sequence[Effect]],
    names: Sequence[str],
    *,
    systems: Mapping[str, float] = MappingProxyType({}),
    subject: str = "",
) -> Figure:
    """Draw values with intervals, in a row for each subject (a group of samples, for example).

    Args:
        effects: For each subject, by its name, a value with its interval for each of ``names``, or of ``systems``.
        names: The names of the values. Each has a panel. If ``systems`` are given, there must be a single name.
        systems: The value of each system (such as a model) over all subjects, drawn as a line. Default: ``effects`` are
            differences, and there is a line at 0.
        subject: The label of the axis of subjects, such as the column that defines the groups.
    """
    width, most = (
        style.WIDTH if len(names) == 1 else 11,
        style.MAX_BESIDE if systems else style.MAX_NAME_LENGTH,
    )
    tall = 0.32 * max(1, 0.55 * len(systems))
    figure = Figure(
        figsize=(width, max(2.2 if subject else 1.4, tall * len(effects) + 1.1)),
        layout="constrained",
    )
    (panels,) = figure.subplots(1, len(names), sharey=True, squeeze=False)
    for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
        axes.set(
            yticks=range(len(effects)),
            yticklabels=[literal(row, most) for row in effects],
            xlabel=literal(name),
        )
        if systems:
            told = [
                f"{literal(system, style.MAX_IN_SENTENCE)} (all: {value:.4g})"
                for system, value in systems.items()
            ]
            draw_models(axes, [*effects.values()], told)
            for _, value, colour in coloured(systems):
                axes.axvline(value, color=colour, linewidth=1, linestyle="--")
        else:
            draw_differences(
                axes, [values[place] for values in effects.values()], style.MPCS
            )
        axes.locator_params(axis="x", nbins=5)
        grid(axes)
    panels[0].set(
        ylim=(len(effects) - 0.5, -0.5), ylabel=literal(subject, style.MAX_BESIDE)
    )
    if systems:
        legend_below(figure)
    return figure


def draw_models(
    axes: Axes, rows: Sequence[Sequence[Effect]], labels: Sequence[str]
) -> None:
    """Draw, in each row, a value with its interval for each model; ``labels`` has a legend text for each model."""
    for number, label in enumerate(labels):
        shift = 0.2 * (number - (len(labels) - 1) / 2) * min(1, 3 / len(labels))
        colour, marker = (
            style.SYSTEMS[number % len(style.SYSTEMS)],
            style.MARKERS[number % len(style.MARKERS)],
        )
        draw_effects(
            axes, [values[number] for values in rows], colour, shift, marker, label
        )


def draw_differences(axes: Axes, effects: Sequence[Effect], colour: str) -> None:
    """Draw a difference with its interval in each row, and a vertical line at 0."""
    draw_effects(axes, effects, colour, 0.0, "o")
    axes.axvline(0, color=style.GREY, linewidth=0.8)


def draw_effects(
    axes: Axes,
    effects: Sequence[Sequence[float]],
    colour: str,
    shift: float,
    marker: str,
    label: str | None = None,
) -> None:
    """Draw a value with its interval in each row, ``shift`` rows below its middle; ``label`` is for the legend."""
    for row, (value, low, high) in enumerate(effects):
        if isfinite(low) and isfinite(high):
            axes.plot([low, high], [row + shift] * 2, color=colour, linewidth=1)
        axes.plot(
            value,
            row + shift,
            marker,
            color=colour,
            markersize=5,
            label=None if row else label,
        )


class MonitoredMean(NamedTuple):
    """A mean that a monitor watches: its value ``rate``, and its interval from ``low`` to ``high``."""

    name: str
    rate: float
    low: float
    high: float
    evidence: float
    """The evidence that the true mean is outside its limits."""
    lowest: float
    """The lower limit of the mean; 0 for no limit."""
    highest: float
    """The upper limit of the mean; infinite for no limit."""
    samples: float
    """The sum of the weights of the samples."""
    scale: float
    """The maximum loss of a sample, in the unit of ``rate``."""
    is_alarm: bool

    @property
    def is_share(self) -> bool:
        """Whether the mean is a share of samples, not a mean cost."""
        return not self.name.startswith("cost of ")


def watched_means(
    means: Sequence[MonitoredMean], title: str = "", *, on: Place = None
) -> Figure:
    """Draw each of ``means`` (at least one) in a row, with its interval and its limits."""
    figure, axes = canvas(
        1.1 + 0.32 * len(means), title, on=on, xlabel="mean, with its interval at any time"
    )
    for place, mean in enumerate(means):
        colour = style.RED if mean.is_alarm else style.BLUE
        label = "alarm" if mean.is_alarm else "no alarm"
        axes.plot([mean.low, mean.high], [place, place], color=colour, linewidth=2)
        if isfinite(mean.rate):
            axes.plot(
                [mean.rate],
                [place],
                style.MARKERS[2 if mean.is_alarm else 0],
                color=colour,
                label=label,
            )
        for limit in [mean.lowest] * (mean.lowest > 0) + [mean.highest] * isfinite(
            mean.highest
        ):
            axes.plot(
                [limit] * 2,
                [place - 0.38, place + 0.38],
                color=style.BLACK,
                linewidth=2,
                label="limit",
            )
    seen = [end for mean in means for end in (mean.high, mean.highest) if isfinite(end)]
    axes.set(xlim=(0, 1.05 * max(seen)), ylim=(len(means) - 0.4, -0.6))
    axes.set_yticks(range(len(means)), [lines(mean.name, 24, 2) for mean in means])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if all(mean.is_share for mean in means):
        axes.xaxis.set_major_formatter(PercentFormatter(1))
    grid(axes, "x")
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    return legend_below(figure, handles=list(handles.values()), on=on)


WIDE, ROW, ROOM = 3.0, 0.2, 0.8
"""The width of a panel, the height of a row (each further model adds half a row) and the room for texts, in inches."""


class Panel(NamedTuple):
    """The values of the metric ``name``, which `result_figure` draws in one panel."""

    name: str
    values: Mapping[str, Sequence[Effect]]
    """The value of each model with its interval, by row (a group, for example). All panels have the same rows."""
    differences: Mapping[str, Effect]
    """The difference with its interval of each pair of models; empty if models are not compared by this metric."""


def result_figure(
    panels: Sequence[Panel], models: Sequence[str], *, on: Figure | None = None
) -> Figure:
    """Draw a panel for each metric, and below it, the differences of models, if any; ``on`` is an empty figure."""
    figure = Figure(layout="constrained") if on is None else on
    columns, pairs = (
        min(3, len(panels)),
        max(len(panel.differences) for panel in panels),
    )  # side by side
    heights = [ROW * len(panels[0].values) * (1 + len(models)) / 2 + ROOM]
    if pairs:
        heights.append(ROW * pairs + ROOM)
    bands = -(-len(panels) // columns)
    figure.set_size_inches(max(style.WIDTH, WIDE * columns + 1), bands * sum(heights))
    ratios = {"height_ratios": heights * bands}
    cells = figure.subplots(
        bands * len(heights), columns, squeeze=False, gridspec_kw=ratios
    )
    for place, panel in enumerate(panels):
        band, column = divmod(place, columns)
        above, *below = cells[band * len(heights) : (band + 1) * len(heights), column]
        draw_models(above, [*panel.values.values()], [literal(model) for model in models])
        _name(
            above,
            list(panel.values),
            literal(panel.name, style.MAX_IN_SENTENCE),
            is_labelled=column == 0,
        )
        if panel.differences:
            draw_differences(below[0], list(panel.differences.values()), style.BLACK)
            is_first = not any(
                other.differences for other in panels[place - column : place]
            )
            _name(below[0], list(panel.differences), "difference", is_labelled=is_first)
    for axes in cells.flat:
        if not axes.has_data():
            axes.remove()
    return legend_below(figure) if len(models) > 1 else figure


def _name(axes: Axes, rows: Sequence[str], title: str, *, is_labelled: bool) -> None:
    names = [literal(row, style.MAX_BESIDE) for row in rows] if is_labelled else []
    axes.set_yticks(range(len(rows)) if is_labelled else [], names)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(title, fontsize=style.NORMAL)
    axes.tick_params(labelsize=style.SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.locator_params(axis="x", nbins=4)
    grid(axes, "x")
