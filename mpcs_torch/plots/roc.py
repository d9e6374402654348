"""The ROC of a detector and its convex hull, and those of several."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mpcs_torch.functional.detection.equal_error_rate import crossing_of
from mpcs_torch.functional.detection.errors import ErrorRates, area_under_roc, hull_of
from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import Place, canvas, coloured, legend_below, literal
from mpcs_torch.plots.curves import thinned


def roc_with_hull(rates: ErrorRates, title: str, *, area: float | None = None, on: Place = None) -> Figure:
    """Draw the hit rate over the false-alarm rate, with the convex hull and its equal error rate.

    Args:
        rates: The curve of the detector, as returned by `functional.detection_curve`.
        title: The title of the figure.
        area: The area under the ROC. Default: that under the curve.
        on: Axes to draw on, or an empty figure. Default: a new figure.

    References:
        Provost, Fawcett: Robust classification for imprecise environments, Machine Learning 42, 2001.
    """
    counts = rates.counts()
    corners = hull_of(counts)
    hull = corners.rates()
    equal = crossing_of(hull).rate.item()
    figure, axes = _axes(title, on)
    x, y = thinned(rates.p_fa, rates.p_miss)
    area = area_under_roc(counts).item() if area is None else area
    axes.plot(x, [1 - miss for miss in y], color=style.BLUE, linewidth=1.5, label=f"ROC, area {area:.4f}")
    label = f"convex hull, area {area_under_roc(corners).item():.4f}"
    axes.plot(hull.p_fa.tolist(), (1 - hull.p_miss).tolist(), color=style.ORANGE, linewidth=1.0, label=label)
    axes.plot(equal, 1 - equal, "o", color=style.ORANGE, markersize=5, label=f"equal error rate {100 * equal:.2f} %")
    legend_below(figure, on=on)
    return figure


def roc_curves(systems: Mapping[str, ErrorRates], title: str, *, on: Place = None) -> Figure:
    """Draw the hit rate over the false-alarm rate of several detectors.

    Args:
        systems: The curve of each detector by its name, as returned by `functional.detection_curve`.
        title: The title of the figure.
        on: Axes to draw on, or an empty figure. Default: a new figure.

    Raises:
        ValueError: If there is no system.
    """
    if not systems:
        raise ValueError("systems must hold at least one curve, but is empty.")
    figure, axes = _axes(title, on)
    for name, rates, colour in coloured(systems):
        x, y = thinned(rates.p_fa, rates.p_miss)
        label = f"{literal(name, style.MOST_IN_SENTENCE)}, area {area_under_roc(rates.counts()).item():.4f}"
        axes.plot(x, [1 - miss for miss in y], color=colour, linewidth=1.5, label=label)
    legend_below(figure, on=on)
    return figure


def _axes(title: str, on: Place) -> tuple[Figure, Axes]:
    figure, axes = canvas(4.4, title, on=on, xlabel="false-alarm rate", ylabel="hit rate", aspect="equal")
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    axes.plot([0, 1], [0, 1], color=style.LIGHT_GREY, linewidth=0.8)
    axes.plot([0, 1], [1, 0], color=style.LIGHT_GREY, linewidth=0.8, linestyle=":")
    return figure, axes
