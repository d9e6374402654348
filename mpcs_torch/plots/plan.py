"""The chance to attain a limit against the number of samples to collect."""

from collections.abc import Callable, Mapping

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from mpcs_torch.plots.canvas import DARK_GREY, canvas, coloured, grid, legend_below, literal

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
    legend_below(figure)
    return figure
