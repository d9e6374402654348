"""Figures of detectors: DET curves on probit axes, ROC curves, score histograms, and curves of Bayes errors."""

from collections.abc import Mapping, Sequence
from itertools import cycle

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.special import ndtr, ndtri
from torch import Tensor

from mpcs_torch.errors import require
from mpcs_torch.functional.comparison.confidence_intervals import clopper_pearson
from mpcs_torch.functional.detection.cost import (
    DetectionCost,
    OperatingPoint,
    as_points,
    min_cost_from_counts,
)
from mpcs_torch.functional.detection.equal_error_rate import (
    equal_error_from_counts,
    error_crossing,
)
from mpcs_torch.functional.detection.errors import (
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
    cells = torch.stack([_grid_cells(x), _grid_cells(y)])
    changes = (cells.diff(dim=1) != 0).any(dim=0)
    ends = changes.new_ones(1)
    kept = (torch.cat([ends, changes]) | torch.cat([changes, ends])).nonzero().squeeze(1)
    return x[kept].tolist(), y[kept].tolist()


def _grid_cells(values: Tensor) -> Tensor:
    """Return each value's grid cell, int64 (K,). Cells are equal on a logit scale, so they are small near 0 and 1."""
    tiny = 1e-12
    logit = values.clamp(min=tiny).log() - (1 - values).clamp(min=tiny).log()
    return (
        (logit * 50).round().long()
    )  # 2000 cells along each axis: finer than a figure can show


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
    marked = as_points(points)
    counts = [rates.counts() for rates in systems.values()]
    costs = [[min_cost_from_counts(errors, point) for point in marked] for errors in counts]
    more = marks or {}
    drawn = [
        rate.item() for flat in costs for cost in flat for rate in (cost.p_miss, cost.p_fa)
    ]
    drawn += [
        rate for of_systems in more.values() for rates in of_systems for rate in rates
    ]
    figure, axes = canvas(
        4.6,
        title,
        on=on,
        xlabel="false-alarm rate, %",
        ylabel="miss rate, %",
        aspect="equal",
    )
    highest = min(0.99, max([0.6, *(rate + (1 - rate) / 3 for rate in drawn)]))
    between_ticks = (
        0.35 if isinstance(on, Axes) else 0.0
    )  # inches: axes of the caller may be small
    _set_probit_axes(axes, list(systems.values()), highest, between_ticks)
    for number, (name, rates, colour) in enumerate(coloured(systems)):
        equal = error_crossing(convex_hull(counts[number]).rates()).rate.item()
        curve = thinned(
            *(rate.clamp(INSIDE, 1 - INSIDE) for rate in (rates.p_fa, rates.p_miss))
        )
        label = (
            f"{literal(name, style.MAX_IN_SENTENCE)}, equal error rate {100 * equal:.2f} %"
        )
        axes.plot(*curve, color=colour, linewidth=1.5, label=label)
        axes.plot(*[max(equal, INSIDE)] * 2, "+", color=colour, markersize=9)
        markers = cycle(style.MARKERS)
        for cost, marker in zip(costs[number], markers, strict=False):
            if confidence is not None:
                _draw_interval(axes, rates, cost, colour, confidence)
            _mark(axes, cost.p_fa.item(), cost.p_miss.item(), colour, marker)
        for of_systems, marker in zip(more.values(), markers, strict=False):
            _mark(axes, *of_systems[number], colour, marker)
    for marker, label in zip(
        cycle(style.MARKERS),
        [*(f"minimum cost, {p.label()}" for p in marked), *more],
        strict=False,
    ):
        axes.plot([], [], marker, color=style.DARK_GREY, markersize=6, label=label)
    axes.plot(
        [],
        [],
        "+",
        color=style.DARK_GREY,
        markersize=9,
        label="equal error rate (convex hull)",
    )
    axes.plot([], [], ":", color=style.GREY, linewidth=0.9, label="30 errors")
    return legend_below(figure, on=on)


def _set_probit_axes(
    axes: Axes, systems: Sequence[ErrorRates], highest: float, nearest: float
) -> None:
    """Scale axes by probits up to ``highest``; draw lines at 30 errors, and ticks over ``nearest`` inches apart."""
    trials = [
        [int(rates.nontargets) for rates in systems],
        [int(rates.targets) for rates in systems],
    ]
    limits = [(min(0.02, 3 / max(counts)), highest) for counts in trials]
    axes.set(xlim=limits[0], ylim=limits[1])  # before the scales, on which 0 is infinite
    axes.set_xscale("function", functions=(ndtri, ndtr))
    axes.set_yscale("function", functions=(ndtri, ndtr))
    for axis, counts, (lowest, _), inches, draw in zip(
        (axes.xaxis, axes.yaxis),
        trials,
        limits,
        axes_size(axes),
        (axes.axvline, axes.axhline),
        strict=True,
    ):
        by_probit = inches / (ndtri(highest) - ndtri(lowest))
        ticks: list[float] = []
        for tick in (tick for tick in reversed(TICKS) if lowest <= tick <= highest):
            if not ticks or by_probit * (ndtri(ticks[0]) - ndtri(tick)) > nearest:
                ticks.insert(0, tick)
        axis.set_ticks(ticks, [f"{100 * tick:g}" for tick in ticks], fontsize=8)
        if 30 / min(counts) < highest:
            draw(30 / min(counts), color=style.GREY, linewidth=0.9, linestyle=":")
    axes.plot(
        [INSIDE, 1 - INSIDE], [INSIDE, 1 - INSIDE], color=style.LIGHT_GREY, linewidth=0.8
    )
    grid(axes)


def _draw_interval(
    axes: Axes, rates: ErrorRates, cost: DetectionCost, colour: str, confidence: float
) -> None:
    ends = []
    for rate, trials in ((cost.p_fa, rates.nontargets), (cost.p_miss, rates.targets)):
        interval = clopper_pearson(
            round((rate * trials).item()), int(trials), confidence=confidence
        )
        ends.append([min(max(end, INSIDE), 1 - INSIDE) for end in interval])
    (left, right), (bottom, top) = ends
    axes.add_patch(
        Rectangle((left, bottom), right - left, top - bottom, color=colour, alpha=0.25)
    )


def _mark(axes: Axes, p_fa: float, p_miss: float, colour: str, marker: str) -> None:
    (low_x, high_x), (low_y, high_y) = axes.get_xlim(), axes.get_ylim()
    x, y = min(max(p_fa, low_x), high_x), min(max(p_miss, low_y), high_y)
    axes.plot(
        x, y, marker, color=colour, markersize=4, clip_on=False
    )  # on the edge of the axes if it lies outside


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
    colours = dict(zip(systems, cycle(style.SYSTEMS), strict=False))
    errors = {
        name: bayes_errors_from_counts(rates.counts(), LOG_ODDS)
        for name, rates in systems.items()
        if rates is not None
    }
    require(errors, "not_empty", "systems")
    figure, axes = canvas(
        3.3,
        title,
        on=on,
        xlabel="log odds of a target, ln(p / (1 - p))",
        ylabel="normalised Bayes error",
    )
    highest = min(
        max(1.2, *(1.05 * error.actual.max().item() for error in errors.values())), 5.0
    )
    axes.set(xlim=(-9, 9), ylim=(0, highest))
    for name, error in errors.items():
        axes.plot(
            LOG_ODDS.tolist(),
            error.actual.tolist(),
            color=colours[name],
            linewidth=1.5,
            label=literal(name),
        )
        axes.plot(
            LOG_ODDS.tolist(),
            error.minimum.tolist(),
            color=colours[name],
            linewidth=1.2,
            linestyle="--",
        )
    axes.plot([], [], color=style.DARK_GREY, linewidth=1.5, label="at the Bayes threshold")
    axes.plot(
        [],
        [],
        color=style.DARK_GREY,
        linewidth=1.2,
        linestyle="--",
        label="at the best threshold",
    )
    axes.axhline(
        1, color=style.GREY, linewidth=0.9, linestyle=":", label="ignoring the scores"
    )
    return legend_below(figure, on=on)


def roc_curves(
    systems: Mapping[str, ErrorRates],
    title: str,
    *,
    area: float | None = None,
    on: Place = None,
) -> Figure:
    """Draw the hit rate over the false-alarm rate; for a single detector, also the convex hull and equal error rate.

    Args:
        systems: The curve of each detector by its name, from `functional.detection_curve`.
        title: The title of the figure.
        area: The area under the ROC of a single detector. Default: computed from its curve.
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
        below = area_under_roc(rates.counts()).item() if area is None else area
        label = f"{literal(name, style.MAX_IN_SENTENCE) if len(systems) > 1 else 'ROC'}, area {below:.4f}"
        axes.plot(x, [1 - miss for miss in y], color=colour, linewidth=1.5, label=label)
    if len(systems) == 1:
        corners = convex_hull(rates.counts())
        hull = corners.rates()
        equal, label = (
            error_crossing(hull).rate.item(),
            f"convex hull, area {area_under_roc(corners).item():.4f}",
        )
        axes.plot(
            hull.p_fa.tolist(),
            (1 - hull.p_miss).tolist(),
            color=style.ORANGE,
            linewidth=1.0,
            label=label,
        )
        label = f"equal error rate {100 * equal:.2f} %"
        axes.plot(equal, 1 - equal, "o", color=style.ORANGE, markersize=5, label=label)
    return legend_below(figure, on=on)


BINS = 100


def score_histograms(rates: ErrorRates, title: str) -> Figure:
    """Draw histograms of the scores of targets and non-targets, and the threshold with equal error rates.

    ``rates`` is the result of `functional.detection_curve`. Infinite scores are in the outer bins.
    """
    counts = rates.counts()
    equal = equal_error_from_counts(counts, "nearest")
    drawn = counts.thresholds[
        counts.thresholds.abs() < 1e300
    ]  # differences of larger scores can overflow
    low, high = (drawn[0].item(), drawn[-1].item()) if len(drawn) else (0.0, 0.0)
    edges = torch.linspace(
        low, high if high > low else low + BINS, BINS + 1, dtype=torch.float64
    )
    low, high = edges[0].item(), edges[-1].item()
    width = (high - low) / BINS or 1.0  # the edges of one huge score can be equal
    figure, axes = canvas(3.0, title, xlabel="score", ylabel="density")
    first, last = (
        edges.new_tensor([0]).long(),
        edges.new_tensor([len(counts.thresholds) - 1]).long(),
    )
    places = torch.cat([first, torch.searchsorted(counts.thresholds, edges[1:-1]), last])
    kinds = (
        ("non-targets", -counts.false_alarms, style.NONTARGETS),
        ("targets", counts.misses, style.TARGETS),
    )
    for name, below, colour in kinds:
        in_bins = below[places].diff()
        density = (in_bins.double() / in_bins.sum() / width).tolist()
        axes.stairs(
            density,
            edges.tolist(),
            fill=True,
            alpha=0.45,
            color=colour,
            label=f"{int(in_bins.sum())} {name}",
        )
    middle = midpoint(equal.low, equal.high).item()
    if low <= middle <= high:
        label = f"equal error rates at {middle:.4g}"
        axes.axvline(middle, color=style.BLACK, linewidth=0.9, linestyle=":", label=label)
    return legend_below(figure)
