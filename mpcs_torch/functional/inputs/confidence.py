"""The confidence of all intervals, limits and alarms."""

from mpcs_torch.errors import require

CONFIDENCE, LEVEL = 0.95, 0.05
"""The default confidence of intervals, and the default level of tests: a higher p-value is not significant."""
CONFIDENCE_TEXT = f"{100 * CONFIDENCE:g} %"


def check_confidence(value: float, name: str = "confidence") -> None:
    """Check that ``value`` is above 0 and below 1; the error message begins with ``name``."""
    require(0 < value < 1, "open_between", name, value, minimum=0, maximum=1)
