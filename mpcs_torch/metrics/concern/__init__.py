"""Scores, losses and decisions with human values in them."""
