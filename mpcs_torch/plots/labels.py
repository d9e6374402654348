"""Labels of points, moved apart where they would lie over each other."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from mpcs_torch.plots.canvas import SMALL
from mpcs_torch.plots.palette import BLACK, LIGHT_GREY, WHITE

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
            fontsize=SMALL,
            color=BLACK,
            bbox={"boxstyle": "round,pad=0.2", "facecolor": WHITE, "edgecolor": LIGHT_GREY, "linewidth": 0.6},
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
