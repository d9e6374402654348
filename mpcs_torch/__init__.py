"""Evaluate and train PyTorch classifiers whose errors are not equally bad.

The metrics are torchmetrics: create one, `update` it with each batch, `compute` it. What an error costs is a
`ConcernSpec`. The functions under `mpcs_torch.functional` do the same without state.
"""

from mpcs_torch import functional
from mpcs_torch.concern import ConcernError, ConcernSpec, load_concern
from mpcs_torch.functional import OperatingPoint
from mpcs_torch.metrics import (
    DangerousErrors,
    EqualErrorRate,
    ExpectedConcern,
    MetaPatternConcernScore,
    MinDetectionCost,
    MulticlassQualityMetrics,
    ProbabilityAccuracy,
    SoftF1,
)

__all__ = [
    "ConcernError",
    "ConcernSpec",
    "DangerousErrors",
    "EqualErrorRate",
    "ExpectedConcern",
    "MetaPatternConcernScore",
    "MinDetectionCost",
    "MulticlassQualityMetrics",
    "OperatingPoint",
    "ProbabilityAccuracy",
    "SoftF1",
    "functional",
    "load_concern",
]
