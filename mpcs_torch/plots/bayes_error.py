"""The normalised Bayes error of likelihood ratios over all operating points."""

from collections.abc import Mapping
from itertools import cycle

from matplotlib.figure import Figure

from mpcs_torch.functional.detection.bayes_error import LOG_ODDS, bayes_errors_of
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.plots.canvas import canvas, legend_below
from mpcs_torch.plots.palette import DARK_GREY, GREY, SYSTEMS
from mpcs_torch.plots.text import literal

MAX_DRAWN = 5.0
"""The upper limit of the error axis."""


def bayes_error_curves(systems: Mapping[str, ErrorRates | None], title: str) -> Figure:
    """Draw the normalised Bayes error of natural-log likelihood ratios, and its minimum over all thresholds.

    The gap between the solid and the dashed line of a detector is due to calibration. Where the error is above 1,
    ignoring the scores is better. The axis ends at 5 or below. The values are those of
    `functional.normalized_bayes_error`.

    Args:
        systems: The curve of each detector by its name, as returned by `functional.detection_curve` of natural-log
            likelihood ratios. None for a detector whose scores are none: its colour is left out, so that all figures of
            some detectors have the same colours.
        title: The title of the figure.

    Raises:
        ValueError: If there is no curve.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 3.
    """
    colours = dict(zip(systems, cycle(SYSTEMS), strict=False))
    errors = {name: bayes_errors_of(rates.counts(), LOG_ODDS) for name, rates in systems.items() if rates is not None}
    if not errors:
        raise ValueError("systems must hold at least one curve, but holds none.")
    figure, axes = canvas(3.3, title, xlabel="log odds of a target, ln(p / (1 - p))", ylabel="normalised Bayes error")
    highest = min(max(1.2, *(1.05 * each.actual.max().item() for each in errors.values())), MAX_DRAWN)
    axes.set(xlim=(-9, 9), ylim=(0, highest))
    for name, each in errors.items():
        axes.plot(LOG_ODDS.tolist(), each.actual.tolist(), color=colours[name], linewidth=1.5, label=literal(name))
        axes.plot(LOG_ODDS.tolist(), each.minimum.tolist(), color=colours[name], linewidth=1.2, linestyle="--")
    axes.plot([], [], color=DARK_GREY, linewidth=1.5, label="at the Bayes threshold")
    axes.plot([], [], color=DARK_GREY, linewidth=1.2, linestyle="--", label="at the best threshold")
    axes.axhline(1, color=GREY, linewidth=0.9, linestyle=":", label="ignoring the scores")
    legend_below(figure)
    return figure
