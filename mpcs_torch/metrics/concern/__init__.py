"""Metrics that weigh errors by their cost to people."""
