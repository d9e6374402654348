"""Scores of predicted probabilities."""
