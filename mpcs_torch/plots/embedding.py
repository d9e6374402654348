"""The picture that a suggestion from an embedding rests on."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.plots.palette import RELEASED, WHITE


def embedding_figure(embedding: Tensor, labels: Tensor, released: Tensor, class_names: Sequence[str]) -> Figure:
    """Draw samples in two dimensions, coloured by class, and a line between the medians of released classes.

    Classes without samples are left out.
    """
    figure = Figure(figsize=(8, 7), layout="constrained")
    axes = figure.add_subplot(xticks=[], yticks=[])
    present = sorted(set(labels.tolist()))
    middles = {number: embedding[labels == number].median(dim=0).values.tolist() for number in present}
    axes.scatter(embedding[:, 0], embedding[:, 1], c=labels, cmap="tab20", s=5, alpha=0.6, linewidths=0)
    for i, j in (released | released.t()).triu(1).nonzero().tolist():
        if i in middles and j in middles:
            (x, y), (other_x, other_y) = middles[i], middles[j]
            axes.plot([x, other_x], [y, other_y], color=RELEASED, linewidth=1.5)
    for number, (x, y) in middles.items():
        axes.text(x, y, class_names[number], ha="center", va="center", bbox={"boxstyle": "round", "facecolor": WHITE})
    axes.set_title("Lines: pairs that the suggestion releases", fontsize=10)
    return figure
