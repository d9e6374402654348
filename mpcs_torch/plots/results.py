"""A panel for each metric: values of models with intervals, for all rows and by group, and their differences."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import grid, legend_below, literal
from mpcs_torch.plots.forest import Effect, draw_differences, draw_models

WIDE, ROW, ROOM = 3.0, 0.2, 0.8
"""The width of a panel, the height of a row (each further model adds half of it) and room for texts, in inches."""


class Panel(NamedTuple):
    """The values of a metric."""

    name: str
    values: Mapping[str, Sequence[Effect]]
    """For each row, such as a group, the effect of each model; NaN if missing. All panels have the same rows."""
    differences: Mapping[str, Effect]
    """The difference of each pair of models; empty if models are not compared by this metric."""


def result_figure(panels: Sequence[Panel], models: Sequence[str], *, on: Figure | None = None) -> Figure:
    """Draw a panel for each metric, and below it the differences of models, in a new or an empty figure."""
    figure = Figure(layout="constrained") if on is None else on
    columns, pairs = min(3, len(panels)), max(len(panel.differences) for panel in panels)  # side by side
    heights = [ROW * len(panels[0].values) * (1 + len(models)) / 2 + ROOM, *([ROW * pairs + ROOM] if pairs else [])]
    bands = -(-len(panels) // columns)
    figure.set_size_inches(max(style.WIDTH, WIDE * columns + 1), bands * sum(heights))
    ratios = {"height_ratios": heights * bands}
    cells = figure.subplots(bands * len(heights), columns, squeeze=False, gridspec_kw=ratios)
    for place, panel in enumerate(panels):
        band, column = divmod(place, columns)
        above, *below = cells[band * len(heights) : (band + 1) * len(heights), column]
        draw_models(above, [*panel.values.values()], [literal(model) for model in models])
        _name(above, list(panel.values), literal(panel.name, style.MAX_IN_SENTENCE), is_labelled=column == 0)
        if panel.differences:
            draw_differences(below[0], list(panel.differences.values()), style.BLACK)
            is_first = not any(other.differences for other in panels[place - column : place])
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
