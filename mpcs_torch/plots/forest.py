"""Figures of effects with their intervals, one per row: differences, and the values of groups."""

from collections.abc import Mapping, Sequence
from math import isfinite
from types import MappingProxyType

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import coloured, grid, legend_below, literal

Effect = tuple[float, float, float]
"""A value and the two ends of its interval; NaN if missing."""
MAX_ROWS = 40
"""The largest number of subjects that fit into a figure."""


def forest_figure(
    effects: Mapping[str, Sequence[Effect]],
    names: Sequence[str],
    *,
    systems: Mapping[str, float] = MappingProxyType({}),
    subject: str = "",
) -> Figure:
    """Draw effects with their intervals in a row for each subject, and a line at 0.

    Args:
        effects: The value and the interval of each effect, by subject.
        names: The names of the effects, which have a panel each. With ``systems``, one name.
        systems: The value of each system over all subjects, drawn as a line instead of the line at 0. Each subject then
            has one effect for each system. Default: effects are differences.
        subject: The kind of subjects, such as the column of groups.
    """
    width, most = style.WIDTH if len(names) == 1 else 11, style.MAX_BESIDE if systems else style.MAX_NAME_LENGTH
    tall = 0.32 * max(1, 0.55 * len(systems))
    figure = Figure(figsize=(width, max(2.2 if subject else 1.4, tall * len(effects) + 1.1)), layout="constrained")
    (panels,) = figure.subplots(1, len(names), sharey=True, squeeze=False)
    for place, (axes, name) in enumerate(zip(panels, names, strict=True)):
        axes.set(yticks=range(len(effects)), yticklabels=[literal(row, most) for row in effects], xlabel=literal(name))
        if systems:
            told = [f"{literal(system, style.MAX_IN_SENTENCE)} (all: {value:.4g})" for system, value in systems.items()]
            draw_models(axes, [*effects.values()], told)
            for _, value, colour in coloured(systems):
                axes.axvline(value, color=colour, linewidth=1, linestyle="--")
        else:
            draw_differences(axes, [values[place] for values in effects.values()], style.MPCS)
        axes.locator_params(axis="x", nbins=5)
        grid(axes)
    panels[0].set(ylim=(len(effects) - 0.5, -0.5), ylabel=literal(subject, style.MAX_BESIDE))
    if systems:
        legend_below(figure)
    return figure


def draw_models(axes: Axes, rows: Sequence[Sequence[Effect]], labels: Sequence[str]) -> None:
    """Draw the effects of several models in each row, one below the other."""
    for number, label in enumerate(labels):
        shift = 0.2 * (number - (len(labels) - 1) / 2) * min(1, 3 / len(labels))
        colour, marker = (each[number % len(each)] for each in (style.SYSTEMS, style.MARKERS))
        draw_effects(axes, [values[number] for values in rows], colour, shift, marker, label)


def draw_differences(axes: Axes, effects: Sequence[Effect], colour: str) -> None:
    """Draw one difference per row with its interval, and a line at 0."""
    draw_effects(axes, effects, colour, 0.0, "o")
    axes.axvline(0, color=style.GREY, linewidth=0.8)


def draw_effects(
    axes: Axes, effects: Sequence[Sequence[float]], colour: str, shift: float, marker: str, label: str | None = None
) -> None:
    """Draw one effect per row with its interval, moved down by ``shift`` rows; the first effect gets ``label``."""
    for row, (value, low, high) in enumerate(effects):
        if isfinite(low) and isfinite(high):
            axes.plot([low, high], [row + shift] * 2, color=colour, linewidth=1)
        axes.plot(value, row + shift, marker, color=colour, markersize=5, label=None if row else label)
