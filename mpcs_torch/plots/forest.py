"""Effects with their intervals, one row for each."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import grid, literal

Effect = tuple[float, float, float]
"""A value and its interval."""


def forest_figure(effects: Mapping[str, Sequence[Effect]], names: Sequence[str]) -> Figure:
    """Draw effects with their intervals in a row for each subject, and a line at 0.

    Args:
        effects: By subject, the value and the interval of each effect, in the units of its name.
        names: Of the effects, which have a panel each.
    """
    width = style.WIDTH if len(names) == 1 else 11
    figure = Figure(figsize=(width, 0.32 * len(effects) + 1.1), layout="constrained")
    (panels,) = figure.subplots(1, len(names), sharey=True, squeeze=False)
    for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
        for row, values in enumerate(effects.values()):
            value, low, high = values[place]
            axes.plot([low, high], [row] * 2, color=style.MPCS, linewidth=1)
            axes.plot(value, row, "o", color=style.MPCS, markersize=5)
        axes.set(yticks=range(len(effects)), yticklabels=[literal(subject) for subject in effects], xlabel=name)
        axes.axvline(0, color=style.GREY, linewidth=0.8)
        axes.locator_params(axis="x", nbins=5)
        grid(axes)
    panels[0].invert_yaxis()
    panels[0].set_ylim(len(effects) - 0.5, -0.5)
    return figure
