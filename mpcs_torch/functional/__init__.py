"""Tensors in, tensors out: the metrics as functions without state."""

from mpcs_torch.functional.bayes_error import BayesErrors, normalized_bayes_error
from mpcs_torch.functional.concern_loss import concern_loss
from mpcs_torch.functional.dangerous import DangerousErrorCounts, dangerous_errors
from mpcs_torch.functional.decision import least_concern_decision
from mpcs_torch.functional.detection_area import (
    false_alarm_at_miss,
    miss_at_false_alarm,
    partial_auc,
    precision_recall_break_even,
)
from mpcs_torch.functional.detection_cost import (
    DetectionCost,
    actual_detection_cost,
    detection_cost,
    half_total_error_rate,
    min_detection_cost,
)
from mpcs_torch.functional.detection_curve import (
    ErrorRates,
    ReversedScoresWarning,
    detection_curve,
    roc_convex_hull,
)
from mpcs_torch.functional.detection_interval import clopper_pearson, meets_rule_of_30, stratified_bootstrap
from mpcs_torch.functional.detection_summary import DetectionSummary, detection_summary
from mpcs_torch.functional.equal_error_rate import EqualError, equal_error_rate
from mpcs_torch.functional.expected_concern import expected_concern
from mpcs_torch.functional.generalized import decisiveness, generalized_mean, geometric_accuracy, robustness
from mpcs_torch.functional.llr_cost import cllr, min_cllr
from mpcs_torch.functional.measured import MeasuredProbabilities, calibration_slope, measured_probabilities
from mpcs_torch.functional.mpcs import meta_pattern_concern_score
from mpcs_torch.functional.operating_point import OperatingPoint, bayes_threshold, effective_prior
from mpcs_torch.functional.quality import class_error_rates, confusion_matrix, multiclass_quality_metrics
from mpcs_torch.functional.soft import soft_f1, soft_fbeta, soft_precision, soft_recall, soft_stat_scores
from mpcs_torch.functional.soft_divergence import soft_kl_divergence
from mpcs_torch.functional.softmax_margin import softmax_margin_loss

__all__ = [
    "BayesErrors",
    "DangerousErrorCounts",
    "DetectionCost",
    "DetectionSummary",
    "EqualError",
    "ErrorRates",
    "MeasuredProbabilities",
    "OperatingPoint",
    "ReversedScoresWarning",
    "actual_detection_cost",
    "bayes_threshold",
    "calibration_slope",
    "class_error_rates",
    "cllr",
    "clopper_pearson",
    "concern_loss",
    "confusion_matrix",
    "dangerous_errors",
    "decisiveness",
    "detection_cost",
    "detection_curve",
    "detection_summary",
    "effective_prior",
    "equal_error_rate",
    "expected_concern",
    "false_alarm_at_miss",
    "generalized_mean",
    "geometric_accuracy",
    "half_total_error_rate",
    "least_concern_decision",
    "measured_probabilities",
    "meets_rule_of_30",
    "meta_pattern_concern_score",
    "min_cllr",
    "min_detection_cost",
    "miss_at_false_alarm",
    "multiclass_quality_metrics",
    "normalized_bayes_error",
    "partial_auc",
    "precision_recall_break_even",
    "robustness",
    "roc_convex_hull",
    "soft_f1",
    "soft_fbeta",
    "soft_kl_divergence",
    "soft_precision",
    "soft_recall",
    "soft_stat_scores",
    "softmax_margin_loss",
    "stratified_bootstrap",
]
