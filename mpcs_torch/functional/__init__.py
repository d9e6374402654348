"""Tensors in, tensors out: the metrics as functions without state."""

from mpcs_torch.functional.dangerous import DangerousErrorCounts, dangerous_errors
from mpcs_torch.functional.mpcs import meta_pattern_concern_score

__all__ = ["DangerousErrorCounts", "dangerous_errors", "meta_pattern_concern_score"]
