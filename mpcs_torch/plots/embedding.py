"""The picture that a suggestion from an embedding rests on."""

from collections.abc import Sequence

from matplotlib.figure import Figure
from torch import Tensor

from mpcs_torch.plots.canvas import canvas
from mpcs_torch.plots.labels import label_points
from mpcs_torch.plots.palette import RELEASED
from mpcs_torch.plots.text import literal

MOST_NAME = 16
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
            axes.plot([x, other_x], [y, other_y], color=RELEASED, linewidth=1.5)
    names = [literal(class_names[number], MOST_NAME) for number in middles]
    label_points(axes, [(x, y) for x, y in middles.values()], names)
    return figure
