"""Generalized means of reported and measured probabilities over their power."""

from collections.abc import Mapping

from matplotlib.figure import Figure

from mpcs_torch.functional.probability.generalized import DECISIVE, GEOMETRIC, ROBUST
from mpcs_torch.functional.probability.mean_curve import MeanCurve
from mpcs_torch.plots.canvas import SMALL, canvas, legend_below
from mpcs_torch.plots.palette import DARK_GREY, LIGHT_GREY, SYSTEMS
from mpcs_torch.plots.text import literal

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
        >>> curve = generalized_mean_curve(torch.eye(3), torch.arange(3), num_classes=3)
        >>> [text.get_text() for text in mean_curves({"mlp": curve}).legends[0].get_texts()]
        ['mlp, reported', 'mlp, measured']
    """
    if not curves:
        raise ValueError("curves must hold at least one curve, but is empty.")
    figure, axes = canvas(3.6, xlabel="power of the mean", ylabel="mean probability of the true class", ylim=(0, 1))
    for row, (name, power) in enumerate(MARKED.items()):
        axes.axvline(power, color=LIGHT_GREY, linewidth=0.8)
        axes.text(power, 1.01 + 0.06 * row, name, fontsize=SMALL, color=DARK_GREY, ha="center", va="bottom")
    for number, (name, curve) in enumerate(curves.items()):
        colour = SYSTEMS[number % len(SYSTEMS)]
        for kind, line, values in (("reported", "-", curve.reported), ("measured", "--", curve.measured)):
            label = f"{literal(name)}, {kind}"
            axes.plot(curve.power.tolist(), values.tolist(), line, color=colour, linewidth=1.5, label=label)
    legend_below(figure)
    return figure
