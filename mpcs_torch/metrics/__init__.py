"""torchmetrics shells over `mpcs_torch.functional`."""

from mpcs_torch.metrics.concern.dangerous import DangerousErrors
from mpcs_torch.metrics.concern.expected_concern import ExpectedConcern
from mpcs_torch.metrics.concern.mpcs import MetaPatternConcernScore
from mpcs_torch.metrics.detection.cost import MinDetectionCost
from mpcs_torch.metrics.detection.curve import DetectionCurve
from mpcs_torch.metrics.detection.equal_error_rate import EqualErrorRate
from mpcs_torch.metrics.detection.llr_cost import Cllr, MinCllr
from mpcs_torch.metrics.detection.threshold_cost import ActualDetectionCost, HalfTotalErrorRate
from mpcs_torch.metrics.probability.generalized import Decisiveness, GeometricAccuracy, Robustness
from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.metrics.quality.one_quality import (
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
from mpcs_torch.metrics.quality.quality_metrics import ClassErrorRates, MulticlassQualityMetrics
from mpcs_torch.metrics.soft.divergence import SoftKLDivergence
from mpcs_torch.metrics.soft.scores import (
    SoftF1,
    SoftFBeta,
    SoftPrecision,
    SoftRecall,
)

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
