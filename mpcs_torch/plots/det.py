"""DET curves: miss rate over false-alarm rate on probit axes."""

from collections.abc import Mapping, Sequence
from itertools import cycle

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from scipy.special import ndtr, ndtri

from mpcs_torch.functional.detection.convex_hull import hull_vertices
from mpcs_torch.functional.detection.cost import DetectionCost, min_cost_of
from mpcs_torch.functional.detection.equal_error_rate import crossing_of
from mpcs_torch.functional.detection.errors import ErrorRates
from mpcs_torch.functional.detection.interval import check_confidence, clopper_pearson
from mpcs_torch.functional.detection.operating_point import OperatingPoint, as_points
from mpcs_torch.plots.canvas import canvas, grid, legend_below
from mpcs_torch.plots.curves import thinned
from mpcs_torch.plots.palette import DARK_GREY, GREY, LIGHT_GREY, SYSTEMS
from mpcs_torch.plots.text import MOST_IN_SENTENCE, literal

MARKERS = "os^DvPX"
HIGHEST = 0.6
"""The upper end of the axes, unless a marked point lies above."""
INSIDE = 1e-9
"""The smallest distance from 0 and 1 that is drawn: there probits are infinite."""
TICKS = (1e-6, 1e-5, 1e-4, 1e-3, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 0.9, 0.95, 0.98, 0.99)


def det_curves(
    systems: Mapping[str, ErrorRates],
    *,
    points: OperatingPoint | Sequence[OperatingPoint] = (),
    confidence: float = 0.95,
) -> Figure:
    """Draw the miss rate over the false-alarm rate of detectors, on probit axes.

    On these axes, Gaussian scores give a straight line. A marker shows the minimum cost at an operating point, in a box
    of the Clopper-Pearson intervals of both rates. They assume independent trials, and a threshold from elsewhere: with
    the best one of the same trials, each interval held the true rate in 93 to 98 % of simulated sets, and both in 88 to
    94 %. To the left of and below the dotted lines, rates are based on fewer than 30 errors (in the smallest set).

    Args:
        systems: The curve of each detector by its name, as returned by `functional.detection_curve`.
        points: An operating point to mark, or any number of them.
        confidence: The confidence of the intervals, in (0, 1).

    Raises:
        ValueError: If there is no system, or if an operating point or the confidence breaks its rule.

    References:
        Martin et al.: The DET curve in assessment of detection task performance, Eurospeech 1997.
    """
    if not systems:
        raise ValueError("systems must hold at least one curve, but is empty.")
    check_confidence(confidence)
    marked = as_points(points)
    counts = [rates.counts() for rates in systems.values()]
    hulls = [hull_vertices(errors) for errors in counts]
    costs = [[min_cost_of(*hull, point) for point in marked] for hull in zip(counts, hulls, strict=True)]
    highest = [max(rate.item() for cost in flat for rate in (cost.p_miss, cost.p_fa)) for flat in costs if flat]
    figure, axes = canvas(4.6, xlabel="false-alarm rate, %", ylabel="miss rate, %", aspect="equal")
    _set_probit_axes(
        axes, list(systems.values()), min(0.99, max([HIGHEST, *(rate + (1 - rate) / 3 for rate in highest)]))
    )
    for number, (name, rates) in enumerate(systems.items()):
        colour = SYSTEMS[number % len(SYSTEMS)]
        equal = crossing_of(counts[number].at(hulls[number]).rates()).rate.item()
        curve = thinned(*(rate.clamp(INSIDE, 1 - INSIDE) for rate in (rates.p_fa, rates.p_miss)))
        axes.plot(
            *curve,
            color=colour,
            linewidth=1.5,
            label=f"{literal(name, MOST_IN_SENTENCE)}, equal error rate {100 * equal:.2f} %",
        )
        axes.plot(*[max(equal, INSIDE)] * 2, "+", color=colour, markersize=9)
        for marker, cost in zip(cycle(MARKERS), costs[number], strict=False):
            _mark(axes, rates, cost, colour, marker, confidence)
    for marker, point in zip(cycle(MARKERS), marked, strict=False):
        axes.plot([], [], marker, color=DARK_GREY, markersize=6, label=f"minimum cost, {point.label()}")
    axes.plot([], [], "+", color=DARK_GREY, markersize=9, label="equal error rate (convex hull)")
    axes.plot([], [], ":", color=GREY, linewidth=0.9, label="30 errors")
    legend_below(figure)
    return figure


def _set_probit_axes(axes: Axes, systems: Sequence[ErrorRates], highest: float) -> None:
    trials = {side: [int(getattr(rates, side)) for rates in systems] for side in ("nontargets", "targets")}
    limits = [(min(0.02, 3 / max(counts)), highest) for counts in trials.values()]
    axes.set(xlim=limits[0], ylim=limits[1])  # before the scales, on which 0 is infinite
    axes.set_xscale("function", functions=(ndtri, ndtr))
    axes.set_yscale("function", functions=(ndtri, ndtr))
    for counts, (lowest, _), set_ticks, draw in zip(
        trials.values(), limits, (axes.set_xticks, axes.set_yticks), (axes.axvline, axes.axhline), strict=True
    ):
        ticks = [tick for tick in TICKS if lowest <= tick <= highest]
        set_ticks(ticks, [f"{100 * tick:g}" for tick in ticks], fontsize=8)
        if 30 / min(counts) < highest:
            draw(30 / min(counts), color=GREY, linewidth=0.9, linestyle=":")
    axes.plot([INSIDE, 1 - INSIDE], [INSIDE, 1 - INSIDE], color=LIGHT_GREY, linewidth=0.8)
    grid(axes)


def _mark(axes: Axes, rates: ErrorRates, cost: DetectionCost, colour: str, marker: str, confidence: float) -> None:
    ends = []
    for rate, trials in ((cost.p_fa, rates.nontargets), (cost.p_miss, rates.targets)):
        interval = clopper_pearson(round((rate * trials).item()), int(trials), confidence=confidence)
        ends.append([min(max(end, INSIDE), 1 - INSIDE) for end in interval])
    (left, right), (bottom, top) = ends
    axes.add_patch(Rectangle((left, bottom), right - left, top - bottom, color=colour, alpha=0.25))
    (low_x, high_x), (low_y, high_y) = axes.get_xlim(), axes.get_ylim()
    x, y = min(max(cost.p_fa.item(), low_x), high_x), min(max(cost.p_miss.item(), low_y), high_y)
    axes.plot(x, y, marker, color=colour, markersize=4, clip_on=False)  # on the edge of the axes if it lies outside
