"""Reliability diagrams."""

from typing import Any

from matplotlib.figure import Figure

from mpcs_torch.functional.probability.probability_accuracy import MeasuredProbabilities, calibration_slope
from mpcs_torch.functional.probability.scores import ProbabilityMeans
from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import Place, canvas, legend_below


def reliability(measured: MeasuredProbabilities, reported: ProbabilityMeans, title: str, *, on: Place = None) -> Figure:
    """Draw the measured rate of each bin, the reported and measured means, and the slope between them.

    On the diagonal, the rate equals the reported probability. Above it, the classifier is underconfident.

    Args:
        measured: The result of `ProbabilityAccuracy.bins`.
        reported: The result of `ProbabilityAccuracy.reported`.
        title: The title of the figure.
        on: Where to draw.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Fig. 1.
    """
    figure, axes = canvas(4.2, title, on=on, xlabel="reported probability", ylabel="measured probability", aspect=1)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    low, high, rate = (values.tolist() for values in (measured.low, measured.high, measured.rate))
    widths = [max(h - b, 0.002) for b, h in zip(low, high, strict=True)]
    look: dict[str, Any] = {"color": style.SKY, "edgecolor": style.WHITE, "linewidth": 0.5}
    axes.bar(low, rate, widths, align="edge", label="measured rate of a bin", **look)
    axes.plot([0, 1], [0, 1], color=style.GREEN, linewidth=1.2, label="calibrated")
    points = {name: (getattr(reported, name).item(), getattr(measured.means, name).item()) for name in reported._fields}
    ends = points["robustness"], points["decisiveness"]
    slope = calibration_slope(reported, measured.means).item()
    axes.plot(*zip(*ends, strict=True), color=style.PINK, linewidth=1.8, label=f"slope {slope:.2f}")
    for (name, (x, y)), marker in zip(points.items(), style.MARKERS, strict=False):
        label = f"{name.replace('_', ' ')}: {x:.2f} reported, {y:.2f} measured"
        axes.plot(x, y, marker, color=style.ORANGE, markersize=7, clip_on=False, linestyle="", label=label)
    return legend_below(figure, on=on)
