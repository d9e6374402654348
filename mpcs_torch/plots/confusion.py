"""A figure of a confusion matrix that shows which errors are dangerous."""

from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Polygon, Rectangle
from torch import Tensor

from mpcs_torch.plots.canvas import NORMAL, SMALL, WIDTH, canvas, legend_below
from mpcs_torch.plots.palette import BLACK, BLUE, DANGEROUS, FAINT_GREY, GRID, RELEASED
from mpcs_torch.plots.text import literal

MOST_NAME = 20
"""The most characters of a class that are shown beside the matrix."""
LETTER = 0.085
"""The width of a letter or digit, in inches."""
FAINTEST, STRONGEST = 0.12, 0.55
"""The opacity of a cell with one error, and of that with the most: numbers stay readable on both."""
CORRECT = 0.22
"""That of a cell of correct decisions."""
FRAME: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (3, 2))}
"""Of released pairs."""


def confusion_matrix(confusion: Tensor, released: Tensor | None, class_names: Sequence[str], title: str) -> Figure:
    """Draw a confusion matrix, and tell dangerous errors from released ones by marks as well as by colour.

    Rows are true classes and columns predicted ones, as in `ConcernSpec` and in scikit-learn; Fig. 5 of the MPCS paper
    has them the other way round. A dangerous error has a bold number and a mark in a corner of its cell. Released pairs
    have a dashed frame.

    Args:
        confusion: ``(C, C)`` counts, rows **true** classes, as `functional.confusion_matrix` returns them.
        released: ``(C, C)`` bool, rows **true** classes, such as `ConcernSpec.released`. None if errors are not told
            apart.
        class_names: The names of the C classes.
        title: The title of the figure.

    Raises:
        ValueError: If the shapes do not fit the number of names.
    """
    size = len(class_names)
    if confusion.shape != (size, size) or (released is not None and released.shape != (size, size)):
        shapes = f"{tuple(confusion.shape)} and {None if released is None else tuple(released.shape)}"
        raise ValueError(
            f"confusion and released must have a row and a column for each of {size} names, but have shapes {shapes}."
        )
    names = [literal(name, MOST_NAME) for name in class_names]
    counts: list[list[int]] = confusion.tolist()
    cell = max(0.36, min(0.8, 3.0 / size), LETTER * max(len(str(count)) for row in counts for count in row) + 0.12)
    beside = 0.5 + LETTER * max(map(len, names))
    is_upright = LETTER * max(map(len, names)) > cell - 0.08
    below = beside if is_upright else 0.7
    side = cell * size
    figure, axes = canvas(
        side + below + 0.4, title, width=max(WIDTH, side + beside + 0.3), xlabel="predicted", ylabel="true", aspect=1
    )
    axes.spines[:].set_visible(False)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5))
    axes.set_xticks(range(size), names, rotation=90 if is_upright else 0)
    axes.set_yticks(range(size), names)
    axes.tick_params(length=0, labelsize=SMALL if size > 6 else NORMAL)
    _draw_cells(axes, counts, None if released is None else released.tolist())
    if released is not None:
        legend_below(figure, 2, handles=_legend())
    return figure


def _draw_cells(axes: Axes, counts: Sequence[Sequence[int]], released: Sequence[Sequence[bool]] | None) -> None:
    size = len(counts)
    cells = [(row, column) for row in range(size) for column in range(size)]
    most = max([1, *(counts[row][column] for row, column in cells if row != column)])
    squares, colours, frames, corners = list[Patch](), list[Any](), list[Patch](), list[Patch]()
    for row, column in cells:
        count, is_error = counts[row][column], row != column
        is_released = is_error and released is not None and released[row][column]
        is_marked = is_error and released is not None and not is_released and count > 0
        if count:
            squares.append(_square(column, row, 0.5))
            share = CORRECT if not is_error else FAINTEST + (STRONGEST - FAINTEST) * count / most
            colours.append(to_rgba(BLUE if not is_error else RELEASED if is_released else DANGEROUS, share))
        if is_released:
            frames.append(_square(column, row, 0.43))
        if is_marked:
            corner = [(column + 0.5, row - 0.5), (column + 0.5, row - 0.18), (column + 0.18, row - 0.5)]
            corners.append(Polygon(corner))
        number = axes.text(column, row, str(count), ha="center", va="center", fontsize=SMALL)
        number.set(color=BLACK if count else FAINT_GREY, weight="bold" if is_marked else "normal")
        number.set_in_layout(False)  # inside the axes; the layout of hundreds of numbers takes seconds
    axes.add_patch(Rectangle((-0.5, -0.5), size, size, facecolor=GRID, alpha=0.5, linewidth=0))
    axes.add_collection(PatchCollection(squares, facecolors=colours, linewidths=0))
    axes.add_collection(PatchCollection(frames, facecolors="none", edgecolors=RELEASED, **FRAME))
    axes.add_collection(PatchCollection(corners, facecolors=DANGEROUS, linewidths=0))


def _square(x: float, y: float, half: float) -> Rectangle:
    return Rectangle((x - half, y - half), 2 * half, 2 * half)


def _legend() -> list[Artist]:
    return [
        Line2D([], [], marker=(3, 0, 45), linestyle="", markersize=9, color=DANGEROUS, label="dangerous error (bold)"),
        Patch(fill=False, edgecolor=RELEASED, **FRAME, label="released pair (tolerable)"),
    ]
