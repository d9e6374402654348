"""The metrics, losses and decisions as functions of tensors, without state."""

from typing import TYPE_CHECKING

from mpcs_torch.functional.comparison.confidence_intervals import (
    JackknifeInterval as JackknifeInterval,
)
from mpcs_torch.functional.comparison.confidence_intervals import (
    bounded_mean_interval as bounded_mean_interval,
)
from mpcs_torch.functional.comparison.confidence_intervals import (
    clopper_pearson as clopper_pearson,
)
from mpcs_torch.functional.comparison.confidence_intervals import (
    jackknife_interval as jackknife_interval,
)
from mpcs_torch.functional.comparison.means import AuditedMean as AuditedMean
from mpcs_torch.functional.comparison.means import audited_mean as audited_mean
from mpcs_torch.functional.comparison.sequential import AnytimeInterval as AnytimeInterval
from mpcs_torch.functional.comparison.sequential import anytime_evidence as anytime_evidence
from mpcs_torch.functional.comparison.sequential import anytime_interval as anytime_interval
from mpcs_torch.functional.comparison.sequential import (
    e_benjamini_hochberg as e_benjamini_hochberg,
)
from mpcs_torch.functional.comparison.sequential import labels_to_alarm as labels_to_alarm
from mpcs_torch.functional.comparison.significance import Comparison as Comparison
from mpcs_torch.functional.comparison.significance import (
    PairedDifference as PairedDifference,
)
from mpcs_torch.functional.comparison.significance import holm_adjusted as holm_adjusted
from mpcs_torch.functional.comparison.significance import sign_flip_test as sign_flip_test
from mpcs_torch.functional.comparison.significance import (
    summarize_comparisons as summarize_comparisons,
)
from mpcs_torch.functional.concern.coverage import RiskCoverage as RiskCoverage
from mpcs_torch.functional.concern.coverage import coverage as coverage
from mpcs_torch.functional.concern.coverage import (
    generalized_risk_coverage_area as generalized_risk_coverage_area,
)
from mpcs_torch.functional.concern.coverage import risk_at_coverage as risk_at_coverage
from mpcs_torch.functional.concern.coverage import risk_coverage_area as risk_coverage_area
from mpcs_torch.functional.concern.coverage import (
    risk_coverage_curve as risk_coverage_curve,
)
from mpcs_torch.functional.concern.coverage import selective_accuracy as selective_accuracy
from mpcs_torch.functional.concern.dangerous import (
    DangerousErrorCounts as DangerousErrorCounts,
)
from mpcs_torch.functional.concern.dangerous import dangerous_errors as dangerous_errors
from mpcs_torch.functional.concern.decision import (
    least_concern_decision as least_concern_decision,
)
from mpcs_torch.functional.concern.decision import shift_priors as shift_priors
from mpcs_torch.functional.concern.expected_concern import (
    expected_concern as expected_concern,
)
from mpcs_torch.functional.concern.expected_concern import (
    mean_cost_range as mean_cost_range,
)
from mpcs_torch.functional.concern.expected_concern import mean_severity as mean_severity
from mpcs_torch.functional.concern.expected_concern import row_cost as row_cost
from mpcs_torch.functional.concern.mpcs import concession_intervals as concession_intervals
from mpcs_torch.functional.concern.mpcs import (
    meta_pattern_concern_score as meta_pattern_concern_score,
)
from mpcs_torch.functional.concern.net_benefit import net_benefit as net_benefit
from mpcs_torch.functional.concern.risk_gap import risk_gap as risk_gap
from mpcs_torch.functional.detection.area import false_alarm_at_miss as false_alarm_at_miss
from mpcs_torch.functional.detection.area import h_measure as h_measure
from mpcs_torch.functional.detection.area import miss_at_false_alarm as miss_at_false_alarm
from mpcs_torch.functional.detection.area import partial_auc as partial_auc
from mpcs_torch.functional.detection.area import (
    precision_recall_break_even as precision_recall_break_even,
)
from mpcs_torch.functional.detection.cost import DetectionCost as DetectionCost
from mpcs_torch.functional.detection.cost import OperatingPoint as OperatingPoint
from mpcs_torch.functional.detection.cost import (
    actual_detection_cost as actual_detection_cost,
)
from mpcs_torch.functional.detection.cost import (
    half_total_error_rate as half_total_error_rate,
)
from mpcs_torch.functional.detection.cost import min_detection_cost as min_detection_cost
from mpcs_torch.functional.detection.curve import DetectionSummary as DetectionSummary
from mpcs_torch.functional.detection.curve import detection_curve as detection_curve
from mpcs_torch.functional.detection.equal_error_rate import EqualError as EqualError
from mpcs_torch.functional.detection.equal_error_rate import (
    equal_error_rate as equal_error_rate,
)
from mpcs_torch.functional.detection.errors import ErrorRates as ErrorRates
from mpcs_torch.functional.detection.errors import (
    ReversedScoresWarning as ReversedScoresWarning,
)
from mpcs_torch.functional.detection.llr_cost import cllr as cllr
from mpcs_torch.functional.detection.llr_cost import (
    log_likelihood_ratios as log_likelihood_ratios,
)
from mpcs_torch.functional.detection.llr_cost import min_cllr as min_cllr
from mpcs_torch.functional.detection.normalization import (
    CohortStatistics as CohortStatistics,
)
from mpcs_torch.functional.detection.normalization import (
    cohort_statistics as cohort_statistics,
)
from mpcs_torch.functional.detection.normalization import (
    normalize_scores as normalize_scores,
)
from mpcs_torch.functional.inputs.faults import ProbabilitiesWarning as ProbabilitiesWarning
from mpcs_torch.functional.inputs.groups import costs_if_wrong as costs_if_wrong
from mpcs_torch.functional.probability.probability_accuracy import (
    MeasuredProbabilities as MeasuredProbabilities,
)
from mpcs_torch.functional.probability.probability_accuracy import (
    calibration_slope as calibration_slope,
)
from mpcs_torch.functional.probability.probability_accuracy import (
    probability_accuracy as probability_accuracy,
)
from mpcs_torch.functional.probability.scores import ProbabilityMeans as ProbabilityMeans
from mpcs_torch.functional.probability.scores import brier_score as brier_score
from mpcs_torch.functional.probability.scores import cross_entropy as cross_entropy
from mpcs_torch.functional.probability.scores import decisiveness as decisiveness
from mpcs_torch.functional.probability.scores import (
    geometric_accuracy as geometric_accuracy,
)
from mpcs_torch.functional.probability.scores import overconfidence as overconfidence
from mpcs_torch.functional.probability.scores import robustness as robustness
from mpcs_torch.functional.quality.scores import accuracy as accuracy
from mpcs_torch.functional.quality.scores import class_error_rates as class_error_rates
from mpcs_torch.functional.quality.scores import confusion_matrix as confusion_matrix
from mpcs_torch.functional.quality.scores import macro_f1 as macro_f1
from mpcs_torch.functional.quality.scores import (
    matthews_correlation as matthews_correlation,
)
from mpcs_torch.functional.quality.scores import (
    multiclass_quality_metrics as multiclass_quality_metrics,
)
from mpcs_torch.functional.soft.scores import hard_f1 as hard_f1
from mpcs_torch.functional.soft.scores import soft_f1 as soft_f1
from mpcs_torch.functional.soft.scores import soft_fbeta as soft_fbeta
from mpcs_torch.functional.soft.scores import soft_kl_divergence as soft_kl_divergence
from mpcs_torch.functional.soft.scores import soft_precision as soft_precision
from mpcs_torch.functional.soft.scores import soft_recall as soft_recall

if not TYPE_CHECKING:  # type checkers take "import A as A" for public
    __all__ = sorted(
        name
        for name, value in globals().items()
        if getattr(value, "__module__", "").startswith(__name__)
    )
