"""The metrics of a run over its epochs."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from mpcs_torch.plots.palette import ACCURACY, BLACK, CROSS_ENTROPY, GREEN, MPCS, PINK, SKY

Values = Mapping[str, float]
"""The values of an epoch by column."""
METRIC_LINES = {
    "accuracy": ("accuracy", ACCURACY, "-"),
    "f1_macro": ("F1", SKY, "--"),
    "mcc": ("MCC", GREEN, ":"),
    "mean_squared_error": ("mean squared error", PINK, "--"),
    "cross_entropy": ("cross entropy", CROSS_ENTROPY, "-"),
    "mpcs_count": ("MPCS", MPCS, "-"),
}
"""Label, colour and line of each column that Figure 4 draws."""


def trends(records: Sequence[Values], marked_epochs: Sequence[int]) -> Figure:
    """Accuracy, cross entropy and MPCS over the epochs, the losses as shares of their highest value (as in Fig. 4)."""
    figure = Figure(figsize=(9, 3.4), layout="constrained")
    axes = figure.add_subplot(xlabel="epoch", ylim=(0, 1.02))
    epochs = [record["epoch"] for record in records]
    axes.plot(epochs, [record["accuracy"] for record in records], color=ACCURACY, label="accuracy")
    for column, label, colour in (("cross_entropy", "cross entropy", CROSS_ENTROPY), ("mpcs", "MPCS", MPCS)):
        highest = max(record[column] for record in records) or 1.0
        shares = [record[column] / highest for record in records]
        axes.plot(epochs, shares, color=colour, label=f"{label} / {highest:.3g}")
    for epoch in marked_epochs:
        axes.axvline(epoch, color=BLACK, linewidth=0.8, linestyle=":")
    if marked_epochs:
        label = "picked: " + ", ".join(map(str, sorted(set(marked_epochs))))
        axes.text(marked_epochs[0], 1.03, label, transform=axes.get_xaxis_transform(), ha="center", fontsize=9)
    axes.legend(loc="center")
    return figure


def figure_4(runs: Mapping[str, Sequence[Values]]) -> Figure:
    """A panel for each run: every metric over the epochs, from 0 at its lowest to 1 at its highest."""
    columns = min(5, len(runs))
    rows = -(-len(runs) // columns)
    figure = Figure(figsize=(3.2 * columns, 2.4 * rows + 0.5), layout="constrained")
    panels = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).flat)
    for axes, (name, records) in zip(panels, runs.items(), strict=False):
        axes.set_title(name, fontsize=10)
        for column, (label, colour, style) in METRIC_LINES.items():
            values = [record[column] for record in records]
            lowest, span = min(values), (max(values) - min(values)) or 1.0
            shares = [(value - lowest) / span for value in values]
            axes.plot([record["epoch"] for record in records], shares, style, color=colour, linewidth=1.2, label=label)
    for axes in panels[len(runs) :]:
        axes.set_axis_off()
    figure.supxlabel("epoch", fontsize=10)
    figure.supylabel("share of the metric's range", fontsize=10)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(labels), frameon=False)
    return figure
