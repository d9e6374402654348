"""Figures of metrics over the epochs of training runs, among them Fig. 4 and 6 of the MPCS paper."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from math import ceil, isfinite, nan
from statistics import median
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullFormatter

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import canvas, coloured, grid, legend_below, lines, literal

Values = Mapping[str, float]
"""The metrics of an epoch, by column of the records."""
METRIC_LINES = {
    "accuracy": ("accuracy", style.ACCURACY, "-"),
    "f1_macro": ("F1", style.SKY, "--"),
    "mcc": ("MCC", style.GREEN, ":"),
    "mean_squared_error": ("mean squared error", style.PINK, "--"),
    "cross_entropy": ("cross entropy", style.CROSS_ENTROPY, "-"),
    "mpcs_count": ("MPCS", style.MPCS, "-"),
}
"""The label, the colour and the line style of each metric in Figure 4, by column of the records."""


def metric_trend(
    runs: Mapping[str, Sequence[Values]],
    column: str,
    marked: Mapping[str, Mapping[str, int]],
    settings: Mapping[str, str] | None = None,
) -> Figure:
    """Draw a metric over the epochs of one or more runs, on a logarithmic scale if its values have a wide range.

    If early values would make the rest look flat, the axis covers only the later half of the epochs and marked epochs.

    Args:
        runs: The metrics of each epoch, by the name of the run; missing, infinite and NaN values are left out.
        column: The name of the metric.
        marked: For each run, the epochs to mark, by the name of the metric or rule that picks the epoch.
        settings: For each run, the name of its setting. Seeds of one setting have one colour and one label. By default,
            each run is a setting.
    """
    figure, axes = canvas(2.3, column, xlabel="epoch")
    settings = settings or {name: name for name in runs}
    seeds = Counter(settings.values())
    looks = {
        setting: (number, colour)
        for number, (setting, _, colour) in enumerate(coloured(seeds))
    }
    by_epoch = defaultdict[int, list[float]](list)  # marked epochs, and the later half
    values = list[float]()
    for name, records in runs.items():
        setting = settings[name]
        number, colour = looks[setting]
        line = {
            int(record["epoch"]): record[column]
            for record in records
            if isfinite(record.get(column, nan))
        }
        values += line.values()
        for epoch in list(line)[len(line) // 2 :]:
            by_epoch[epoch].append(line[epoch])
        axes.plot(
            list(line),
            list(line.values()),
            color=colour,
            linewidth=1.4,
            label=literal(setting) if len(seeds) > 1 else None,
            marker="." if len(line) == 1 else None,  # a line of one point is invisible
        )
        marks = marked.get(name, {}).items()
        for place, (picker, epoch) in enumerate(marks):
            if epoch not in line:
                continue
            by_epoch[epoch].append(line[epoch])
            label = f"{literal(picker, style.MAX_IN_SENTENCE)}: "
            label += f"epoch {epoch}" if seeds[setting] == 1 else "epoch of each seed"
            colour_of_mark = style.SYSTEMS[1 + place % (len(style.SYSTEMS) - 1)]
            if len(seeds) > 1:
                label += f", {literal(setting, style.MAX_IN_SENTENCE)}"
                colour_of_mark = colour
            # The first mark is a ring, of another size for each setting, around all others.
            ring = {"markersize": 11 + 3 * (number % 4), "fillstyle": "none"}
            look: dict[str, Any] = {"markersize": 5.5} if place else ring
            axes.plot(
                epoch,
                line[epoch],
                style.MARKERS[place % len(style.MARKERS)],
                color=colour_of_mark,
                markeredgewidth=1 if place else 2,
                zorder=3,  # over the lines of all runs
                clip_on=False,  # whole where it lies on the edge of the axes
                label=label,
                **look,
            )
    _set_range(axes, values, by_epoch)
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    grid(axes)
    return legend_below(figure)


def _set_range(
    axes: Axes, values: Sequence[float], later: Mapping[int, Sequence[float]]
) -> None:
    """Choose the scale and the range of a trend: ``values`` are all, and ``later`` those to look at, by epoch."""
    if not values:
        return
    lowest, highest = min(values), max(values)
    low = min(min(of_epoch) for of_epoch in later.values())
    high = max(max(of_epoch) for of_epoch in later.values())
    # A wide range of mostly small values gets a logarithmic scale. A narrow range of later values fills the axis.
    if highest > 30 * lowest > 0 and median(values) < (lowest + highest) / 2:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
        axes.set_ylabel("log scale", color=style.DARK_GREY)
    elif 0 < high - low < (highest - lowest) / 3:
        free = 0.1 * (high - low)  # on either side
        axes.set(ylim=(low - free, high + free), xlim=(min(later) - 0.5, None))
        axes.set_ylabel(f"from epoch {min(later)}", color=style.DARK_GREY)


def figure_4(runs: Mapping[str, Sequence[Values]]) -> Figure:
    """Draw Fig. 4 of the MPCS paper, a panel for each run: metrics over the epochs, scaled to a range from 0 to 1."""
    columns = min(5, len(runs))
    rows = ceil(len(runs) / columns)
    size = (max(style.WIDTH, 3.2 * columns), 2.5 * rows + 0.9)
    figure = Figure(figsize=size, layout="constrained")
    panels = list(
        figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat
    )
    for axes, (name, records) in zip(panels, runs.items(), strict=False):
        axes.set_title(lines(name, 34), fontsize=style.NORMAL)
        epochs = [record["epoch"] for record in records]
        for column, (label, colour, line) in METRIC_LINES.items():
            values = np.array([record[column] for record in records])
            span = np.ptp(values) or 1.0
            shares = (values - values.min()) / span
            axes.plot(epochs, shares, line, color=colour, linewidth=1.2, label=label)
    for axes in panels[len(runs) :]:
        axes.set_axis_off()
    figure.supxlabel("epoch", fontsize=style.NORMAL)
    figure.supylabel("share of the metric's range", fontsize=style.NORMAL)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    in_row = len(labels) if columns > 2 else 2 * columns
    figure.legend(handles, labels, loc="outside upper center", ncols=in_row, frameon=False)
    return figure


def figure_6(plain: Sequence[Values], with_mpcs: Sequence[Values]) -> Figure:
    """Draw Fig. 6 of the MPCS paper: accuracies, MPCS and dangerous errors of two runs over their epochs."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flat
    titles = {
        "accuracy": "training accuracy",
        "test_accuracy": "test accuracy",
        "mpcs_count": "MPCS (training set)",
        "dangerous": "dangerous errors (training set)",
    }
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        axes.set_title(title, fontsize=10)
        for records, label, colour in (
            (plain, "plain", style.CROSS_ENTROPY),
            (with_mpcs, "loss times MPCS", style.MPCS),
        ):
            epochs = [record["epoch"] for record in records]
            axes.plot(
                epochs,
                [record[column] for record in records],
                color=colour,
                linewidth=1.1,
                label=label,
            )
    figure.axes[0].legend(loc="lower right")
    figure.supxlabel("epoch", fontsize=10)
    return figure
