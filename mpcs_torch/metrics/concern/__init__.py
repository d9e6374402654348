"""Metrics that weigh errors by human values."""
