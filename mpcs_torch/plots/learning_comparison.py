"""Fig. 6 of the paper: two runs side by side."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots.palette import CROSS_ENTROPY, MPCS
from mpcs_torch.plots.trends import Values


def figure_6(plain: Sequence[Values], with_mpcs: Sequence[Values]) -> Figure:
    """The four panels of Fig. 6: accuracies, MPCS and dangerous errors over the epochs of both runs."""
    figure = Figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(2, 2, sharex=True).flat
    titles = {
        "accuracy": "training accuracy",
        "test_accuracy": "test accuracy",
        "mpcs_count": "MPCS (training set)",
        "dangerous": "dangerous errors (training set)",
    }
    for axes, (column, title) in zip(panels, titles.items(), strict=True):
        axes.set_title(title, fontsize=10)
        for records, label, colour in ((plain, "plain", CROSS_ENTROPY), (with_mpcs, "loss times MPCS", MPCS)):
            epochs = [record["epoch"] for record in records]
            axes.plot(epochs, [record[column] for record in records], color=colour, linewidth=1.1, label=label)
    figure.axes[0].legend(loc="lower right")
    figure.supxlabel("epoch", fontsize=10)
    return figure
