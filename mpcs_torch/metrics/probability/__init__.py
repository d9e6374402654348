"""Metrics of predicted probabilities."""
