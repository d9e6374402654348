"""Metrics of the confusion matrix."""
