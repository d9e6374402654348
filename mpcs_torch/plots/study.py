"""Accuracy against dangerous errors, method by method."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots.palette import ACCURACY, BLACK, CROSS_ENTROPY, MPCS

Point = tuple[float, float]
"""Dangerous errors and accuracy, each a mean over seeds."""


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
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot(xlabel="dangerous test errors (mean over seeds)", ylabel="test accuracy, %")
    for (label, line), colour in zip(lines.items(), (CROSS_ENTROPY, MPCS), strict=True):
        x, y = [dangerous for dangerous, _ in line], [100 * accuracy for _, accuracy in line]
        axes.plot(x, y, "-o", color=colour, markersize=3, linewidth=1, label=label)
    label = f"{100 * allowance:g} points below the baseline"
    lowest = 100 * (baseline_accuracy - allowance)
    axes.axhline(lowest, color=BLACK, linewidth=0.7, linestyle=":", label=label)
    for number, (dangerous, accuracy) in enumerate(points.values(), start=1):
        axes.plot(dangerous, 100 * accuracy, "s", color=ACCURACY, markersize=6)
        below = -12 * (number % 2)  # neighbours are often nearly equal
        axes.annotate(str(number), (dangerous, 100 * accuracy), xytext=(5, 4 + below), textcoords="offset points")
    key = "\n".join(f"{number}  {name}" for number, name in enumerate(points, start=1))
    axes.text(0.01, 0.02, key, transform=axes.transAxes, fontsize=8, va="bottom")
    axes.legend(loc="upper right", fontsize=8)
    return figure
