"""Values of metrics in, matplotlib figures out; nothing here touches pyplot's global state.

A function that takes ``on`` draws on axes of the caller, or fills an empty figure; by default it makes a new one.
"""

from mpcs_torch.plots.confusion import confusion_matrix
from mpcs_torch.plots.decisions import risk_coverage_figure
from mpcs_torch.plots.detection import bayes_error_curves, det_curves, roc_curves, score_histograms
from mpcs_torch.plots.reliability import reliability

__all__ = [
    "bayes_error_curves",
    "confusion_matrix",
    "det_curves",
    "reliability",
    "risk_coverage_figure",
    "roc_curves",
    "score_histograms",
]
