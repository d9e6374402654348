"""A sample, drawn small: an image or a series."""

from typing import Literal

from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.plots.canvas import SYSTEMS

SIDE = 1.4
"""Inches."""
FEWEST_STEPS = 8
"""Shorter rows of numbers are features, not a series."""
MOST_CHANNELS = 8
"""Of a series."""


def kind_of_sample(shape: tuple[int, ...]) -> Literal["image", "series"] | None:
    """Tell how a sample can be drawn: an image (1 or 3, H, W) or (H, H), a series (steps, channels), or not at all."""
    if len(shape) == 3 and shape[0] in (1, 3):
        return "image"
    if len(shape) == 2 and shape[0] >= FEWEST_STEPS:
        return "image" if shape[0] == shape[1] else "series" if shape[1] <= MOST_CHANNELS else None
    return None


def sample_figure(sample: Tensor) -> Figure:
    """Draw an image, or the channels of a series as lines, without texts.

    Raises:
        ValueError: If the sample has no shape that `kind_of_sample` knows.
    """
    kind = kind_of_sample(tuple(sample.shape))
    if kind is None:
        raise ValueError(f"sample must be an image or a series, but has the shape {tuple(sample.shape)}.")
    if kind == "series":
        figure = Figure(figsize=(1.5 * SIDE, SIDE))
        axes = figure.add_axes((0.02, 0.04, 0.96, 0.92))
        for number, channel in enumerate(sample.t().tolist()):
            axes.plot(channel, color=SYSTEMS[number % len(SYSTEMS)], linewidth=1.2)
    else:
        figure = Figure(figsize=(SIDE, SIDE))
        axes = figure.add_axes((0, 0, 1, 1))
        low, high = sample.min(), sample.max()
        scaled = (sample - low) / (high - low).clamp(min=1e-12)
        pixels = scaled.permute(1, 2, 0) if scaled.ndim == 3 and len(scaled) == 3 else scaled.reshape(scaled.shape[-2:])
        axes.imshow(pixels.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    return figure
