"""Pictures of samples."""

from collections.abc import Mapping
from typing import Literal

from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import WIDTH

COLUMNS = 3


def kind_of_sample(shape: tuple[int, ...]) -> Literal["image", "series"] | None:
    """Return "image" for a shape (1 or 3, H, W) or (H, H), "series" for (steps, channels), and None for others."""
    if len(shape) == 3 and shape[0] in (1, 3):
        return "image"
    # Shorter rows of numbers are features, not a series.
    if len(shape) != 2 or shape[0] < 8:
        return None
    if shape[0] == shape[1]:
        return "image"
    return "series" if shape[1] <= 8 else None


def samples_figure(samples: Mapping[str, Tensor]) -> Figure:
    """Draw samples of equal shape, by title: an image as a picture, a series as a line for each channel."""
    rows = -(-len(samples) // COLUMNS)
    figure = Figure(figsize=(WIDTH, 1.9 * rows), layout="constrained")
    for place, (title, sample) in enumerate(samples.items(), start=1):
        axes = figure.add_subplot(rows, COLUMNS, place)
        axes.set_title(style.lines(title, 22), fontsize=style.SMALL)
        axes.set_axis_off()
        if kind_of_sample(tuple(sample.shape)) == "series":
            axes.set_prop_cycle(color=style.SYSTEMS)
            axes.plot(sample.numpy(), linewidth=1.2)
            continue
        pixels = sample.squeeze(0)
        if pixels.ndim == 3:  # matplotlib scales grey values alone
            low, high = sample.min(), sample.max()
            pixels = ((sample - low) / (high - low).clamp(min=1e-12)).permute(1, 2, 0)
        axes.imshow(pixels.numpy(), cmap="gray", interpolation="nearest")
    return figure
