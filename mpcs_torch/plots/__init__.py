"""Functions that draw values of metrics as matplotlib figures, without use of pyplot's global state.

The argument ``on`` is where to draw: axes of the caller, or an empty figure to fill. Default: a new figure.
"""

from mpcs_torch.plots.confusion import confusion_matrix
from mpcs_torch.plots.decisions import reliability, risk_coverage_figure
from mpcs_torch.plots.detection import (
    bayes_error_curves,
    det_curves,
    roc_curves,
    score_histograms,
)

__all__ = [
    "bayes_error_curves",
    "confusion_matrix",
    "det_curves",
    "reliability",
    "risk_coverage_figure",
    "roc_curves",
    "score_histograms",
]
