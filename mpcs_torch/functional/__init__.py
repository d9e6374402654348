"""The metrics, losses and decisions as functions of tensors, without state."""

from mpcs_torch.functional.comparison.audit import AuditedMean, audited_mean
from mpcs_torch.functional.comparison.bounded_mean import bounded_mean_interval, bounded_mean_test
from mpcs_torch.functional.comparison.clopper_pearson import clopper_pearson, cost_interval, meets_rule_of_30
from mpcs_torch.functional.comparison.jackknife import JackknifeInterval, jackknife_interval
from mpcs_torch.functional.comparison.sequential import (
    AnytimeInterval,
    anytime_evidence,
    anytime_interval,
    detectable_rate,
    e_benjamini_hochberg,
    labels_to_alarm,
)
from mpcs_torch.functional.comparison.significance import (
    Comparison,
    McNemarTest,
    PairedDifference,
    holm_adjusted,
    mcnemar_test,
    summarize_comparisons,
)
from mpcs_torch.functional.concern.cost_range import mean_cost_range
from mpcs_torch.functional.concern.coverage import coverage, selective_accuracy
from mpcs_torch.functional.concern.dangerous import DangerousErrorCounts, dangerous_errors, dangerous_errors_details
from mpcs_torch.functional.concern.decision import least_concern_decision, shift_priors
from mpcs_torch.functional.concern.expected_concern import expected_concern
from mpcs_torch.functional.concern.limited_rate import UnattainableLimitError
from mpcs_torch.functional.concern.losses import concern_loss, softmax_margin_loss
from mpcs_torch.functional.concern.mpcs import concession_intervals, meta_pattern_concern_score
from mpcs_torch.functional.concern.risk_control import RiskThreshold, risk_threshold
from mpcs_torch.functional.concern.risk_coverage_area import (
    RiskCoverage,
    risk_coverage_area,
    risk_coverage_area_details,
    risk_coverage_curve,
)
from mpcs_torch.functional.concern.row_cost import row_cost
from mpcs_torch.functional.detection.area import (
    false_alarm_at_miss,
    h_measure,
    miss_at_false_alarm,
    partial_auc,
    precision_recall_break_even,
)
from mpcs_torch.functional.detection.cost import (
    DetectionCost,
    actual_detection_cost,
    actual_detection_cost_details,
    half_total_error_rate,
    half_total_error_rate_details,
    min_detection_cost,
    min_detection_cost_details,
)
from mpcs_torch.functional.detection.curve import detection_curve, roc_convex_hull
from mpcs_torch.functional.detection.equal_error_rate import (
    EqualError,
    GaussianEqualError,
    equal_error_rate,
    equal_error_rate_details,
    gaussian_equal_error,
)
from mpcs_torch.functional.detection.errors import ErrorRates, ReversedScoresWarning
from mpcs_torch.functional.detection.llr_cost import (
    BayesErrors,
    cllr,
    log_likelihood_ratios,
    min_cllr,
    normalized_bayes_error,
)
from mpcs_torch.functional.detection.normalization import CohortStatistics, cohort_statistics, normalize_scores
from mpcs_torch.functional.detection.operating_point import OperatingPoint, bayes_threshold, effective_prior
from mpcs_torch.functional.detection.summary import DetectionSummary, detection_summary
from mpcs_torch.functional.inputs.faults import ProbabilitiesWarning
from mpcs_torch.functional.probability.generalized import (
    decisiveness,
    generalized_mean,
    generalized_mean_loss,
    geometric_accuracy,
    robustness,
)
from mpcs_torch.functional.probability.measured import (
    MeanCurve,
    MeasuredProbabilities,
    calibration_slope,
    generalized_mean_curve,
    measured_probabilities,
)
from mpcs_torch.functional.probability.probability_accuracy import probability_accuracy
from mpcs_torch.functional.probability.scoring_rules import brier_score, cross_entropy
from mpcs_torch.functional.quality.confusion import confusion_matrix
from mpcs_torch.functional.quality.quality_metrics import multiclass_quality_metrics
from mpcs_torch.functional.quality.scores import accuracy, class_error_rates, macro_f1, matthews_correlation
from mpcs_torch.functional.soft.divergence import soft_kl_divergence
from mpcs_torch.functional.soft.hard import FThresholds, best_f_thresholds
from mpcs_torch.functional.soft.scores import hard_f1, soft_f1, soft_fbeta, soft_precision, soft_recall
from mpcs_torch.functional.soft.sums import SoftStatScores, soft_stat_scores

__all__ = [
    "AnytimeInterval",
    "AuditedMean",
    "BayesErrors",
    "CohortStatistics",
    "Comparison",
    "DangerousErrorCounts",
    "DetectionCost",
    "DetectionSummary",
    "EqualError",
    "ErrorRates",
    "FThresholds",
    "GaussianEqualError",
    "JackknifeInterval",
    "McNemarTest",
    "MeanCurve",
    "MeasuredProbabilities",
    "OperatingPoint",
    "PairedDifference",
    "ProbabilitiesWarning",
    "ReversedScoresWarning",
    "RiskCoverage",
    "RiskThreshold",
    "SoftStatScores",
    "UnattainableLimitError",
    "accuracy",
    "actual_detection_cost",
    "actual_detection_cost_details",
    "anytime_evidence",
    "anytime_interval",
    "audited_mean",
    "bayes_threshold",
    "best_f_thresholds",
    "bounded_mean_interval",
    "bounded_mean_test",
    "brier_score",
    "calibration_slope",
    "class_error_rates",
    "cllr",
    "clopper_pearson",
    "cohort_statistics",
    "concern_loss",
    "concession_intervals",
    "confusion_matrix",
    "cost_interval",
    "coverage",
    "cross_entropy",
    "dangerous_errors",
    "dangerous_errors_details",
    "decisiveness",
    "detectable_rate",
    "detection_curve",
    "detection_summary",
    "e_benjamini_hochberg",
    "effective_prior",
    "equal_error_rate",
    "equal_error_rate_details",
    "expected_concern",
    "false_alarm_at_miss",
    "gaussian_equal_error",
    "generalized_mean",
    "generalized_mean_curve",
    "generalized_mean_loss",
    "geometric_accuracy",
    "h_measure",
    "half_total_error_rate",
    "half_total_error_rate_details",
    "hard_f1",
    "holm_adjusted",
    "jackknife_interval",
    "labels_to_alarm",
    "least_concern_decision",
    "log_likelihood_ratios",
    "macro_f1",
    "matthews_correlation",
    "mcnemar_test",
    "mean_cost_range",
    "measured_probabilities",
    "meets_rule_of_30",
    "meta_pattern_concern_score",
    "min_cllr",
    "min_detection_cost",
    "min_detection_cost_details",
    "miss_at_false_alarm",
    "multiclass_quality_metrics",
    "normalize_scores",
    "normalized_bayes_error",
    "partial_auc",
    "precision_recall_break_even",
    "probability_accuracy",
    "risk_coverage_area",
    "risk_coverage_area_details",
    "risk_coverage_curve",
    "risk_threshold",
    "robustness",
    "roc_convex_hull",
    "row_cost",
    "selective_accuracy",
    "shift_priors",
    "soft_f1",
    "soft_fbeta",
    "soft_kl_divergence",
    "soft_precision",
    "soft_recall",
    "soft_stat_scores",
    "softmax_margin_loss",
    "summarize_comparisons",
]
