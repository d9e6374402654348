"""A confusion matrix that shows which errors matter."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from mpcs_torch.plots.palette import BLACK, DANGEROUS, FAINT_GREY, RELEASED, WHITE
from mpcs_torch.plots.text import literal


def confusion_matrix(confusion: Tensor, released: Tensor, class_names: Sequence[str], title: str) -> Figure:
    """Draw a confusion matrix with its released pairs framed, and dangerous errors in red.

    Rows are predictions and columns labels, as in Fig. 5 of the MPCS paper.

    Args:
        confusion: ``(C, C)`` integer counts, rows **true** classes, as `functional.confusion_matrix` gives them.
        released: ``(C, C)`` bool, such as `ConcernSpec.released`.
        class_names: C names.
        title: What stands above.
    """
    size = len(class_names)
    if confusion.shape != (size, size) or released.shape != (size, size):
        shapes = f"{tuple(confusion.shape)} and {tuple(released.shape)}"
        raise ValueError(
            f"confusion and released must have a row and a column for each of {size} names, but have {shapes}."
        )
    confusion, released = confusion.cpu(), released.cpu()
    figure = Figure(figsize=(1.0 + 0.45 * size, 1.5 + 0.45 * size), layout="constrained")
    axes = figure.add_subplot(xlabel="true class", ylabel="predicted class")
    axes.set_title(literal(title), fontsize=10)
    counts = confusion.t()
    most_errors = int(counts.clone().fill_diagonal_(0).max())
    axes.imshow(counts.numpy(), cmap="Blues", vmin=0, vmax=2 * max(most_errors, 1))  # errors light, the diagonal dark
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
