"""A figure of the errors of decided samples over coverage, the share of samples that are decided."""

from collections.abc import Iterable, Mapping

from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.plots.canvas import Place, canvas, coloured, grid, legend_below, literal
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
        curves: A pair for each estimate, by name: coverage, and errors per decided sample, both ``(N,)`` floating point
            in [0, 1], in ascending order of coverage.
        counted: The errors that the curves count.
        title: The title of the figure.
        on: Where to draw.

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
    """Return the lowest coverage to draw, in percent: a little below the first error of any curve."""
    first = min([float(coverage[risk > 0].min()) for coverage, risk in curves if bool((risk > 0).any())], default=0.0)
    return max(0.0, 100 * (first - 0.15 * (1 - first)) - 1)
