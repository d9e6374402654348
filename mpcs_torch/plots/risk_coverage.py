"""Errors of decided samples against the share of samples that are decided."""

from collections.abc import Iterable, Mapping
from itertools import cycle

from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.plots.canvas import Place, canvas, coloured, grid, legend_below, literal
from mpcs_torch.plots.curves import thinned
from mpcs_torch.plots.det import MARKERS


def risk_coverage_figure(
    curves: Mapping[str, tuple[Tensor, Tensor]],
    *,
    marks: Mapping[str, tuple[float, float]] | None = None,
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
        marks: The same two numbers for single rules, by their name.
        counted: Which errors the curves count.
        title: The title of the figure.
        on: Axes to draw on, or an empty figure. Default: a new figure.

    Raises:
        ValueError: If there is no curve, or if a curve has no point or two shapes.

    References:
        Geifman, El-Yaniv: Selective classification for deep neural networks, NeurIPS 2017.

    Example:
        >>> import torch
        >>> curve = torch.tensor([0.25, 0.5, 0.75, 1.0]), torch.tensor([0.0, 0.0, 0.0, 0.25])
        >>> figure = risk_coverage_figure({"largest probability": curve}, marks={"rule": (0.75, 0.0)})
        >>> [text.get_text() for text in figure.legends[0].get_texts()]
        ['largest probability', 'rule']
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
    for (name, (coverage_at, risk_at), colour), marker in zip(coloured(marks or {}), cycle(MARKERS), strict=False):
        axes.plot(100 * coverage_at, 100 * risk_at, marker, color=colour, markersize=7, label=literal(name))
    axes.set(xlim=(_first_shown(curves.values()), 101), ylim=(0, None))
    grid(axes)
    legend_below(figure, on=on)
    return figure


def _first_shown(curves: Iterable[tuple[Tensor, Tensor]]) -> float:
    """Return the coverage in percent from which on curves are drawn: a little before the first error of any."""
    first = min([float(coverage[risk > 0].min()) for coverage, risk in curves if bool((risk > 0).any())], default=0.0)
    return max(0.0, 100 * (first - 0.15 * (1 - first)) - 1)
