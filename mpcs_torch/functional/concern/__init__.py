"""Scores, losses and decisions that weigh errors by their cost to people."""
