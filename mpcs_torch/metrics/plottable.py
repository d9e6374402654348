"""PlottableMetric: the `plot` method of all Metrics."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch import Tensor
from torchmetrics import Metric


class PlottableMetric(Metric):
    """A metric that draws a figure of its samples, or of values that are passed, as torchmetrics does."""

    plot_lower_bound: float | None = 0.0

    @abstractmethod
    def gathered(self) -> AbstractContextManager[None]:
        """Return a context in which the states are those of all processes."""

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Draw the figure of all samples so far, or of values that are passed.

        In a distributed run, call it in all processes, because it gathers their states.

        Args:
            val: A value that `compute` or `forward` returned, or a list of them, one for each step. Default: the
                figure of the samples, such as a curve or a confusion matrix.
            ax: Axes to draw on; the rest of their figure is unchanged. Default: a new figure of pyplot.

        Returns:
            The figure and the axes.

        Raises:
            ModuleNotFoundError: If matplotlib is missing.
            ValueError: In the same cases as `compute`.
        """
        if val is not None:
            return self._plot(val, ax)
        value = self.compute()
        with self.gathered(), drawing_on(ax) as on:
            figure = self._draw(titled(type(self).__name__, value), value, on)
        return figure, figure.axes[0] if ax is None else ax

    def _draw(self, title: str, value: Any, on: Any) -> Any:
        """Draw the samples so far and their value on ``on``, which is axes or an empty figure; return the figure."""
        from mpcs_torch.plots.bars import value_scale

        better = "higher is better" if self.higher_is_better else "lower is better"
        return value_scale(value.item(), self._references(), title, xlabel=better, on=on)

    def _references(self) -> dict[str, float]:
        """Return values to compare with in the figure, by name."""
        return {"perfect": 1.0 if self.higher_is_better else 0.0}


@contextmanager
def drawing_on(ax: Any) -> Iterator[Any]:
    """Yield ``ax``, or if it is None a new figure of pyplot, which is closed if drawing fails."""
    try:
        from matplotlib import pyplot  # notebooks show the figures of pyplot
    except ModuleNotFoundError:
        raise ModuleNotFoundError("plot needs matplotlib: pip install 'mpcs_torch[plot]'") from None
    if ax is not None:
        yield ax
        return
    figure = pyplot.figure(layout="constrained")
    try:
        yield figure
    except BaseException:
        pyplot.close(figure)
        raise


def titled(name: str, value: Any) -> str:
    """Return a title with the name and the value: up to three numbers, or the mean if there are more."""
    if not isinstance(value, Tensor):
        return name
    if value.numel() > 3:  # they do not fit in a title
        return f"{name}, mean of {value.numel()} values {value.nanmean().item():.4g}"
    return f"{name} {', '.join(f'{number:.4g}' for number in value.flatten().tolist())}"
