"""The normalised Bayes error of likelihood ratios over all operating points."""

from matplotlib.figure import Figure

from mpcs_torch.functional.detection.bayes_error import LOG_ODDS, bayes_errors_of
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.plots.palette import BLUE, GREY, ORANGE
from mpcs_torch.plots.text import literal

MAX_DRAWN = 5.0
"""The upper limit of the error axis."""


def bayes_error_curve(rates: ErrorRates, title: str) -> Figure:
    """Draw the normalised Bayes error of natural-log likelihood ratios, and its minimum over all thresholds.

    The gap between the lines is due to calibration. Where the error is above 1, ignoring the scores is better. The axis
    ends at 5 or below. `functional.normalized_bayes_error` describes the values.

    Args:
        rates: The curve of the detector, as returned by `functional.detection_curve` of natural-log likelihood ratios.
        title: The title of the figure.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 3.
    """
    errors = bayes_errors_of(rates.counts(), LOG_ODDS)
    figure = Figure(figsize=(7, 4.2), layout="constrained")
    axes = figure.add_subplot(xlabel="log odds of a target, ln(p / (1 - p))", ylabel="normalised Bayes error")
    highest = min(max(1.2, 1.05 * errors.actual.max().item()), MAX_DRAWN)
    axes.set(title=literal(title), xlim=(-9, 9), ylim=(0, highest))
    axes.title.set_fontsize(10)
    axes.plot(LOG_ODDS.tolist(), errors.actual.tolist(), color=ORANGE, linewidth=1.5, label="at the Bayes threshold")
    axes.plot(LOG_ODDS.tolist(), errors.minimum.tolist(), color=BLUE, linewidth=1.5, label="at the best threshold")
    axes.axhline(1, color=GREY, linewidth=0.9, linestyle=":", label="ignoring the scores")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return figure
