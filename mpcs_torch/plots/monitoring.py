"""Draw the means of monitors with their intervals against their limits."""

from collections.abc import Sequence
from math import isfinite
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, PercentFormatter

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import Place, canvas, grid, legend_below, lines


class MonitoredMean(NamedTuple):
    """A mean that is monitored."""

    name: str
    rate: float
    low: float
    high: float
    evidence: float
    """The evidence that the mean is beyond a limit."""
    lowest: float
    """The lowest acceptable mean; 0 for none."""
    highest: float
    """The highest acceptable mean; infinite for none."""
    samples: float
    """The sum of the weights of the samples."""
    scale: float
    """The loss that a value of 1 stands for."""
    is_alarm: bool

    @property
    def is_share(self) -> bool:
        """Whether the mean is a share of samples rather than a mean cost in the unit of the concern."""
        return not self.name.startswith("cost of ")


def watched_means(means: Sequence[MonitoredMean], title: str = "", *, on: Place = None) -> Figure:
    """Draw each mean, at least one, with its interval and its limits, one below the other."""
    figure, axes = canvas(1.1 + 0.32 * len(means), title, on=on, xlabel="mean, with its interval at any time")
    for place, mean in enumerate(means):
        colour = style.RED if mean.is_alarm else style.BLUE
        label = "alarm" if mean.is_alarm else "no alarm"
        axes.plot([mean.low, mean.high], [place, place], color=colour, linewidth=2)
        if isfinite(mean.rate):
            axes.plot([mean.rate], [place], style.MARKERS[2 if mean.is_alarm else 0], color=colour, label=label)
        for limit in [mean.lowest] * (mean.lowest > 0) + [mean.highest] * isfinite(mean.highest):
            axes.plot([limit] * 2, [place - 0.38, place + 0.38], color=style.BLACK, linewidth=2, label="limit")
    seen = [end for mean in means for end in (mean.high, mean.highest) if isfinite(end)]
    axes.set(xlim=(0, 1.05 * max(seen)), ylim=(len(means) - 0.4, -0.6))
    axes.set_yticks(range(len(means)), [lines(mean.name, 24, 2) for mean in means])
    axes.xaxis.set_major_locator(MaxNLocator(4))
    if all(mean.is_share for mean in means):
        axes.xaxis.set_major_formatter(PercentFormatter(1))
    grid(axes, "x")
    handles = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    return legend_below(figure, handles=list(handles.values()), on=on)
