"""The metrics of `mpcs_torch.functional` as `torchmetrics.Metric` classes.

Names are imported on first use, because torchmetrics takes seconds to import.
"""

from typing import TYPE_CHECKING

from mpcs_torch.concern import weights_only as _weights_only  # noqa: F401  # registers concerns with torch.load
from mpcs_torch.public_names import lazy_names

if TYPE_CHECKING:
    from mpcs_torch.metrics.concern.coverage import Coverage as Coverage
    from mpcs_torch.metrics.concern.coverage import (
        GeneralizedRiskCoverageArea as GeneralizedRiskCoverageArea,
    )
    from mpcs_torch.metrics.concern.coverage import RiskAtCoverage as RiskAtCoverage
    from mpcs_torch.metrics.concern.coverage import RiskCoverageArea as RiskCoverageArea
    from mpcs_torch.metrics.concern.coverage import SelectiveAccuracy as SelectiveAccuracy
    from mpcs_torch.metrics.concern.dangerous import DangerousErrors as DangerousErrors
    from mpcs_torch.metrics.concern.expected_concern import (
        ExpectedConcern as ExpectedConcern,
    )
    from mpcs_torch.metrics.concern.expected_concern import MeanSeverity as MeanSeverity
    from mpcs_torch.metrics.concern.expected_concern import RowCost as RowCost
    from mpcs_torch.metrics.concern.mpcs import (
        MetaPatternConcernScore as MetaPatternConcernScore,
    )
    from mpcs_torch.metrics.concern.net_benefit import NetBenefit as NetBenefit
    from mpcs_torch.metrics.concern.risk_gap import RiskGap as RiskGap
    from mpcs_torch.metrics.detection.area import FalseAlarmAtMiss as FalseAlarmAtMiss
    from mpcs_torch.metrics.detection.area import HMeasure as HMeasure
    from mpcs_torch.metrics.detection.area import MissAtFalseAlarm as MissAtFalseAlarm
    from mpcs_torch.metrics.detection.area import PartialAUC as PartialAUC
    from mpcs_torch.metrics.detection.area import (
        PrecisionRecallBreakEven as PrecisionRecallBreakEven,
    )
    from mpcs_torch.metrics.detection.cost import ActualDetectionCost as ActualDetectionCost
    from mpcs_torch.metrics.detection.cost import HalfTotalErrorRate as HalfTotalErrorRate
    from mpcs_torch.metrics.detection.cost import MinDetectionCost as MinDetectionCost
    from mpcs_torch.metrics.detection.curve import DetectionCurve as DetectionCurve
    from mpcs_torch.metrics.detection.equal_error_rate import (
        EqualErrorRate as EqualErrorRate,
    )
    from mpcs_torch.metrics.detection.llr_cost import Cllr as Cllr
    from mpcs_torch.metrics.detection.llr_cost import MinCllr as MinCllr
    from mpcs_torch.metrics.probability.probability_accuracy import (
        ProbabilityAccuracy as ProbabilityAccuracy,
    )
    from mpcs_torch.metrics.probability.scores import BrierScore as BrierScore
    from mpcs_torch.metrics.probability.scores import CrossEntropy as CrossEntropy
    from mpcs_torch.metrics.probability.scores import Decisiveness as Decisiveness
    from mpcs_torch.metrics.probability.scores import GeometricAccuracy as GeometricAccuracy
    from mpcs_torch.metrics.probability.scores import Overconfidence as Overconfidence
    from mpcs_torch.metrics.probability.scores import Robustness as Robustness
    from mpcs_torch.metrics.quality.scores import Accuracy as Accuracy
    from mpcs_torch.metrics.quality.scores import AverageAccuracy as AverageAccuracy
    from mpcs_torch.metrics.quality.scores import BalancedErrorRate as BalancedErrorRate
    from mpcs_torch.metrics.quality.scores import ClassErrorRates as ClassErrorRates
    from mpcs_torch.metrics.quality.scores import ConfusionMatrix as ConfusionMatrix
    from mpcs_torch.metrics.quality.scores import ErrorRate as ErrorRate
    from mpcs_torch.metrics.quality.scores import MacroF1 as MacroF1
    from mpcs_torch.metrics.quality.scores import MacroFScore as MacroFScore
    from mpcs_torch.metrics.quality.scores import MacroPrecision as MacroPrecision
    from mpcs_torch.metrics.quality.scores import MacroRecall as MacroRecall
    from mpcs_torch.metrics.quality.scores import MatthewsCorrelation as MatthewsCorrelation
    from mpcs_torch.metrics.quality.scores import MicroFScore as MicroFScore
    from mpcs_torch.metrics.quality.scores import MicroPrecision as MicroPrecision
    from mpcs_torch.metrics.quality.scores import MicroRecall as MicroRecall
    from mpcs_torch.metrics.quality.scores import (
        MulticlassQualityMetrics as MulticlassQualityMetrics,
    )
    from mpcs_torch.metrics.quality.scores import WeightedErrorRate as WeightedErrorRate
    from mpcs_torch.metrics.soft.scores import HardF1 as HardF1
    from mpcs_torch.metrics.soft.scores import SoftF1 as SoftF1
    from mpcs_torch.metrics.soft.scores import SoftFBeta as SoftFBeta
    from mpcs_torch.metrics.soft.scores import SoftKLDivergence as SoftKLDivergence
    from mpcs_torch.metrics.soft.scores import SoftPrecision as SoftPrecision
    from mpcs_torch.metrics.soft.scores import SoftRecall as SoftRecall

_NAMES = {
    "concern.coverage": (
        "Coverage",
        "GeneralizedRiskCoverageArea",
        "RiskAtCoverage",
        "RiskCoverageArea",
        "SelectiveAccuracy",
    ),
    "concern.dangerous": ("DangerousErrors",),
    "concern.expected_concern": ("ExpectedConcern", "MeanSeverity", "RowCost"),
    "concern.mpcs": ("MetaPatternConcernScore",),
    "concern.net_benefit": ("NetBenefit",),
    "concern.risk_gap": ("RiskGap",),
    "detection.area": (
        "FalseAlarmAtMiss",
        "HMeasure",
        "MissAtFalseAlarm",
        "PartialAUC",
        "PrecisionRecallBreakEven",
    ),
    "detection.cost": ("ActualDetectionCost", "HalfTotalErrorRate", "MinDetectionCost"),
    "detection.curve": ("DetectionCurve",),
    "detection.equal_error_rate": ("EqualErrorRate",),
    "detection.llr_cost": ("Cllr", "MinCllr"),
    "probability.probability_accuracy": ("ProbabilityAccuracy",),
    "probability.scores": (
        "BrierScore",
        "CrossEntropy",
        "Decisiveness",
        "GeometricAccuracy",
        "Overconfidence",
        "Robustness",
    ),
    "quality.scores": (
        "Accuracy",
        "AverageAccuracy",
        "BalancedErrorRate",
        "ClassErrorRates",
        "ConfusionMatrix",
        "ErrorRate",
        "MacroF1",
        "MacroFScore",
        "MacroPrecision",
        "MacroRecall",
        "MatthewsCorrelation",
        "MicroFScore",
        "MicroPrecision",
        "MicroRecall",
        "MulticlassQualityMetrics",
        "WeightedErrorRate",
    ),
    "soft.scores": (
        "HardF1",
        "SoftF1",
        "SoftFBeta",
        "SoftKLDivergence",
        "SoftPrecision",
        "SoftRecall",
    ),
}
"""The public names by module."""

if not TYPE_CHECKING:
    __getattr__, __dir__, __all__ = lazy_names(__name__, _NAMES)
