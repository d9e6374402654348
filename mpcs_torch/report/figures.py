"""Figures, drawn on objects of their own: nothing here touches pyplot's global state."""

import io
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle
from torch import Tensor

from mpcs_torch.trainer.records import Record

ACCURACY, CROSS_ENTROPY, MPCS = "#0072b2", "#999999", "#d55e00"  # apart for colour-blind eyes as well
RELEASED, DANGEROUS = "#009e73", "#b00020"


def trends(records: Sequence[Record], marked_turns: Sequence[int]) -> Figure:
    """Accuracy, cross entropy and MPCS over the turns, the losses as shares of their highest value (as in Fig. 4)."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.add_subplot(xlabel="turn", ylim=(0, 1.02))
    turns = [record["turn"] for record in records]
    axes.plot(turns, [record["accuracy"] for record in records], color=ACCURACY, label="accuracy")
    for column, label, colour in (("cross_entropy", "cross entropy", CROSS_ENTROPY), ("mpcs", "MPCS", MPCS)):
        highest = max(record[column] for record in records) or 1.0
        shares = [record[column] / highest for record in records]
        axes.plot(turns, shares, color=colour, label=f"{label} / {highest:.3g}")
    for turn in marked_turns:
        axes.axvline(turn, color="black", linewidth=0.8, linestyle=":")
    if marked_turns:
        label = "picked: " + ", ".join(map(str, sorted(set(marked_turns))))
        axes.text(marked_turns[0], 1.03, label, transform=axes.get_xaxis_transform(), ha="center", fontsize=9)
    axes.legend(loc="center")
    return figure


def confusion_matrix(confusion: Tensor, released: Tensor, class_names: Sequence[str], title: str) -> Figure:
    """A confusion matrix as Fig. 5 draws it, rows predictions and columns labels, released pairs framed."""
    size = len(class_names)
    figure = Figure(figsize=(1.0 + 0.45 * size, 1.5 + 0.45 * size), layout="constrained")
    axes = figure.add_subplot(xlabel="true class", ylabel="predicted class")
    axes.set_title(title, fontsize=10)
    counts = confusion.t()
    most_errors = int(counts.clone().fill_diagonal_(0).max())
    axes.imshow(counts.numpy(), cmap="Blues", vmin=0, vmax=2 * max(most_errors, 1))  # errors light, the diagonal dark
    axes.set_xticks(range(size), class_names)
    axes.set_yticks(range(size), class_names)
    for row in range(size):
        for column in range(size):
            count = int(counts[row, column])
            dangerous = row != column and not released[column, row]
            colour = "white" if row == column else "#bbbbbb" if count == 0 else DANGEROUS if dangerous else "black"
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


def to_svg(figure: Figure) -> str:
    """The figure as an SVG document."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()
