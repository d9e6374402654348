"""Figures of the benchmark: what methods cost in accuracy, and what they save in dangerous errors."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import coloured, grid, legend_below, literal
from mpcs_torch.plots.forest import Effect, draw_effects

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


STEP = 4.0
"""The size of the steps by which a label is moved, in points."""
NEAREST = sorted(((x, y) for x in range(-25, 26) for y in range(-25, 26)), key=lambda step: step[0] ** 2 + step[1] ** 2)
"""The possible offsets of a label from its point, in steps, nearest first."""


def label_points(axes: Axes, points: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
    """Write a label beside each point, at the nearest place where it covers no other label. Call this last."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # imported here, because no report page needs Agg

    drawn = FigureCanvasAgg(axes.figure)  # type: ignore[arg-type]  # a subfigure, which has no canvas, is not used
    drawn.draw()  # type: ignore[no-untyped-call]  # places the axes
    renderer = drawn.get_renderer()  # type: ignore[no-untyped-call]
    taken: list[Bbox] = []
    box = {"boxstyle": "round,pad=0.2", "facecolor": style.WHITE, "edgecolor": style.LIGHT_GREY, "linewidth": 0.6}
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": style.BLACK, "bbox": box}
    for point, label in zip(points, labels, strict=True):
        note = axes.annotate(label, point, xytext=(0, 0), textcoords="offset points", **look)
        taken.append(_place(note, axes, taken, renderer))


def _place(note: Annotation, axes: Axes, taken: Sequence[Bbox], renderer: RendererBase) -> Bbox:
    pixels = axes.figure.dpi / 72
    inside = axes.get_window_extent()
    own = note.get_window_extent(renderer).padded(2 * pixels)
    for x, y in NEAREST:
        moved = own.translated(x * STEP * pixels, (y + 3) * STEP * pixels)
        is_inside = inside.x0 <= moved.x0 and moved.x1 <= inside.x1 and inside.y0 <= moved.y0 and moved.y1 <= inside.y1
        if is_inside and not any(moved.overlaps(other) for other in taken):
            note.set_position((x * STEP, (y + 3) * STEP))
            return moved
    note.set_visible(False)  # no room: better no name than two that nobody can read
    return own
