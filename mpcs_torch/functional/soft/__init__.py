"""Scores for soft labels, which are degrees of truth."""
