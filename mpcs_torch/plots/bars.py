"""Values as bars: by class, and on a scale."""

from collections.abc import Mapping, Sequence
from math import isfinite

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import Place, canvas, grid, legend_below, literal


def class_bars(
    values: Sequence[float],
    mean: float,
    title: str,
    *,
    ylabel: str,
    mean_label: str = "mean",
    on: Place = None,
) -> Figure:
    """Draw a bar for the value of each class (no bar for NaN), and a dashed line at ``mean``."""
    figure, axes = canvas(2.8, title, on=on, xlabel="class", ylabel=ylabel)
    shown = {place: value for place, value in enumerate(values) if isfinite(value)}
    axes.bar(
        list(shown),
        list(shown.values()),
        color=style.SKY,
        edgecolor=style.WHITE,
        linewidth=0.5,
    )
    axes.axhline(
        mean,
        color=style.ORANGE,
        linewidth=1.4,
        linestyle="--",
        label=f"{mean_label} {mean:.4g}",
    )
    axes.set_xlim(-0.6, len(values) - 0.4)
    highest = max(filter(isfinite, [*shown.values(), mean]), default=1.0)
    axes.set_ylim(0, _headroom(on, 1.08, 1.3) * highest or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    grid(axes, "y")
    return legend_below(figure, on=on)


def value_scale(
    value: float, marks: Mapping[str, float], title: str, *, xlabel: str, on: Place = None
) -> Figure:
    """Draw ``value``, perhaps infinite or NaN, as a bar from 0, and a named line at each of at most three ``marks``."""
    top = _headroom(on, 1, 4)
    figure, axes = canvas(1.5, title, on=on, xlabel=xlabel, yticks=[], ylim=(-1, top))
    finite = [0.0, *filter(isfinite, (value, *marks.values()))]
    lowest, highest = 1.08 * min(finite), 1.08 * max(finite)
    if lowest == highest:
        highest = 1.0
    axes.set_xlim(lowest, highest)
    axes.xaxis.set_major_locator(MaxNLocator(5))  # labels such as 0.0025 are long
    drawn = max(lowest, min(value, highest))
    axes.barh([0], [drawn], 1.0, color=style.SKY, label=f"value {value:.4g}")
    for (name, mark), line, colour in zip(
        marks.items(),
        ("-", "--", ":"),
        (style.GREEN, style.PINK, style.BLACK),
        strict=False,
    ):
        label = f"{literal(name)} {mark:.4g}"
        axes.axvline(
            mark, color=colour, linewidth=2.5, linestyle=line, clip_on=False, label=label
        )
    return legend_below(figure, on=on)


def _headroom(on: Place, without: float, with_legend: float) -> float:
    return with_legend if isinstance(on, Axes) else without
