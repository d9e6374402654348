"""The place and the title of the figure of a metric."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

FEW_VALUES = 3
"""The number of values that fit a title."""


@contextmanager
def drawing_on(ax: Any) -> Iterator[Any]:
    """Yield the axes, or an empty figure of pyplot, which is closed if drawing fails.

    Raises:
        ModuleNotFoundError: If matplotlib is missing.
    """
    try:
        from matplotlib import pyplot  # notebooks show its figures
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
    """Return the name and the value: one number, a few, or the mean of more."""
    if not isinstance(value, Tensor):
        return name
    if value.numel() > FEW_VALUES:
        return f"{name}, mean of {value.numel()} values {value.nanmean().item():.4g}"
    return f"{name} {', '.join(f'{each:.4g}' for each in value.flatten().tolist())}"
