"""The metrics of `mpcs_torch.functional` as `torchmetrics.Metric` classes."""

from mpcs_torch.metrics.concern.coverage import Coverage, SelectiveAccuracy
from mpcs_torch.metrics.concern.dangerous import DangerousErrors
from mpcs_torch.metrics.concern.expected_concern import ExpectedConcern
from mpcs_torch.metrics.concern.mpcs import MetaPatternConcernScore
from mpcs_torch.metrics.concern.risk_coverage_area import RiskCoverageArea
from mpcs_torch.metrics.concern.row_cost import RowCost
from mpcs_torch.metrics.detection.area import (
    FalseAlarmAtMiss,
    HMeasure,
    MissAtFalseAlarm,
    PartialAUC,
    PrecisionRecallBreakEven,
)
from mpcs_torch.metrics.detection.cost import ActualDetectionCost, HalfTotalErrorRate, MinDetectionCost
from mpcs_torch.metrics.detection.curve import DetectionCurve
from mpcs_torch.metrics.detection.equal_error_rate import EqualErrorRate
from mpcs_torch.metrics.detection.llr_cost import Cllr, MinCllr
from mpcs_torch.metrics.probability.generalized import Decisiveness, GeometricAccuracy, Robustness
from mpcs_torch.metrics.probability.probability_accuracy import ProbabilityAccuracy
from mpcs_torch.metrics.probability.scoring_rules import BrierScore, CrossEntropy
from mpcs_torch.metrics.quality.confusion import ConfusionMatrix
from mpcs_torch.metrics.quality.quality_metrics import (
    AverageAccuracy,
    BalancedErrorRate,
    ErrorRate,
    MacroFScore,
    MacroPrecision,
    MacroRecall,
    MicroFScore,
    MicroPrecision,
    MicroRecall,
    MulticlassQualityMetrics,
    WeightedErrorRate,
)
from mpcs_torch.metrics.quality.scores import Accuracy, ClassErrorRates, MacroF1, MatthewsCorrelation
from mpcs_torch.metrics.soft.divergence import SoftKLDivergence
from mpcs_torch.metrics.soft.scores import HardF1, SoftF1, SoftFBeta, SoftPrecision, SoftRecall

__all__ = [
    "Accuracy",
    "ActualDetectionCost",
    "AverageAccuracy",
    "BalancedErrorRate",
    "BrierScore",
    "ClassErrorRates",
    "Cllr",
    "ConfusionMatrix",
    "Coverage",
    "CrossEntropy",
    "DangerousErrors",
    "Decisiveness",
    "DetectionCurve",
    "EqualErrorRate",
    "ErrorRate",
    "ExpectedConcern",
    "FalseAlarmAtMiss",
    "GeometricAccuracy",
    "HMeasure",
    "HalfTotalErrorRate",
    "HardF1",
    "MacroF1",
    "MacroFScore",
    "MacroPrecision",
    "MacroRecall",
    "MatthewsCorrelation",
    "MetaPatternConcernScore",
    "MicroFScore",
    "MicroPrecision",
    "MicroRecall",
    "MinCllr",
    "MinDetectionCost",
    "MissAtFalseAlarm",
    "MulticlassQualityMetrics",
    "PartialAUC",
    "PrecisionRecallBreakEven",
    "ProbabilityAccuracy",
    "RiskCoverageArea",
    "Robustness",
    "RowCost",
    "SelectiveAccuracy",
    "SoftF1",
    "SoftFBeta",
    "SoftKLDivergence",
    "SoftPrecision",
    "SoftRecall",
    "WeightedErrorRate",
]
