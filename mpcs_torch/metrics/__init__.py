"""torchmetrics shells over `mpcs_torch.functional`."""

from mpcs_torch.metrics.dangerous import DangerousErrors
from mpcs_torch.metrics.detection_cost import MinDetectionCost
from mpcs_torch.metrics.detection_curve import DetectionCurve
from mpcs_torch.metrics.equal_error_rate import EqualErrorRate
from mpcs_torch.metrics.expected_concern import ExpectedConcern
from mpcs_torch.metrics.llr_cost import Cllr, MinCllr
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
from mpcs_torch.metrics.threshold_cost import ActualDetectionCost, HalfTotalErrorRate

__all__ = [
    "ActualDetectionCost",
    "AverageAccuracy",
    "BalancedErrorRate",
    "ClassErrorRates",
    "Cllr",
    "DangerousErrors",
    "Decisiveness",
    "DetectionCurve",
    "EqualErrorRate",
    "ErrorRate",
    "ExpectedConcern",
    "GeometricAccuracy",
    "HalfTotalErrorRate",
    "MacroFScore",
    "MacroPrecision",
    "MacroRecall",
    "MetaPatternConcernScore",
    "MicroFScore",
    "MicroPrecision",
    "MicroRecall",
    "MinCllr",
    "MinDetectionCost",
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
