"""The size of figures, and legends below them: texts stay readable where a figure fills the screen of a phone."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mpcs_torch.plots.palette import GRID
from mpcs_torch.plots.text import lines

WIDTH = 4.8
"""Inches, 460 pixels: on a screen of 400 pixels a figure is shown at 80 % of its size."""
LEGEND_ROW = 0.2
"""Inches."""
SHORT = 22
"""The most characters of labels that fit side by side."""
SMALL, NORMAL = 9, 10
"""Points."""


def canvas(height: float, title: str = "", *, width: float = WIDTH, **labels: Any) -> tuple[Figure, Axes]:
    """Make a figure with one pair of axes.

    Args:
        height: In inches, without the legend.
        title: Cut where it does not fit two lines.
        width: In inches.
        labels: Settings of the axes, such as their labels.
    """
    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot(**labels)
    axes.tick_params(labelsize=SMALL)
    if title:
        figure.suptitle(lines(title), fontsize=NORMAL)  # over the figure, which is wider than the axes
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def grid(axes: Axes, axis: str = "both") -> None:
    """Draw faint lines behind the curves."""
    axes.grid(axis=axis, color=GRID, linewidth=0.8)  # type: ignore[arg-type]  # a Literal
    axes.set_axisbelow(True)


def legend_below(figure: Figure, columns: int | None = None, **settings: Any) -> None:
    """Add a legend of everything labelled below the axes, and make room for it; short labels stand in two columns."""
    handles = settings.pop("handles", None) or [
        handle for axes in figure.axes[:1] for handle in axes.get_legend_handles_labels()[0]
    ]
    if columns is None:
        columns = 2 if all(len(str(handle.get_label())) <= SHORT for handle in handles) else 1
    rows = -(-len(handles) // columns)
    figure.set_figheight(figure.get_figheight() + LEGEND_ROW * rows + 0.1)
    figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False, fontsize=SMALL, **settings)
