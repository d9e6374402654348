"""Figures of detectors: DET curves on probit axes, ROC curves, score histograms, and curves of Bayes errors."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.scale import FuncScale
from scipy.special import ndtr, ndtri
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.comparison.confidence_intervals import clopper_pearson
from mpcs_torch.functional.detection.cost import (
    OperatingPoint,
    as_points,
    min_cost_from_counts,
)
from mpcs_torch.functional.detection.equal_error_rate import (
    equal_error_from_counts,
    error_crossing,
)
from mpcs_torch.functional.detection.errors import (
    MIN_ERRORS,
    ErrorRates,
    area_under_roc,
    convex_hull,
    midpoint,
)
from mpcs_torch.functional.detection.llr_cost import LOG_ODDS, bayes_errors_from_counts
from mpcs_torch.functional.inputs.confidence import CONFIDENCE, check_confidence
from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import (
    Place,
    axes_size,
    canvas,
    coloured,
    grid,
    legend_below,
    literal,
)


def thinned(x: Tensor, y: Tensor) -> tuple[list[float], list[float]]:
    """Thin out the line ``x``, ``y`` (K,) in [0, 1]: in each cell of a fine grid, keep its first and last point."""
    # 2000 cells along each axis, of equal size on a logit scale: finer than a figure can show.
    cells = (torch.stack([x, y]).double().logit(1e-12) * 50).round().long()
    changes = (cells.diff(dim=1) != 0).any(dim=0)
    end = changes.new_ones(1)
    is_first = torch.cat([end, changes])
    is_last = torch.cat([changes, end])
    kept = (is_first | is_last).nonzero().squeeze(1)
    return x[kept].tolist(), y[kept].tolist()


BETWEEN_TICKS = 0.35
"""The minimum distance of ticks, in inches: with many trials, the labels of low rates would lie over each other."""
INSIDE = 1e-9
"""The minimum distance of drawn rates from 0 and 1, where probits are infinite."""
TICKS = (
    1e-6,
    1e-5,
    1e-4,
    1e-3,
    0.002,
    0.005,
    0.01,
    0.02,
    0.05,
    0.1,
    0.2,
    0.4,
    0.6,
    0.8,
    0.9,
    0.95,
    0.98,
    0.99,
)


def det_curves(
    systems: Mapping[str, ErrorRates],
    *,
    points: OperatingPoint | Sequence[OperatingPoint] = (),
    confidence: float | None = CONFIDENCE,
    marks: Mapping[str, Sequence[tuple[float, float]]] | None = None,
    title: str = "",
    on: Place = None,
) -> Figure:
    """Draw the miss rate over the false-alarm rate of detectors, on probit axes.

    On these axes, Gaussian scores give a straight line. A marker shows the minimum cost at an operating point; the box
    around the marker spans the Clopper-Pearson intervals of both rates. They assume independent trials, and a threshold
    that was chosen on other trials. Here, the threshold is the best for these trials. In simulations of this case, a
    95 % interval contained the true rate in 93 to 98 % of the sets of trials, and a box contained both true rates in
    88 to 94 %. To the left of and below the dotted lines, rates are based on fewer than 30 errors.

    Args:
        systems: The curve of each detector by its name, from `functional.detection_curve`.
        points: The operating points to mark.
        confidence: The confidence of the intervals, in (0, 1); None for no boxes.
        marks: More points to mark: for each text in the legend, a pair (false-alarm rate, miss rate) per detector.
        title: The title of the figure.
        on: The axes or the empty figure to draw on. Default: a new figure.

    Raises:
        ValueError: If ``systems`` is empty, or if an operating point or the confidence is out of range.

    References:
        Martin et al.: The DET curve in assessment of detection task performance, Eurospeech 1997.
    """
    require(systems, "not_empty", "systems")
    if confidence is not None:
        check_confidence(confidence)
    counts = [rates.counts() for rates in systems.values()]
    minima = dict[str, Sequence[tuple[float, float]]]()
    for point in as_points(points):
        costs = [min_cost_from_counts(errors, point) for errors in counts]
        pairs = [(cost.p_fa.item(), cost.p_miss.item()) for cost in costs]
        minima[f"minimum cost, {point.label()}"] = pairs
    marked = {**minima, **(marks or {})}
    markers = dict(zip(marked, cycle(style.MARKERS), strict=False))
    # Of all marks, detectors and both rates.
    highest_mark = np.array(list(marked.values())).max(initial=0.0)
    figure, axes = canvas(
        4.6,
        title,
        on=on,
        xlabel="false-alarm rate, %",
        ylabel="miss rate, %",
        aspect="equal",
    )
    # A third of the way from the highest mark to 1, so that the mark is inside.
    highest = min(0.99, max(0.6, highest_mark + (1 - highest_mark) / 3))
    _set_probit_axes(axes, list(systems.values()), highest)
    lowest_x, highest_x = axes.get_xlim()
    lowest_y, highest_y = axes.get_ylim()
    for number, (name, rates, colour) in enumerate(coloured(systems)):
        equal = error_crossing(convex_hull(counts[number]).rates()).rate.item()
        p_fas = rates.p_fa.clamp(INSIDE, 1 - INSIDE)
        p_misses = rates.p_miss.clamp(INSIDE, 1 - INSIDE)
        x, y = thinned(p_fas, p_misses)
        short = literal(name, style.MAX_IN_SENTENCE)
        label = f"{short}, equal error rate {100 * equal:.2f} %"
        axes.plot(x, y, color=colour, linewidth=1.5, label=label)
        equal = max(equal, INSIDE)
        axes.plot(equal, equal, "+", color=colour, markersize=9)
        for mark, marker in markers.items():
            point_of_system = marked[mark][number]
            if confidence is not None and mark in minima:
                _draw_interval(axes, rates, point_of_system, colour, confidence)
            # A point outside the axes is drawn on their edge.
            p_fa, p_miss = point_of_system
            at_x = np.clip(p_fa, lowest_x, highest_x)
            at_y = np.clip(p_miss, lowest_y, highest_y)
            axes.plot(at_x, at_y, marker, color=colour, markersize=4, clip_on=False)
    for mark, marker in markers.items():
        axes.plot([], [], marker, color=style.DARK_GREY, markersize=6, label=mark)
    label = "equal error rate (convex hull)"
    axes.plot([], [], "+", color=style.DARK_GREY, markersize=9, label=label)
    axes.plot([], [], ":", color=style.GREY, linewidth=0.9, label=f"{MIN_ERRORS} errors")
    return legend_below(figure, on=on)


def _set_probit_axes(axes: Axes, systems: Sequence[ErrorRates], highest: float) -> None:
    """Scale axes by probits up to ``highest``, and draw lines at `MIN_ERRORS` errors."""
    nontargets = [int(rates.nontargets) for rates in systems]
    targets = [int(rates.targets) for rates in systems]
    width, height = axes_size(axes)
    lowest_fa = min(0.02, 3 / max(nontargets))
    lowest_miss = min(0.02, 3 / max(targets))
    # The limits come before the scales, on which 0 is infinite.
    axes.set(xlim=(lowest_fa, highest), ylim=(lowest_miss, highest))
    axes.set_xscale(FuncScale(None, (ndtri, ndtr)))
    axes.set_yscale(FuncScale(None, (ndtri, ndtr)))
    ticks_of_fa = _probit_ticks(lowest_fa, highest, width)
    ticks_of_miss = _probit_ticks(lowest_miss, highest, height)
    axes.set_xticks(ticks_of_fa, [f"{100 * tick:g}" for tick in ticks_of_fa])
    axes.set_yticks(ticks_of_miss, [f"{100 * tick:g}" for tick in ticks_of_miss])
    line: dict[str, Any] = {"color": style.GREY, "linewidth": 0.9, "linestyle": ":"}
    few_false_alarms = MIN_ERRORS / min(nontargets)
    if few_false_alarms < highest:
        axes.axvline(few_false_alarms, **line)
    few_misses = MIN_ERRORS / min(targets)
    if few_misses < highest:
        axes.axhline(few_misses, **line)
    axes.tick_params(labelsize=8)
    ends = [INSIDE, 1 - INSIDE]
    axes.plot(ends, ends, color=style.LIGHT_GREY, linewidth=0.8)
    grid(axes)


def _probit_ticks(lowest: float, highest: float, inches: float) -> list[float]:
    """Return the `TICKS` for an axis of so many ``inches``: from the highest down, without those that are too close."""
    inches_per_probit = inches / (ndtri(highest) - ndtri(lowest))
    ticks = list[float]()
    for tick in reversed(TICKS):
        if not lowest <= tick <= highest:
            continue
        if ticks:
            gap = inches_per_probit * (ndtri(ticks[-1]) - ndtri(tick))
            if gap <= BETWEEN_TICKS:
                continue
        ticks.append(tick)
    return ticks[::-1]


def _draw_interval(
    axes: Axes,
    rates: ErrorRates,
    point: tuple[float, float],
    colour: str,
    confidence: float,
) -> None:
    """Draw a box that spans the intervals of the false-alarm rate and of the miss rate at ``point``."""
    sides = list[list[float]]()
    for rate, trials in zip(point, (rates.nontargets, rates.targets), strict=True):
        size = int(trials)
        ends = clopper_pearson(round(rate * size), size, confidence=confidence)
        sides.append(np.clip(ends, INSIDE, 1 - INSIDE).tolist())
    (left, right), (bottom, top) = sides
    box = Rectangle((left, bottom), right - left, top - bottom, color=colour, alpha=0.25)
    axes.add_patch(box)


def bayes_error_curves(
    systems: Mapping[str, ErrorRates | None], title: str, *, on: Place = None
) -> Figure:
    """Draw the normalised Bayes error of natural-log likelihood ratios, and its minimum over all thresholds.

    The error is a solid line, and the minimum a dashed line; the gap between these is due to calibration. Where the
    error is above 1, ignoring the scores is better. The error axis ends at 5 or below.
    The docstring of `bayes_errors_from_counts` has the equation.

    Args:
        systems: The curve of each detector by its name, from `functional.detection_curve` of natural-log likelihood
            ratios. None for a detector with other scores: it is not drawn, and its colour is skipped.
        title: The title of the figure.
        on: The axes or the empty figure to draw on. Default: a new figure.

    Raises:
        ValueError: If there is no curve.

    References:
        Brummer, de Villiers: The BOSARIS toolkit user guide, 2011, Section 3.
    """
    curves = [
        (name, bayes_errors_from_counts(rates.counts(), LOG_ODDS), colour)
        for name, rates, colour in coloured(systems)
        if rates is not None
    ]
    require(curves, "not_empty", "systems")
    figure, axes = canvas(
        3.3,
        title,
        on=on,
        xlabel="log odds of a target, ln(p / (1 - p))",
        ylabel="normalised Bayes error",
    )
    solid: dict[str, Any] = {"linewidth": 1.5}
    dashed: dict[str, Any] = {"linewidth": 1.2, "linestyle": "--"}
    odds = LOG_ODDS.tolist()
    for name, error, colour in curves:
        actual, minimum = error.actual.tolist(), error.minimum.tolist()
        axes.plot(odds, actual, color=colour, label=literal(name), **solid)
        axes.plot(odds, minimum, color=colour, **dashed)
    highest = min(max(1.2, 1.05 * axes.dataLim.y1), 5.0)
    axes.set(xlim=(-9, 9), ylim=(0, highest))
    axes.plot([], [], color=style.DARK_GREY, label="at the Bayes threshold", **solid)
    axes.plot([], [], color=style.DARK_GREY, label="at the best threshold", **dashed)
    axes.axhline(
        1, color=style.GREY, linewidth=0.9, linestyle=":", label="ignoring the scores"
    )
    return legend_below(figure, on=on)


def roc_curves(
    systems: Mapping[str, ErrorRates], title: str, *, on: Place = None
) -> Figure:
    """Draw the hit rate over the false-alarm rate; for a single detector, also the convex hull and equal error rate.

    Args:
        systems: The curve of each detector by its name, from `functional.detection_curve`.
        title: The title of the figure.
        on: The axes or the empty figure to draw on. Default: a new figure.

    Raises:
        ValueError: If ``systems`` is empty.

    References:
        Provost, Fawcett: Robust classification for imprecise environments, Machine Learning 42, 2001.
    """
    require(systems, "not_empty", "systems")
    figure, axes = canvas(
        4.4, title, on=on, xlabel="false-alarm rate", ylabel="hit rate", aspect="equal"
    )
    axes.set(xlim=(-0.01, 1.01), ylim=(-0.01, 1.01))
    axes.plot([0, 1], [0, 1], color=style.LIGHT_GREY, linewidth=0.8)
    axes.plot([0, 1], [1, 0], color=style.LIGHT_GREY, linewidth=0.8, linestyle=":")
    for name, rates, colour in coloured(systems):
        x, y = thinned(rates.p_fa, rates.p_miss)
        area = area_under_roc(rates.counts()).item()
        curve = literal(name, style.MAX_IN_SENTENCE) if len(systems) > 1 else "ROC"
        label = f"{curve}, area {area:.4f}"
        axes.plot(x, [1 - miss for miss in y], color=colour, linewidth=1.5, label=label)
    if len(systems) == 1:
        corners = convex_hull(rates.counts())
        hull = corners.rates()
        label = f"convex hull, area {area_under_roc(corners).item():.4f}"
        x, y = hull.p_fa.tolist(), (1 - hull.p_miss).tolist()
        axes.plot(x, y, color=style.ORANGE, linewidth=1.0, label=label)
        equal = error_crossing(hull).rate.item()
        label = f"equal error rate {100 * equal:.2f} %"
        axes.plot(equal, 1 - equal, "o", color=style.ORANGE, markersize=5, label=label)
    return legend_below(figure, on=on)


BINS = 100


def score_histograms(rates: ErrorRates, title: str) -> Figure:
    """Draw histograms of the scores of targets and non-targets, and the threshold with equal error rates.

    ``rates`` is the result of `functional.detection_curve`. Infinite scores are in the outer bins.
    """
    counts = rates.counts()
    scores = counts.thresholds[:-1]  # the last is infinity
    moderate = scores[scores.abs() < 1e300]  # differences of larger scores can overflow
    low = high = 0.0
    if len(moderate):
        low = moderate[0].item()
        high = moderate[-1].item()
    if high == low:
        high = low + max(BINS, abs(low))
    inside = scores.clamp(low, high).tolist()
    figure, axes = canvas(3.0, title, xlabel="score", ylabel="density")
    # Of thresholds in ascending order, false alarms fall and misses rise: differences are numbers of scores.
    kinds = (
        ("non-targets", -counts.false_alarms, style.NONTARGETS),
        ("targets", counts.misses, style.TARGETS),
    )
    for kind, below, colour in kinds:
        numbers = below.diff().tolist()
        density, edges = np.histogram(
            inside, BINS, (low, high), density=True, weights=numbers
        )
        label = f"{sum(numbers)} {kind}"
        axes.stairs(density, edges, fill=True, alpha=0.45, color=colour, label=label)
    equal = equal_error_from_counts(counts, "nearest")
    middle = midpoint(equal.low, equal.high).item()
    if low <= middle <= high:
        label = f"equal error rates at {middle:.4g}"
        axes.axvline(middle, color=style.BLACK, linewidth=0.9, linestyle=":", label=label)
    return legend_below(figure)
