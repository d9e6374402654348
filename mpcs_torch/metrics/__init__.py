"""torchmetrics shells over `mpcs_torch.functional`."""

from mpcs_torch.metrics.dangerous import DangerousErrors
from mpcs_torch.metrics.expected_concern import ExpectedConcern
from mpcs_torch.metrics.mpcs import MetaPatternConcernScore

__all__ = ["DangerousErrors", "ExpectedConcern", "MetaPatternConcernScore"]
