"""Figures of confused classes: a confusion matrix that shows dangerous errors, and samples in two dimensions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap, to_rgba, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.errors import InvalidValueError
from mpcs_torch.plots import canvas as style
from mpcs_torch.plots.canvas import (
    MAX_BESIDE,
    Place,
    axes_size,
    canvas,
    legend_below,
    literal,
    shown_number,
)

LETTER_INCHES = 0.085
"""The width of a letter or digit, in inches."""
FAINTEST = 0.12
"""The opacity of the cells with the fewest errors."""
STRONGEST = 0.55
"""The opacity of the cells with the most errors."""
MAX_NUMBERED = 30
"""The maximum number of classes for which the numbers are readable in a figure."""
SQUARE = np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])
CORNER = np.array([(0.5, -0.5), (0.5, -0.18), (0.18, -0.5)])
"""The outlines of marks, seen from the middle of a cell."""
FRAME: dict[str, Any] = {"linewidth": 1.2, "linestyle": (0, (3, 2))}
"""The line of the frame around cells of released (tolerable) errors."""


def confusion_matrix(
    confusion: Tensor,
    released: Tensor | None,
    class_names: Sequence[str],
    title: str,
    *,
    costs: Tensor | None = None,
    columns: Sequence[str] = (),
    on: Place = None,
) -> Figure:
    """Draw a confusion matrix that distinguishes dangerous errors from released (tolerable) errors.

    Rows are true classes, and columns predicted classes, as in `ConcernSpec` and in scikit-learn. A dangerous error has
    a bold number and a mark in a corner of its cell. A released error has a dashed frame, but not if ``costs`` are
    given. If ``released`` is None, a matrix with more than 30 classes, or with numbers too large for the axes, becomes
    an image: the colour of a cell shows its share of the row.

    Args:
        confusion: ``(C, C)`` counts or sums of weights, rows **true** classes, from `functional.confusion_matrix`.
        released: ``(C, C)`` bool, rows **true** classes, such as `ConcernSpec.released`. None: all errors look alike.
        class_names: The names of the C classes.
        costs: ``(C, C)`` >= 0, rows **true** classes: the cost of each error. The colour of a cell then shows this
            cost times the number of errors. Default: the colour shows the number of errors.
        columns: The names of K decisions: first the C classes, then others, such as a referral. All shapes are then
            ``(C, K)``. Default: the classes.
        title: The title of the figure.
        on: The axes or the empty figure to draw on. Default: a new figure.

    Raises:
        ValueError: If a shape does not match the number of names.
    """
    size = len(class_names)
    decisions = columns or class_names
    shape = (size, len(decisions))
    for matrix in (confusion, released):
        if matrix is not None and matrix.shape != shape:
            shapes = [tuple(confusion.shape), None]
            if released is not None:
                shapes[1] = tuple(released.shape)
            raise InvalidValueError(
                "row_and_column_each", "confusion and released", shapes, number=size
            )
    digits = 1
    if size <= MAX_NUMBERED:
        digits = max(len(shown_number(count)) for count in confusion.flatten().tolist())
    inches_of_number = LETTER_INCHES * digits
    cell = max(0.36, min(0.8, 3.0 / len(decisions)), inches_of_number + 0.12)
    if isinstance(on, Axes):
        cell = min(axes_size(on)) / size
    font = min(style.SMALL, style.SMALL * (cell - 0.04) / inches_of_number)
    is_image = released is None and (size > MAX_NUMBERED or font < 5.0)  # points
    if is_image and not isinstance(on, Axes):
        cell = 4.0 / size  # inches, of a matrix without numbers
    xlabel = "decided as" if columns else "predicted"
    if is_image:
        xlabel = "predicted (dark: most of a row)"
    figure, axes = _named_grid(class_names, decisions, cell, xlabel, title, on=on)
    if is_image:
        shares = confusion / confusion.sum(dim=1, keepdim=True).clamp(min=1e-300)
        shading = LinearSegmentedColormap.from_list("shares", [style.WHITE, style.BLUE])
        axes.imshow(shares.tolist(), cmap=shading, vmin=0, vmax=1, interpolation="nearest")
        axes.spines[:].set(visible=True, color=style.GRID)
    else:
        _draw_cells(axes, confusion, released, costs, font)
    if released is not None:
        marks = _legend_marks(has_costs=costs is not None)
        legend_below(figure, 2, handles=marks, on=on)
    return figure


def _named_grid(
    class_names: Sequence[str],
    decisions: Sequence[str],
    cell: float,
    xlabel: str,
    title: str,
    *,
    on: Place,
) -> tuple[Figure, Axes]:
    """Return axes of a row for each class and a column for each decision, with their names; a cell is in inches."""
    rows = [literal(name, MAX_BESIDE) for name in class_names]
    columns = [literal(name, MAX_BESIDE) for name in decisions]
    beside = 0.5 + LETTER_INCHES * max(map(len, rows))
    every = max(1, round(0.3 / cell))  # inches between names
    widest = LETTER_INCHES * max(map(len, columns))
    is_upright = widest > cell * every - 0.08
    below = 0.5 + widest if is_upright else 0.7
    figure, axes = canvas(
        cell * len(rows) + below + 0.4,
        title,
        width=max(style.WIDTH, cell * len(columns) + beside + 0.3),
        on=on,
        xlabel=xlabel,
        ylabel="true",
    )
    axes.spines[:].set_visible(False)
    axes.set_aspect("equal")
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(rows) - 0.5, -0.5))
    degrees = 90 if is_upright else 0
    axes.set_xticks(range(0, len(columns), every), columns[::every], rotation=degrees)
    axes.set_yticks(range(0, len(rows), every), rows[::every])
    axes.tick_params(length=0, labelsize=style.SMALL if len(rows) > 6 else style.NORMAL)
    return figure, axes


def _legend_marks(*, has_costs: bool) -> list[Artist]:
    """Return the marks of dangerous errors and, by their costs or as released, of the others."""
    dangerous = Line2D(
        [], [], marker=(3, 0, 45), linestyle="", markersize=9, color=style.DANGEROUS
    )
    dangerous.set_label("dangerous error (bold)")
    if has_costs:
        strongest = to_rgba(style.DANGEROUS, STRONGEST)
        return [dangerous, Patch(facecolor=strongest, label="stronger: costs more in all")]
    label = "released pair (tolerable)"
    return [dangerous, Patch(fill=False, edgecolor=style.RELEASED, **FRAME, label=label)]


def _draw_cells(
    axes: Axes,
    confusion: Tensor,
    released: Tensor | None,
    costs: Tensor | None,
    font: float,
) -> None:
    """Draw each cell's number and colour; frames around released errors, and corners of dangerous ones."""
    counts = confusion.double().cpu().numpy()
    size, columns = counts.shape
    amounts = counts
    if costs is not None:
        amounts = counts * costs.double().cpu().numpy()
    is_wrong = ~np.eye(size, columns, dtype=bool)
    is_dangerous = np.zeros_like(is_wrong)
    if released is not None:
        is_dangerous = is_wrong & ~released.cpu().numpy()
    # Of the columns beyond the classes, coarse answers and referrals, only dangerous cells are errors.
    is_error = is_wrong.copy()
    is_error[:, size:] = is_dangerous[:, size:]
    is_framed = np.zeros_like(is_wrong)
    if released is not None and costs is None:
        is_framed = is_error & ~is_dangerous
    is_marked = is_dangerous & (counts > 0)
    colours = np.where(is_error, style.DANGEROUS, style.BLUE)
    colours[is_framed] = style.RELEASED
    colours[:, size:] = style.DARK_GREY
    wrong_classes = (amounts * is_error)[:, :size]
    largest = wrong_classes.max() if wrong_classes.any() else 1.0
    of_errors = FAINTEST + (STRONGEST - FAINTEST) * amounts / largest
    # Dangerous coarse answers may be more than the errors of any pair of classes.
    opacity = np.where(is_error, of_errors.clip(max=STRONGEST), 0.22)
    is_filled = counts != 0
    faces = to_rgba_array(list(colours[is_filled]), opacity[is_filled])
    ground = Rectangle((-0.5, -0.5), columns, size, facecolor=style.GRID, alpha=0.5)
    axes.add_patch(ground).set_linewidth(0)
    _add_patches(axes, is_filled, 0.5 * SQUARE, facecolors=faces, linewidths=0)
    frame = {"facecolors": "none", "edgecolors": style.RELEASED, **FRAME}
    _add_patches(axes, is_framed, 0.43 * SQUARE, **frame)
    _add_patches(axes, is_marked, CORNER, facecolors=style.DANGEROUS, linewidths=0)
    for (row, column), count in np.ndenumerate(counts):
        number = axes.text(column, row, shown_number(count), ha="center", va="center")
        number.set_fontsize(font)
        number.set_color(style.BLACK if count else style.FAINT_GREY)
        number.set_fontweight("bold" if is_marked[row, column] else "normal")
        # It is inside the axes, and the layout of hundreds of numbers takes seconds.
        number.set_in_layout(False)


def _add_patches(
    axes: Axes,
    cells: NDArray[np.bool_],
    outline: NDArray[np.float64],
    **look: Any,
) -> None:
    """Draw the polygon ``outline``, (K, 2), whose corners are seen from the middle of a cell, in each of ``cells``."""
    middles = np.argwhere(cells)[:, None, ::-1]  # x is the column
    axes.add_collection(PolyCollection(list(middles + outline), **look))
