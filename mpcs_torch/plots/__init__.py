"""Values of metrics in, matplotlib figures out; nothing here touches pyplot's global state."""

from mpcs_torch.plots.confusion import confusion_matrix
from mpcs_torch.plots.curves import score_histograms
from mpcs_torch.plots.det import bayes_error_curves, det_curves
from mpcs_torch.plots.plan import plan_figure
from mpcs_torch.plots.reliability import mean_curves, reliability
from mpcs_torch.plots.risk_coverage import risk_coverage_figure
from mpcs_torch.plots.roc import roc_curves, roc_with_hull
from mpcs_torch.plots.verdict import verdict_figure

__all__ = [
    "bayes_error_curves",
    "confusion_matrix",
    "det_curves",
    "mean_curves",
    "plan_figure",
    "reliability",
    "risk_coverage_figure",
    "roc_curves",
    "roc_with_hull",
    "score_histograms",
    "verdict_figure",
]
