"""A reliability diagram: the rate at which classes are true over the probability that they were given."""

from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.functional.probability.generalized import ProbabilityMeans
from mpcs_torch.functional.probability.measured import MeasuredProbabilities, calibration_slope
from mpcs_torch.plots.palette import GREEN, ORANGE, PINK, SKY, WHITE


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
    figure = Figure(figsize=(5.6, 5.4), layout="constrained")
    axes = figure.add_subplot(xlabel="reported probability", ylabel="measured probability", xlim=(0, 1), ylim=(0, 1))
    axes.set_title(title, fontsize=10)
    low, high, rate = (_numbers(values) for values in (measured.low, measured.high, measured.rate))
    widths = [max(h - b, 0.002) for b, h in zip(low, high, strict=True)]
    axes.bar(low, rate, widths, align="edge", color=SKY, edgecolor=WHITE, linewidth=0.5, label="measured rate of a bin")
    axes.plot([0, 1], [0, 1], color=GREEN, linewidth=1.2, label="calibrated")
    points = {name: (getattr(reported, name).item(), getattr(measured.means, name).item()) for name in reported._fields}
    ends = points["robustness"], points["decisiveness"]
    slope = calibration_slope(reported, measured.means).item()
    axes.plot(*zip(*ends, strict=True), color=PINK, linewidth=1.8, label=f"slope {slope:.2f}")
    axes.plot(*zip(*points.values(), strict=True), "o", color=ORANGE, markersize=7, clip_on=False)
    for name, point in points.items():
        place = (8, -4) if point[0] < 0.7 else (-8, 8)
        label, side = name.replace("_", " "), "left" if point[0] < 0.7 else "right"
        axes.annotate(label, point, xytext=place, textcoords="offset points", fontsize=9, ha=side)
    axes.legend(loc="upper left", fontsize=9)
    return figure


def _numbers(values: Tensor) -> list[float]:
    numbers: list[float] = values.tolist()
    return numbers
