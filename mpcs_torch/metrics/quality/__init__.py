"""Scores that a confusion matrix holds."""
