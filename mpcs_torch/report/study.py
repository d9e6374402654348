"""Accuracy against dangerous errors, method by method."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from mpcs_torch.paper.study import DECISION_FACTORS
from mpcs_torch.paper.study_results import Arm, Result, Study
from mpcs_torch.report.figures import ACCURACY, CROSS_ENTROPY, MPCS


def study_figure(study: Study, results: Sequence[Result]) -> Figure:
    """A point for each arm, and lines through the decision factors of the baseline and of the best loss."""
    figure = Figure(figsize=(9, 6), layout="constrained")
    axes = figure.add_subplot(xlabel="dangerous test errors (mean over seeds)", ylabel="test accuracy, %")
    for arm, colour in ((study.baseline, CROSS_ENTROPY), (study.loss, MPCS)):
        line = [study.result(Arm(arm.method, arm.learning_rate, "last", factor)) for factor in DECISION_FACTORS]
        x, y = [result.dangerous for result in line], [100 * result.accuracy for result in line]
        axes.plot(x, y, "-o", color=colour, markersize=3, linewidth=1, label=f"{arm.method}, decision factors 1 to 0.3")
    baseline = study.result(study.baseline)
    allowed = 100 * baseline.accuracy - 0.1
    axes.axhline(allowed, color="black", linewidth=0.7, linestyle=":", label="0.1 points below the baseline")
    shown = [result for result in results if result.arm.factor == 1]
    for number, result in enumerate(shown, start=1):
        axes.plot(result.dangerous, 100 * result.accuracy, "s", color=ACCURACY, markersize=6)
        axes.annotate(str(number), (result.dangerous, 100 * result.accuracy), xytext=(5, 4), textcoords="offset points")
    key = "\n".join(f"{number}  {result.arm.title}" for number, result in enumerate(shown, start=1))
    axes.text(0.01, 0.02, key, transform=axes.transAxes, fontsize=8, va="bottom")
    axes.legend(loc="upper right", fontsize=8)
    return figure
