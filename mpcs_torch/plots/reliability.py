"""Reliability diagrams, and generalized means of reported and measured probabilities over their power."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from mpcs_torch.functional.probability.generalized import DECISIVE, GEOMETRIC, ROBUST, ProbabilityMeans
from mpcs_torch.functional.probability.measured import MeanCurve, MeasuredProbabilities, calibration_slope
from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import Place, canvas, coloured, legend_below, literal


def reliability(measured: MeasuredProbabilities, reported: ProbabilityMeans, title: str, *, on: Place = None) -> Figure:
    """Draw the measured rate of each bin, the reported and measured means, and the slope between them.

    On the diagonal, the rate equals the reported probability. Above it, the classifier is underconfident.

    Args:
        measured: The result of `functional.measured_probabilities` or `ProbabilityAccuracy.bins`.
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


MARKED = {"robustness": ROBUST, "geometric": GEOMETRIC, "decisiveness": DECISIVE}


def mean_curves(curves: Mapping[str, MeanCurve]) -> Figure:
    """Draw the means of reported (solid) and of measured probabilities (dashed) over their power; higher is better.

    Args:
        curves: Results of `functional.generalized_mean_curve` by the name of the classifier.

    Raises:
        ValueError: If there is no curve.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Eq. 2; the paper reports the three marked powers.

    Example:
        >>> import torch
        >>> from mpcs_torch.functional import generalized_mean_curve
        >>> curve = generalized_mean_curve(3 * torch.eye(3), torch.arange(3), num_classes=3)
        >>> [text.get_text() for text in mean_curves({"mlp": curve}).legends[0].get_texts()]
        ['mlp, reported', 'mlp, measured']
    """
    if not curves:
        raise ValueError("curves must hold at least one curve, but is empty.")
    figure, axes = canvas(3.6, xlabel="power of the mean", ylabel="mean probability of the true class", ylim=(0, 1))
    for row, (name, power) in enumerate(MARKED.items()):
        axes.axvline(power, color=style.LIGHT_GREY, linewidth=0.8)
        axes.text(power, 1.01 + 0.06 * row, name, fontsize=style.SMALL, color=style.DARK_GREY, ha="center", va="bottom")
    for name, curve, colour in coloured(curves):
        for kind, line, values in (("reported", "-", curve.reported), ("measured", "--", curve.measured)):
            label = f"{literal(name)}, {kind}"
            axes.plot(curve.power.tolist(), values.tolist(), line, color=colour, linewidth=1.5, label=label)
    return legend_below(figure)
