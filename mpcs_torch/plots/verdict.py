"""Draw what costs least over the costs of released errors and of a referral."""

from collections.abc import Sequence
from itertools import groupby

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter
from torch import Tensor

from mpcs_torch.plots.canvas import BLACK, DARK_GREY, SYSTEMS, WHITE, canvas, legend_below, literal

PALE = 0.35
"""The share of its colour that a cell keeps where nothing is shown."""
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
    """Draw which model, or way of deciding, costs least over a grid of costs.

    A cell is muted where the data do not show it. Both axes are logarithmic.

    Args:
        names: What is compared; the legend names what costs least in most cells.
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
        ['small', 'large', 'muted: not shown', 'this concern']
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
            axes.fill(*box, color=colour, alpha=1.0 if is_sure else PALE, linewidth=0, antialiased=False)
            start = end
    axes.set(xscale="log", yscale="log", xlim=(columns[0], columns[-1]), ylim=(rows[0], rows[-1]))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(10, numticks=5))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    counts = cheapest.flatten().bincount(minlength=len(names))
    most = sorted(counts.argsort(descending=True, stable=True)[:MOST_NAMED].tolist())
    handles: list[Artist] = [
        Patch(color=SYSTEMS[place % len(SYSTEMS)], label=literal(names[place])) for place in most if counts[place]
    ]
    if not is_shown.all():
        handles.append(Patch(color=DARK_GREY, alpha=PALE, label="muted: not shown"))
    if (line := _mark(axes, *now)) is not None:
        handles.append(line)
    legend_below(figure, handles=handles)
    return figure


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
