"""A figure of a confusion matrix that shows which errors are dangerous."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from mpcs_torch.plots.palette import BLACK, DANGEROUS, FAINT_GREY, RELEASED, WHITE
from mpcs_torch.plots.text import literal


def confusion_matrix(confusion: Tensor, released: Tensor, class_names: Sequence[str], title: str) -> Figure:
    """Draw a confusion matrix with frames around released pairs and dangerous errors in red.

    In the figure, rows are predicted classes and columns true classes, as in Fig. 5 of the MPCS paper.

    Args:
        confusion: ``(C, C)`` counts, rows **true** classes, as `functional.confusion_matrix` returns them.
        released: ``(C, C)`` bool, rows **true** classes, such as `ConcernSpec.released`.
        class_names: The names of the C classes.
        title: The title of the figure.

    Raises:
        ValueError: If the shapes do not fit the number of names.
    """
    size = len(class_names)
    if confusion.shape != (size, size) or released.shape != (size, size):
        shapes = f"{tuple(confusion.shape)} and {tuple(released.shape)}"
        raise ValueError(
            f"confusion and released must have a row and a column for each of {size} names, but have shapes {shapes}."
        )
    confusion, released = confusion.cpu(), released.cpu()
    figure = Figure(figsize=(1.0 + 0.45 * size, 1.5 + 0.45 * size), layout="constrained")
    axes = figure.add_subplot(xlabel="true class", ylabel="predicted class")
    axes.set_title(literal(title), fontsize=10)
    counts = confusion.t()
    most_errors = int(counts.clone().fill_diagonal_(0).max())
    axes.imshow(counts.numpy(), cmap="Blues", vmin=0, vmax=2 * max(most_errors, 1))  # light errors, dark diagonal
    shown = [literal(name) for name in class_names]
    axes.set_xticks(range(size), shown)
    axes.set_yticks(range(size), shown)
    for row in range(size):
        for column in range(size):
            count = int(counts[row, column])
            dangerous = row != column and not released[column, row]
            is_dark = count > most_errors
            colour = WHITE if is_dark else FAINT_GREY if count == 0 else DANGEROUS if dangerous else BLACK
            weight = "bold" if dangerous and count else "normal"
            axes.text(column, row, str(count), ha="center", va="center", fontsize=8, color=colour, weight=weight)
            if released[column, row] and row != column:
                frame = Rectangle(
                    (column - 0.46, row - 0.46), 0.92, 0.92, fill=False, edgecolor=RELEASED, linewidth=1.5
                )
                axes.add_patch(frame)
    figure.legend(
        handles=[
            Patch(fill=False, edgecolor=RELEASED, linewidth=1.5, label="released pair"),
            Patch(color=DANGEROUS, label="dangerous errors (red numbers)"),
        ],
        loc="outside lower center",
        ncols=2,
        fontsize=9,
        frameon=False,
    )
    return figure
