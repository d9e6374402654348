"""Scores, losses and decisions that weigh errors by human values."""
