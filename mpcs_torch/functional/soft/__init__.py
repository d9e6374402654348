"""Scores for labels that are degrees of truth."""
