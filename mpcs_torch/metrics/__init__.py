"""torchmetrics shells over `mpcs_torch.functional`."""

from mpcs_torch.metrics.dangerous import DangerousErrors
from mpcs_torch.metrics.expected_concern import ExpectedConcern
from mpcs_torch.metrics.mpcs import MetaPatternConcernScore
from mpcs_torch.metrics.one_quality import (
    AverageAccuracy,
    BalancedErrorRate,
    ErrorRate,
    MacroFScore,
    MacroPrecision,
    MacroRecall,
    MicroFScore,
    MicroPrecision,
    MicroRecall,
    WeightedErrorRate,
)
from mpcs_torch.metrics.probability import Decisiveness, GeometricAccuracy, Robustness
from mpcs_torch.metrics.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.metrics.quality import ClassErrorRates, MulticlassQualityMetrics
from mpcs_torch.metrics.soft import (
    SoftF1,
    SoftFBeta,
    SoftKLDivergence,
    SoftPrecision,
    SoftRecall,
)

__all__ = [
    "AverageAccuracy",
    "BalancedErrorRate",
    "ClassErrorRates",
    "DangerousErrors",
    "Decisiveness",
    "ErrorRate",
    "ExpectedConcern",
    "GeometricAccuracy",
    "MacroFScore",
    "MacroPrecision",
    "MacroRecall",
    "MetaPatternConcernScore",
    "MicroFScore",
    "MicroPrecision",
    "MicroRecall",
    "MulticlassQualityMetrics",
    "ProbabilityAccuracy",
    "Robustness",
    "SoftF1",
    "SoftFBeta",
    "SoftKLDivergence",
    "SoftPrecision",
    "SoftRecall",
    "WeightedErrorRate",
]
