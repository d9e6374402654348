"""Thumbnails of samples, and points with labels that do not overlap."""

from collections.abc import Sequence
from typing import Any, Literal

from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from torch import Tensor

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import canvas, literal

SIDE = 1.4
"""The height of a thumbnail, in inches."""


def kind_of_sample(shape: tuple[int, ...]) -> Literal["image", "series"] | None:
    """Return "image" for a shape (1 or 3, H, W) or (H, H), "series" for (steps, channels), and None for others."""
    if len(shape) == 3 and shape[0] in (1, 3):
        return "image"
    if len(shape) == 2 and shape[0] >= 8:  # shorter rows of numbers are features, not a series
        return "image" if shape[0] == shape[1] else "series" if shape[1] <= 8 else None
    return None


def sample_figure(sample: Tensor) -> Figure:
    """Draw a sample, by its `kind_of_sample`, as an image or as lines for the channels of a series, without texts."""
    if kind_of_sample(tuple(sample.shape)) == "series":
        figure = Figure(figsize=(1.5 * SIDE, SIDE))
        axes = figure.add_axes((0.02, 0.04, 0.96, 0.92))
        for number, channel in enumerate(sample.t().tolist()):
            axes.plot(channel, color=style.SYSTEMS[number % len(style.SYSTEMS)], linewidth=1.2)
    else:
        figure = Figure(figsize=(SIDE, SIDE))
        axes = figure.add_axes((0, 0, 1, 1))
        low, high = sample.min(), sample.max()
        scaled = (sample - low) / (high - low).clamp(min=1e-12)
        pixels = scaled.permute(1, 2, 0) if scaled.ndim == 3 and len(scaled) == 3 else scaled.reshape(scaled.shape[-2:])
        axes.imshow(pixels.numpy(), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    return figure


STEP = 4.0
"""The size of the steps by which a label is moved, in points."""
NEAREST = sorted(((x, y) for x in range(-25, 26) for y in range(-25, 26)), key=lambda step: step[0] ** 2 + step[1] ** 2)
"""The possible offsets of a label from its point, in steps, nearest first."""


def label_points(axes: Axes, points: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
    """Write a label beside each point, at the nearest place where it covers no other label. Call this last."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # imported here, because no report page needs Agg

    drawn = FigureCanvasAgg(axes.figure)  # type: ignore[arg-type]  # a subfigure, which has no canvas, is not used
    drawn.draw()  # type: ignore[no-untyped-call]  # places the axes
    renderer = drawn.get_renderer()  # type: ignore[no-untyped-call]
    taken: list[Bbox] = []
    box = {"boxstyle": "round,pad=0.2", "facecolor": style.WHITE, "edgecolor": style.LIGHT_GREY, "linewidth": 0.6}
    look: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": style.BLACK, "bbox": box}
    for point, label in zip(points, labels, strict=True):
        note = axes.annotate(label, point, xytext=(0, 0), textcoords="offset points", **look)
        taken.append(_place(note, axes, taken, renderer))


def _place(note: Annotation, axes: Axes, taken: Sequence[Bbox], renderer: RendererBase) -> Bbox:
    pixels = axes.figure.dpi / 72
    inside = axes.get_window_extent()
    own = note.get_window_extent(renderer).padded(2 * pixels)
    for x, y in NEAREST:
        moved = own.translated(x * STEP * pixels, (y + 3) * STEP * pixels)
        is_inside = inside.x0 <= moved.x0 and moved.x1 <= inside.x1 and inside.y0 <= moved.y0 and moved.y1 <= inside.y1
        if is_inside and not any(moved.overlaps(other) for other in taken):
            note.set_position((x * STEP, (y + 3) * STEP))
            return moved
    note.set_visible(False)  # no room: better no name than two that nobody can read
    return own


def embedding_figure(embedding: Tensor, labels: Tensor, released: Tensor, class_names: Sequence[str]) -> Figure:
    """Draw samples in two dimensions, coloured by class, and a line between the medians of released classes.

    Classes without samples are left out, as are names for which there is no room.
    """
    figure, axes = canvas(7, "Lines: pairs that the suggestion releases", width=8, xticks=[], yticks=[])
    axes.spines[:].set_visible(True)
    present = sorted(set(labels.tolist()))
    middles = {number: embedding[labels == number].median(dim=0).values.tolist() for number in present}
    axes.scatter(embedding[:, 0], embedding[:, 1], c=labels, cmap="tab20", s=5, alpha=0.6, linewidths=0)
    for i, j in (released | released.t()).triu(1).nonzero().tolist():
        if i in middles and j in middles:
            (x, y), (other_x, other_y) = middles[i], middles[j]
            axes.plot([x, other_x], [y, other_y], color=style.RELEASED, linewidth=1.5)
    names = [literal(class_names[number], 16) for number in middles]  # characters
    label_points(axes, [(x, y) for x, y in middles.values()], names)
    return figure
