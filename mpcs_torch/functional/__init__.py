"""Tensors in, tensors out: the metrics as functions without state."""

from mpcs_torch.functional.concern_loss import concern_loss
from mpcs_torch.functional.dangerous import DangerousErrorCounts, dangerous_errors
from mpcs_torch.functional.decision import least_concern_decision
from mpcs_torch.functional.expected_concern import expected_concern
from mpcs_torch.functional.generalized import decisiveness, generalized_mean, geometric_accuracy, robustness
from mpcs_torch.functional.measured import MeasuredProbabilities, calibration_slope, measured_probabilities
from mpcs_torch.functional.mpcs import meta_pattern_concern_score
from mpcs_torch.functional.quality import class_error_rates, confusion_matrix, multiclass_quality_metrics
from mpcs_torch.functional.soft import soft_f1, soft_fbeta, soft_precision, soft_recall, soft_stat_scores
from mpcs_torch.functional.soft_divergence import soft_kl_divergence
from mpcs_torch.functional.softmax_margin import softmax_margin_loss

__all__ = [
    "DangerousErrorCounts",
    "MeasuredProbabilities",
    "calibration_slope",
    "class_error_rates",
    "concern_loss",
    "confusion_matrix",
    "dangerous_errors",
    "decisiveness",
    "expected_concern",
    "generalized_mean",
    "geometric_accuracy",
    "least_concern_decision",
    "measured_probabilities",
    "meta_pattern_concern_score",
    "multiclass_quality_metrics",
    "robustness",
    "soft_f1",
    "soft_fbeta",
    "soft_kl_divergence",
    "soft_precision",
    "soft_recall",
    "soft_stat_scores",
    "softmax_margin_loss",
]
