"""Metrics for soft labels (degrees of truth)."""
