"""Forest plots, with a value and its interval in each row: metrics by group, differences, and monitored means."""

from collections.abc import Mapping, Sequence
from math import ceil, inf, isfinite
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
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
WIDE = 3.0
"""The width of a panel in inches."""
ROW = 0.2
"""The height of a row in inches; each further model adds half a row."""
ROOM = 0.8
"""The height of the texts of a panel in inches."""


class Panel(NamedTuple):
    """The values of the metric ``name``, which `result_figure` draws in one panel."""

    name: str
    values: Mapping[str, Sequence[Effect]]
    """The value of each model with its interval, by row (a group, for example). All panels have the same rows."""
    differences: Mapping[str, Effect] = MappingProxyType({})
    """The difference with its interval of each pair of models; empty if models are not compared by this metric."""
    overall: Sequence[float] = ()
    """The value of each model over all rows, for a dashed line; empty for no lines."""


def result_figure(
    panels: Sequence[Panel],
    models: Sequence[str],
    *,
    subject: str = "",
    on: Figure | None = None,
) -> Figure:
    """Draw a panel for each metric, and below it, the differences of models, if any.

    Args:
        panels: The values to draw.
        models: The names of the models, in the order of the values of a row.
        subject: The label of the rows, such as the column that defines the groups.
        on: The empty figure to draw on. Default: a new figure.
    """
    columns = min(3, len(panels))
    heights = [ROW * len(panels[0].values) * (1 + len(models)) / 2 + ROOM]
    if subject:
        heights[0] = max(heights[0], 2.3)  # the label is along the height
    pairs = max(len(panel.differences) for panel in panels)
    if pairs:
        heights.append(ROW * pairs + ROOM)
    bands = ceil(len(panels) / columns)
    figure = Figure(layout="constrained") if on is None else on
    figure.set_size_inches(max(style.WIDTH, WIDE * columns + 1), bands * sum(heights))
    cells = figure.subplots(
        bands * len(heights), columns, squeeze=False, height_ratios=heights * bands
    )
    bands_with_names = set[int]()
    for place, panel in enumerate(panels):
        band, column = divmod(place, columns)
        top = band * len(heights)
        _draw_values(cells[top, column], panel, models, is_labelled=column == 0)
        if panel.differences:
            below = cells[top + 1, column]
            _draw_effects(below, list(panel.differences.values()), style.BLACK)
            below.axvline(0, color=style.GREY, linewidth=0.8)
            # The first panel of a band that has differences names their rows for the others.
            is_first = band not in bands_with_names
            bands_with_names.add(band)
            _name_rows(below, panel.differences, "difference", is_labelled=is_first)
    if subject:
        cells[0, 0].set_ylabel(literal(subject, style.MAX_BESIDE))
    for axes in cells.flat:
        if not axes.has_data():
            axes.remove()
    return legend_below(figure) if len(models) > 1 else figure


def _draw_values(
    axes: Axes, panel: Panel, models: Sequence[str], *, is_labelled: bool
) -> None:
    """Draw the values of each model, a little apart from those of the others, and its dashed line over all rows."""
    apart = 0.2 * min(1, 3 / len(models))  # of the height of a row
    middle = (len(models) - 1) / 2
    rows = list(panel.values.values())
    for number, (model, _, colour) in enumerate(coloured(dict.fromkeys(models))):
        shift = apart * (number - middle)
        marker = style.MARKERS[number % len(style.MARKERS)]
        effects = [row[number] for row in rows]
        _draw_effects(axes, effects, colour, shift, marker, literal(model))
    overall = dict(zip(models, panel.overall, strict=False))  # may be empty
    for _, value, colour in coloured(overall):
        axes.axvline(value, color=colour, linewidth=1, linestyle="--")
    title = literal(panel.name, style.MAX_IN_SENTENCE)
    _name_rows(axes, panel.values, title, is_labelled=is_labelled)


def _draw_effects(
    axes: Axes,
    effects: Sequence[Effect],
    colour: str,
    shift: float = 0.0,
    marker: str = "o",
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
            label=label,
        )


def _name_rows(
    axes: Axes, rows: Mapping[str, object], title: str, *, is_labelled: bool
) -> None:
    if is_labelled:
        names = [literal(row, style.MAX_BESIDE) for row in rows]
        axes.set_yticks(range(len(rows)), names)
    else:
        axes.set_yticks([], [])
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.set_title(title, fontsize=style.NORMAL)
    axes.tick_params(labelsize=style.SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.locator_params(axis="x", nbins=4)
    grid(axes, "x")


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
    is_share: bool = True
    """Whether the mean is a share of samples or a risk, not a mean cost."""


def watched_means(
    means: Sequence[MonitoredMean], title: str = "", *, on: Place = None
) -> Figure:
    """Draw each of ``means`` (at least one) in a row, with its interval and its limits."""
    figure, axes = canvas(
        1.1 + 0.32 * len(means), title, on=on, xlabel="mean, with its interval at any time"
    )
    lows, highs, rates = np.array([(mean.low, mean.high, mean.rate) for mean in means]).T
    are_alarms = np.array([mean.is_alarm for mean in means])
    kinds = (
        ("no alarm", ~are_alarms, style.BLUE, "o"),
        ("alarm", are_alarms, style.RED, "D"),
    )
    for label, is_of_kind, colour, marker in kinds:
        rows = np.flatnonzero(is_of_kind)
        axes.hlines(rows, lows[rows], highs[rows], colors=colour, linewidth=2)
        if np.isfinite(rates[rows]).any():
            axes.plot(rates[rows], rows, marker, color=colour, label=label)
    for row, mean in enumerate(means):
        limits = [limit for limit in (mean.lowest, mean.highest) if 0 < limit < inf]
        axes.vlines(limits, row - 0.38, row + 0.38, colors=style.BLACK, linewidth=2)
    axes.plot([], [], color=style.BLACK, linewidth=2, label="limit")
    seen = [end for mean in means for end in (mean.high, mean.highest) if isfinite(end)]
    axes.set(xlim=(0, 1.05 * max(seen)), ylim=(len(means) - 0.4, -0.6))
    axes.set_yticks(range(len(means)), [lines(mean.name, 24, 2) for mean in means])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if all(mean.is_share for mean in means):
        axes.xaxis.set_major_formatter(PercentFormatter(1))
    grid(axes, "x")
    return legend_below(figure, on=on)
