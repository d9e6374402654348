"""Tensors in, tensors out: the metrics as functions without state."""

from mpcs_torch.functional.concern_loss import concern_loss
from mpcs_torch.functional.dangerous import DangerousErrorCounts, dangerous_errors
from mpcs_torch.functional.decision import least_concern_decision
from mpcs_torch.functional.expected_concern import expected_concern
from mpcs_torch.functional.mpcs import meta_pattern_concern_score
from mpcs_torch.functional.softmax_margin import softmax_margin_loss

__all__ = [
    "DangerousErrorCounts",
    "concern_loss",
    "dangerous_errors",
    "expected_concern",
    "least_concern_decision",
    "meta_pattern_concern_score",
    "softmax_margin_loss",
]
