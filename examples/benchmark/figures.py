"""Figures of the benchmark: what methods cost in accuracy, and what they save in dangerous errors."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import coloured, grid, legend_below, literal
from mpcs_torch.plots.forest import Effect, draw_effects
from mpcs_torch.plots.samples import label_points

Line = Sequence[tuple[float, float]]
MAX_NAME = 32
"""The most characters of a method in the key."""
WIDEST = 1.5
"""Points of accuracy and more are drawn at the edge."""


def frontier_figure(
    marks: Mapping[str, tuple[Effect, Effect]],
    lines: Mapping[str, Line],
    curves: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    *,
    title: str,
    limit: float,
) -> Figure:
    """Draw dangerous errors against accuracy, and against coverage.

    Args:
        marks: By method, the change of accuracy and the share of dangerous errors that are gone.
        lines: By model, the change of accuracy and of dangerous errors with each decision factor.
        curves: By model, shares of decided samples, and of samples that are dangerous errors.
        title: The name of the task.
        limit: The limit on the share of dangerous errors.
    """
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    figure.suptitle(literal(title, 80))
    left, right = figure.subplots(1, 2)
    for name, line, colour in coloured(lines):
        shown = [(100 * gain, 100 * more) for gain, more in line if gain >= -WIDEST / 100]
        label = f"{literal(name, MAX_NAME)}, by factor"
        left.plot([x for x, _ in shown], [y for _, y in shown], "-", color=colour, linewidth=1.2, label=label)
    places, numbers = [], []
    for number, (name, (gain, cut)) in enumerate(marks.items(), start=1):
        x, y = 100 * max(gain[0], -WIDEST / 100), -100 * cut[0]
        colour = style.MPCS if name == "recommended" else style.ACCURACY
        spans = {"xerr": [[100 * (gain[0] - gain[1])], [100 * (gain[2] - gain[0])]]}
        spans["yerr"] = [[100 * (cut[2] - cut[0])], [100 * (cut[0] - cut[1])]]
        label = f"{number}  {literal(name, MAX_NAME)}"
        left.errorbar(x, y, fmt="s", color=colour, markersize=4, elinewidth=0.5, label=label, **spans)
        places.append((x, y))
        numbers.append(str(number))
    left.axhline(0, color=style.GREY, linewidth=0.7)
    left.axvline(0, color=style.GREY, linewidth=0.7)
    left.set(xlabel="accuracy against the best plain method, points", ylabel="dangerous errors against it, %")
    for name, (coverage, dangerous), colour in coloured(curves):
        percents = ([100 * each for each in shares] for shares in (coverage, dangerous))
        right.plot(*percents, color=colour, label=literal(name, MAX_NAME))
    right.axhline(100 * limit, color=style.BLACK, linestyle=":", linewidth=0.8, label="limit")
    right.set(xlabel="decided samples, %", ylabel="dangerous errors, % of all samples")
    right.legend(fontsize=style.SMALL, loc="upper left")
    for axes in (left, right):
        grid(axes)
    legend_below(figure, columns=3)
    label_points(left, places, numbers)
    return figure


def summary_figure(bars: Mapping[str, tuple[Effect, Effect]]) -> Figure:
    """Draw the change of dangerous errors over all tasks, for each method without and with the decision rule."""
    figure = Figure(figsize=(8, 0.36 * len(bars) + 1.2), layout="constrained")
    axes = figure.subplots()
    names = sorted(bars, key=lambda name: -bars[name][1][0])
    for part, (label, colour, shift) in enumerate(
        (("most probable class", style.ACCURACY, -0.14), ("decision rule", style.MPCS, 0.14))
    ):
        changes = [[-100 * each for each in bars[name][part]] for name in names]
        draw_effects(axes, changes, colour, shift, "o", label)
    axes.set(yticks=range(len(names)), yticklabels=[literal(name) for name in names])
    axes.set_xlabel("change of dangerous errors, %")
    axes.axvline(0, color=style.GREY, linewidth=0.8)
    axes.invert_yaxis()
    grid(axes)
    axes.legend(fontsize=style.SMALL)
    return figure
