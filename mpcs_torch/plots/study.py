"""Accuracy against dangerous errors, method by method."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots.canvas import canvas, legend_below
from mpcs_torch.plots.labels import label_points
from mpcs_torch.plots.palette import ACCURACY, BLACK, CROSS_ENTROPY, MPCS
from mpcs_torch.plots.text import literal

Point = tuple[float, float]
"""Dangerous errors and accuracy, each a mean over seeds."""
MOST_NAME = 60
"""The most characters of a method in the key."""


def accuracy_against_danger(
    points: Mapping[str, Point], lines: Mapping[str, Sequence[Point]], *, baseline_accuracy: float, allowance: float
) -> Figure:
    """Draw a numbered point for each method, and a line for each method whose decisions were varied.

    Args:
        points: Methods by the name that the key shows.
        lines: The points of a method, by its label; the first line is the baseline's.
        baseline_accuracy: Accuracy of the baseline, in [0, 1].
        allowance: How much accuracy a method may cost; a dotted line is drawn there.
    """
    figure, axes = canvas(4.6, width=7, xlabel="dangerous test errors (mean over seeds)", ylabel="test accuracy, %")
    for (label, line), colour in zip(lines.items(), (CROSS_ENTROPY, MPCS), strict=True):
        x, y = [dangerous for dangerous, _ in line], [100 * accuracy for _, accuracy in line]
        axes.plot(x, y, "-o", color=colour, markersize=3, linewidth=1, label=literal(label, MOST_NAME))
    label = f"{100 * allowance:g} points below the baseline"
    lowest = 100 * (baseline_accuracy - allowance)
    axes.axhline(lowest, color=BLACK, linewidth=0.7, linestyle=":", label=label)
    for number, (name, (dangerous, accuracy)) in enumerate(points.items(), start=1):
        key = f"{number}  {literal(name, MOST_NAME)}"
        axes.plot(dangerous, 100 * accuracy, "s", color=ACCURACY, markersize=6, label=key)
    legend_below(figure)
    places = [(dangerous, 100 * accuracy) for dangerous, accuracy in points.values()]
    label_points(axes, places, [str(number) for number in range(1, len(points) + 1)])
    return figure
