"""Values of metrics in, matplotlib figures out; nothing here touches pyplot's global state."""

from mpcs_torch.plots.confusion import confusion_matrix
from mpcs_torch.plots.reliability import reliability

__all__ = ["confusion_matrix", "reliability"]
