"""Scores of the probability of the true class."""
