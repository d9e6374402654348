"""Scores of the confusion matrix."""
