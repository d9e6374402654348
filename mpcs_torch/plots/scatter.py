"""Points with labels that do not overlap: classes in an embedding, and the methods of the benchmark."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox
from torch import Tensor

from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import canvas, literal

STEP = 4.0
"""The step by which a label is moved, in points."""
NEAREST = sorted(((x, y) for x in range(-25, 26) for y in range(-25, 26)), key=lambda step: step[0] ** 2 + step[1] ** 2)
"""The places around a point, in steps, the nearest first."""


def label_points(axes: Axes, points: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
    """Write a label beside each point, at the nearest place where it covers no other; call this when all is drawn."""
    figure = axes.figure
    canvas = FigureCanvasAgg(figure)  # type: ignore[arg-type]  # a subfigure, which has no canvas, is not used
    canvas.draw()  # type: ignore[no-untyped-call]  # places the axes
    taken: list[Bbox] = []
    for point, label in zip(points, labels, strict=True):
        note = axes.annotate(
            label,
            point,
            xytext=(0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=style.SMALL,
            color=style.BLACK,
            bbox={
                "boxstyle": "round,pad=0.2",
                "facecolor": style.WHITE,
                "edgecolor": style.LIGHT_GREY,
                "linewidth": 0.6,
            },
        )
        taken.append(_place(note, axes, taken, canvas))


def _place(note: Annotation, axes: Axes, taken: Sequence[Bbox], canvas: FigureCanvasAgg) -> Bbox:
    pixels = canvas.figure.dpi / 72
    inside = axes.get_window_extent()
    own = note.get_window_extent(canvas.get_renderer()).padded(2 * pixels)  # type: ignore[no-untyped-call]
    for x, y in NEAREST:
        moved = own.translated(x * STEP * pixels, (y + 3) * STEP * pixels)
        is_inside = inside.x0 <= moved.x0 and moved.x1 <= inside.x1 and inside.y0 <= moved.y0 and moved.y1 <= inside.y1
        if is_inside and not any(moved.overlaps(other) for other in taken):
            note.set_position((x * STEP, (y + 3) * STEP))
            return moved
    note.set_visible(False)  # no room: better no name than two that nobody can read
    return own


MOST_CLASS_NAME = 16
"""The most characters of a name that are shown."""


def embedding_figure(embedding: Tensor, labels: Tensor, released: Tensor, class_names: Sequence[str]) -> Figure:
    """Draw samples in two dimensions, coloured by class, and a line between the medians of released classes.

    Classes without samples are left out, and names for which there is no room.
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
    names = [literal(class_names[number], MOST_CLASS_NAME) for number in middles]
    label_points(axes, [(x, y) for x, y in middles.values()], names)
    return figure
