"""Comparison of ways to train: methods, learning rates and seeds, on the same data."""
