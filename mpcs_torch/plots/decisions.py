"""Reliability diagrams, and the error rate of decided samples against coverage, the share of decided samples."""

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.probability.probability_accuracy import (
    MeasuredProbabilities,
    calibration_slope,
)
from mpcs_torch.functional.probability.scores import ProbabilityMeans
from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import Place, canvas, coloured, grid, legend_below, literal
from mpcs_torch.plots.detection import thinned


def risk_coverage_figure(
    curves: Mapping[str, tuple[Tensor, Tensor]],
    *,
    counted: str = "dangerous errors",
    title: str = "",
    on: Place = None,
) -> Figure:
    """Draw errors per decided sample against coverage (the share of decided samples), for one or more risk estimates.

    Lower is better. At 100 %, every sample is decided; toward the left, samples with the highest estimated risk are
    referred first.

    Args:
        curves: For each risk estimate, by name: coverage, and errors per decided sample, both ``(N,)`` floating point
            in [0, 1], in ascending order of coverage.
        counted: The name of the errors, for the axis.
        title: The title of the figure.
        on: The axes or the empty figure to draw on. Default: a new figure.

    Raises:
        ValueError: If there is no curve, if a curve has no point, or if its coverage and risk differ in shape.

    References:
        Geifman, El-Yaniv: Selective classification for deep neural networks, NeurIPS 2017.

    Example:
        >>> import torch
        >>> curve = torch.tensor([0.25, 0.5, 0.75, 1.0]), torch.tensor([0.0, 0.0, 0.0, 0.25])
        >>> figure = risk_coverage_figure({"largest probability": curve})
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['largest probability']
    """
    require(curves, "not_empty", "curves")
    ylabel = f"{counted} per decided sample, %"
    figure, axes = canvas(
        3.6, title, on=on, xlabel="coverage: decided samples, %", ylabel=ylabel
    )
    for name, (coverage, risk), colour in coloured(curves):
        has_points = coverage.ndim == 1 and len(coverage) > 0
        is_curve = has_points and coverage.shape == risk.shape
        shapes = [tuple(coverage.shape), tuple(risk.shape)]
        require(is_curve, "curve_shapes", "curves", shapes, name=name)
        x, y = 100 * np.array(thinned(coverage, risk))
        axes.plot(x, y, color=colour, linewidth=1.5, label=literal(name))
    axes.set(xlim=(_first_shown(curves.values()), 101), ylim=(0, None))
    grid(axes)
    return legend_below(figure, on=on)


def _first_shown(curves: Iterable[tuple[Tensor, Tensor]]) -> float:
    """Return the lowest coverage to draw, in percent: a little below the first error of any curve."""
    with_errors = [coverage[risk > 0] for coverage, risk in curves]
    first = min([float(part.min()) for part in with_errors if len(part)], default=0.0)
    # The first error is at 13 % of the width (0.15 / 1.15); one point more, for an error at 100 %.
    start = first - 0.15 * (1 - first)
    return max(0.0, 100 * start - 1)


def decision_curve_figure(
    of: str,
    thresholds: Sequence[float],
    curves: Mapping[str, Sequence[tuple[float, float, float]]],
    act_on_all: Sequence[float],
    implied: tuple[float, float] | None,
    *,
    on: Place = None,
) -> Figure:
    """Draw the net benefit of models over thresholds, with intervals, beside acting on all samples and on none.

    Args:
        of: The name of the class to act on.
        thresholds: The probabilities at which one acts, in ascending order.
        curves: For each model, by name: the net benefit and the ends of its interval, for each threshold.
        act_on_all: The net benefit of acting on all samples, for each threshold.
        implied: The ends of the thresholds that costs imply, which are shaded; None without costs.
        on: The axes or the empty figure to draw on. Default: a new figure.

    References:
        Vickers, Elkin: Decision Curve Analysis, Medical Decision Making 26, 2006.
    """
    xlabel = f"act if the probability of {literal(of, style.MAX_BESIDE)} is at least, %"
    figure, axes = canvas(3.4, on=on, xlabel=xlabel, ylabel="net benefit")
    at = 100 * np.array(thresholds)
    highest = max(act_on_all)
    for name, values, colour in coloured(curves):
        middle, low, high = zip(*values, strict=True)
        axes.fill_between(at, low, high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(at, middle, color=colour, linewidth=1.6, label=literal(name))
        highest = max(highest, *middle, *filter(isfinite, high))
    axes.plot(
        at, act_on_all, color=style.GREY, linewidth=1.2, linestyle="--", label="act on all"
    )
    axes.axhline(0, color=style.BLACK, linewidth=1.2, label="act on none")
    if implied is not None:
        low, high = (100 * np.array(implied)).tolist()
        from_text, to_text = f"{low:.3g}", f"{high:.3g}"
        label = f"costs imply {from_text} to {to_text} %"
        if from_text == to_text:  # as shown, a single threshold
            label = f"costs imply {from_text} %"
        axes.axvspan(low, high, color=style.AMBER, alpha=0.3, label=label)
    # Acting on all may cost far more than it helps: it must not set the scale, above or below.
    top = max(1.05 * highest, 0.01)
    axes.set(xlim=(at[0], at[-1]), ylim=(-0.2 * top, top))
    grid(axes)
    return legend_below(figure, on=on)


def reliability(
    measured: MeasuredProbabilities,
    reported: ProbabilityMeans,
    title: str,
    *,
    on: Place = None,
) -> Figure:
    """Draw a reliability diagram: bars are the measured rates in bins of reported probabilities.

    Each point is a mean of the reported probabilities (x) and the same mean of the measured ones (y). The legend has
    the slope of the line through two of the points. Above the diagonal, the classifier is underconfident.

    Args:
        measured: The result of `ProbabilityAccuracy.bins`.
        reported: The result of `ProbabilityAccuracy.reported`.
        title: The title of the figure.
        on: The axes or the empty figure to draw on. Default: a new figure.

    References:
        George, Barrera, Nelson, arXiv:2006.00058, Fig. 1.
    """
    figure, axes = canvas(
        4.2,
        title,
        on=on,
        xlabel="reported probability",
        ylabel="measured probability",
        aspect=1,
    )
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.bar(
        measured.low.tolist(),
        measured.rate.tolist(),
        (measured.high - measured.low).clamp(min=0.002).tolist(),
        align="edge",
        color=style.SKY,
        edgecolor=style.WHITE,
        linewidth=0.5,
        label="measured rate of a bin",
    )
    axes.plot([0, 1], [0, 1], color=style.GREEN, linewidth=1.2, label="calibrated")
    points = {
        name: (getattr(reported, name).item(), getattr(measured.means, name).item())
        for name in reported._fields
    }
    x0, y0 = points["robustness"]
    x1, y1 = points["decisiveness"]
    slope = calibration_slope(reported, measured.means).item()
    label = f"slope {slope:.2f}"
    axes.plot([x0, x1], [y0, y1], color=style.PINK, linewidth=1.8, label=label)
    for (name, (x, y)), marker in zip(points.items(), style.MARKERS, strict=False):
        label = f"{name.replace('_', ' ')}: {x:.2f} reported, {y:.2f} measured"
        axes.plot(
            x,
            y,
            marker,
            color=style.ORANGE,
            markersize=7,
            clip_on=False,
            linestyle="",
            label=label,
        )
    return legend_below(figure, on=on)
