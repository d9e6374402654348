"""Scores that are computed from a confusion matrix."""
