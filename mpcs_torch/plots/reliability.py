"""A reliability diagram: the rate at which classes are true over the probability that they were given."""

from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.functional.probability.generalized import ProbabilityMeans
from mpcs_torch.functional.probability.measured import MeasuredProbabilities, calibration_slope
from mpcs_torch.plots.canvas import canvas, legend_below
from mpcs_torch.plots.palette import GREEN, ORANGE, PINK, SKY, WHITE

MARKERS = "osD"
"""Of the three means."""


def reliability(measured: MeasuredProbabilities, reported: ProbabilityMeans, title: str) -> Figure:
    """Draw the measured rate of each bin, the reported and measured means, and the slope between them.

    On the diagonal, the rate equals the reported probability. Above it, the classifier is underconfident.

    Args:
        measured: The result of `functional.measured_probabilities` or `ProbabilityAccuracy.bins`.
        reported: The result of `ProbabilityAccuracy.reported`.
        title: The title of the figure.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Fig. 1.
    """
    figure, axes = canvas(
        4.2, title, xlabel="reported probability", ylabel="measured probability", xlim=(0, 1), ylim=(0, 1), aspect=1
    )
    low, high, rate = (_numbers(values) for values in (measured.low, measured.high, measured.rate))
    widths = [max(h - b, 0.002) for b, h in zip(low, high, strict=True)]
    axes.bar(low, rate, widths, align="edge", color=SKY, edgecolor=WHITE, linewidth=0.5, label="measured rate of a bin")
    axes.plot([0, 1], [0, 1], color=GREEN, linewidth=1.2, label="calibrated")
    points = {name: (getattr(reported, name).item(), getattr(measured.means, name).item()) for name in reported._fields}
    ends = points["robustness"], points["decisiveness"]
    slope = calibration_slope(reported, measured.means).item()
    axes.plot(*zip(*ends, strict=True), color=PINK, linewidth=1.8, label=f"slope {slope:.2f}")
    for (name, (x, y)), marker in zip(points.items(), MARKERS, strict=True):
        label = f"{name.replace('_', ' ')}: {x:.2f} reported, {y:.2f} measured"
        axes.plot(x, y, marker, color=ORANGE, markersize=7, clip_on=False, linestyle="", label=label)
    legend_below(figure)
    return figure


def _numbers(values: Tensor) -> list[float]:
    numbers: list[float] = values.tolist()
    return numbers
