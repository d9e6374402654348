"""The confidence of intervals, limits and alarms, and the level of tests, where no other is given."""

CONFIDENCE, LEVEL = 0.95, 0.05
"""LEVEL is 1 - CONFIDENCE: the highest p-value that shows a difference."""
CONFIDENCE_TEXT = f"{100 * CONFIDENCE:g} %"
