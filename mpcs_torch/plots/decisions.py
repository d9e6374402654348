"""Decisions and referral: errors over coverage, samples for a limit, and what costs least over the costs."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from torch import Tensor

from mpcs_torch.plots.canvas import (
    BLACK,
    DARK_GREY,
    SYSTEMS,
    WHITE,
    Place,
    canvas,
    coloured,
    grid,
    legend_below,
    literal,
)
from mpcs_torch.plots.detection import thinned


def risk_coverage_figure(
    curves: Mapping[str, tuple[Tensor, Tensor]],
    *,
    counted: str = "dangerous errors",
    title: str = "",
    on: Place = None,
) -> Figure:
    """Draw the dangerous or other errors of decided samples against coverage, for one or more estimates of the risk.

    Lower is better. At a coverage of 100 % every sample is decided; toward the left, the samples with the highest
    estimated risk are referred first.

    Args:
        curves: Coverage, and dangerous errors per decided sample, both ``(N,)`` floating point in [0, 1] and in order
            of coverage, by the name of the estimate.
        counted: Which errors the curves count.
        title: The title of the figure.
        on: Where to draw.

    Raises:
        ValueError: If there is no curve, or if a curve has no point or two shapes.

    References:
        Geifman, El-Yaniv: Selective classification for deep neural networks, NeurIPS 2017.

    Example:
        >>> import torch
        >>> curve = torch.tensor([0.25, 0.5, 0.75, 1.0]), torch.tensor([0.0, 0.0, 0.0, 0.25])
        >>> figure = risk_coverage_figure({"largest probability": curve})
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['largest probability']
    """
    if not curves:
        raise ValueError("curves must hold at least one curve, but is empty.")
    ylabel = f"{counted} per decided sample, %"
    figure, axes = canvas(3.6, title, on=on, xlabel="coverage: decided samples, %", ylabel=ylabel)
    for name, (coverage, risk), colour in coloured(curves):
        if coverage.shape != risk.shape or coverage.ndim != 1 or not len(coverage):
            shapes = f"{tuple(coverage.shape)} and {tuple(risk.shape)}"
            raise ValueError(f"curves must hold coverage and risk of one shape (N,), but {name!r} has {shapes}.")
        x, y = ([100 * value for value in values] for values in thinned(coverage, risk))
        axes.plot(x, y, color=colour, linewidth=1.5, label=literal(name))
    axes.set(xlim=(_first_shown(curves.values()), 101), ylim=(0, None))
    grid(axes)
    return legend_below(figure, on=on)


def _first_shown(curves: Iterable[tuple[Tensor, Tensor]]) -> float:
    """Return the coverage in percent from which on curves are drawn: a little before the first error of any."""
    first = min([float(coverage[risk > 0].min()) for coverage, risk in curves if bool((risk > 0).any())], default=0.0)
    return max(0.0, 100 * (first - 0.15 * (1 - first)) - 1)


POINTS, BEYOND = 400, 1.5
"""The numbers that are drawn, and the highest of them by the highest that is planned."""


def plan_figure(
    plans: Mapping[str, tuple[int, Callable[[int], float]]], *, wanted: float, unit: str = "samples", title: str = ""
) -> Figure:
    """Draw the chance to attain a limit against the number of samples to collect, for one or more rates of errors.

    Args:
        plans: The number that is planned, and the chance with any number, in [0, 1], by the name of the rate.
        wanted: The chance wanted.
        unit: What is collected.
        title: The title of the figure.

    Example:
        >>> figure = plan_figure({"0.3 % of errors": (300, lambda number: 1 - 0.1 ** (number / 300))}, wanted=0.9)
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['0.3 % of errors', 'wanted: 90 %']
    """
    figure, axes = canvas(3.0, title, xlabel=f"{unit} to collect", ylabel="chance to refer none, %")
    highest = BEYOND * max(planned for planned, _ in plans.values())
    numbers = [round(highest * place / POINTS) for place in range(1, POINTS + 1)]
    for name, (planned, chance_with), colour in coloured(plans):
        axes.plot(numbers, [100 * chance_with(n) for n in numbers], color=colour, linewidth=1.5, label=literal(name))
        axes.plot([planned] * 2, [0, 100 * wanted], color=colour, linewidth=0.9, linestyle="--")
    axes.axhline(100 * wanted, color=DARK_GREY, linewidth=0.9, linestyle=":", label=f"wanted: {100 * wanted:g} %")
    axes.set(xlim=(0, highest), ylim=(0, 101))
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:_.0f}".replace("_", " ")))
    grid(axes)
    return legend_below(figure)


MOST_NAMED = 5
"""The most names in the legend."""


def verdict_figure(
    names: Sequence[str],
    released: Tensor,
    prices: Tensor,
    cheapest: Tensor,
    is_shown: Tensor,
    *,
    now: tuple[float | None, float | None] = (None, None),
    against: str = "dangerous",
    title: str = "",
) -> Figure:
    """Draw which model, or way of deciding, is shown to cost least over a grid of costs.

    A cell is empty where the data do not show which. Both axes are logarithmic.

    Args:
        names: What is compared; the legend names what is shown to cost least in most cells.
        released: ``(X,)`` rising costs > 0 of errors that are not dangerous, relative to those that are.
        prices: ``(Y,)`` rising costs > 0 of a referral.
        cheapest: ``(Y, X)``, int64: the place in ``names`` of what costs least.
        is_shown: ``(Y, X)``, bool: whether its interval shows that.
        now: The costs of the concern, which are marked; None for one that it does not have, whose axis has a line.
        against: Which errors cost 1.
        title: The title of the figure.

    Example:
        >>> import torch
        >>> costs = torch.tensor([0.1, 1.0])
        >>> cheapest, is_shown = torch.tensor([[0, 0], [0, 1]]), torch.tensor([[True, False], [True, True]])
        >>> figure = verdict_figure(["small", "large"], costs, costs, cheapest, is_shown, now=(0.5, 0.5))
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['small', 'large', 'empty: not shown', 'this concern']
    """
    figure, axes = canvas(
        3.2, title, xlabel=f"cost of other errors ({against}: 1)", ylabel=f"cost of a referral ({against}: 1)"
    )
    columns, rows = (_edges(points) for points in (released, prices))
    places, shown = cheapest.tolist(), is_shown.tolist()
    for y, cells in enumerate(zip(places, shown, strict=True)):
        start = 0
        for (place, is_sure), run in groupby(zip(*cells, strict=True)):
            end = start + len(list(run))
            box = [columns[start], columns[end], columns[end], columns[start]], [*[rows[y]] * 2, *[rows[y + 1]] * 2]
            colour = SYSTEMS[place % len(SYSTEMS)]
            if is_sure:
                axes.fill(*box, color=colour, linewidth=0, antialiased=False)
            start = end
    axes.set(xscale="log", yscale="log", xlim=(columns[0], columns[-1]), ylim=(rows[0], rows[-1]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10, numticks=5))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    counts = cheapest[is_shown].bincount(minlength=len(names))
    most = sorted(counts.argsort(descending=True, stable=True)[:MOST_NAMED].tolist())
    handles: list[Artist] = [
        Patch(color=SYSTEMS[place % len(SYSTEMS)], label=literal(names[place])) for place in most if counts[place]
    ]
    if not is_shown.all():
        handles.append(Patch(facecolor="none", edgecolor=DARK_GREY, linewidth=0.6, label="empty: not shown"))
    if (line := _mark(axes, *now)) is not None:
        handles.append(line)
    return legend_below(figure, handles=handles)


def _edges(points: Tensor) -> list[float]:
    """Return the ends of the cells around points with equal ratios: one more than there are."""
    logs = points.log()
    half = (logs[1] - logs[0]) / 2
    return [*(logs - half).exp().tolist(), (logs[-1] + half).exp().item()]


def _mark(axes: Axes, released: float | None, price: float | None) -> Artist | None:
    """Mark the costs of the concern by a cross, or by a line where one of them is unknown."""
    if released is not None and price is not None:
        low, _ = axes.get_ylim()
        at = [released], [max(price, low)]
        axes.plot(*at, marker="X", color=WHITE, markersize=12, linestyle="none", clip_on=False)
        [cross] = axes.plot(*at, marker="X", color=BLACK, markersize=8, linestyle="none", clip_on=False)
        cross.set_label("this concern")
        return cross
    if released is not None:
        return axes.axvline(released, color=BLACK, linestyle="--", label="this concern, no referral")
    return None if price is None else axes.axhline(price, color=BLACK, linestyle="--", label="this concern")
