"""Values as bars and dots: by class, on a scale, stacked, and in pairs."""

from collections.abc import Mapping, Sequence
from math import isfinite

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import Place, canvas, grid, legend_below, literal, shown_number

KINDS = {
    "correct": (style.BLUE, ""),
    "other error": (style.GREEN, ""),
    "dangerous error": (style.RED, "//"),
    "referred": (style.GREY, ""),
}
"""The colour and the hatch of each kind of decision."""


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
    axes.set_ylim(0, _headroom(on, 1.08, 1.3) * _highest(*shown.values(), mean) or 1.0)
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    grid(axes, "y")
    return legend_below(figure, on=on)


def value_scale(
    value: float, marks: Mapping[str, float], title: str, *, xlabel: str, on: Place = None
) -> Figure:
    """Draw ``value`` (>= 0, infinite or NaN) as a bar from 0, and a named line at each of at most three ``marks``."""
    figure, axes = _strip(title, xlabel, on)
    highest = 1.08 * _highest(value, *marks.values()) or 1.0
    axes.set_xlim(0, highest)
    axes.barh([0], [min(value, highest)], 1.0, color=style.SKY, label=f"value {value:.4g}")
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


def decision_shares(counts: Mapping[str, float], title: str, *, on: Place = None) -> Figure:
    """Draw decisions as one stacked bar; ``counts`` has a number or sum of weights for each key of `KINDS`."""
    figure, axes = _strip(title, "samples", on)
    left = 0.0
    for kind, (colour, hatch) in KINDS.items():
        label = f"{kind}: {shown_number(counts[kind])}"
        axes.barh(
            [0],
            [counts[kind]],
            1.0,
            left,
            color=colour,
            hatch=hatch,
            edgecolor=style.WHITE,
            linewidth=0.5,
            label=label,
        )
        left += counts[kind]
    axes.set_xlim(0, left or 1.0)
    return legend_below(figure, on=on)


def _strip(title: str, xlabel: str, on: Place) -> tuple[Figure, Axes]:
    return canvas(
        1.5, title, on=on, xlabel=xlabel, yticks=[], ylim=(-1, _headroom(on, 1, 4))
    )


def _highest(*values: float) -> float:
    return max(filter(isfinite, values), default=1.0)


def _headroom(on: Place, without: float, with_legend: float) -> float:
    return with_legend if isinstance(on, Axes) else without


def paired_counts(counts: Mapping[str, Sequence[float]], *, ylabel: str) -> Figure:
    """Draw the counts of two methods (first the baseline) for each seed, and the mean counts as dashed lines."""
    figure, axes = canvas(3.3, xlabel="seed", ylabel=ylabel)
    baseline, other = counts.values()
    seeds = range(len(baseline))
    axes.vlines(seeds, baseline, other, color=style.LIGHT_GREY, linewidth=3, zorder=1)
    for (name, values), colour in zip(
        counts.items(), (style.CROSS_ENTROPY, style.MPCS), strict=True
    ):
        mean = sum(values) / len(values)
        axes.scatter(
            seeds,
            values,
            color=colour,
            zorder=2,
            label=f"{literal(name, style.MAX_IN_SENTENCE)} (mean {mean:.1f})",
        )
        axes.axhline(mean, color=colour, linestyle="--", linewidth=1, zorder=0)
    axes.set_ylim(bottom=0, top=1.05 * max(*baseline, *other, 1))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    return legend_below(figure)
