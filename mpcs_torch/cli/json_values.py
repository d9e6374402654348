"""Values as JSON holds them."""

import math
from pathlib import Path
from typing import Any


def finite(value: Any) -> Any:
    """Replace NaN and infinity by None and paths by their text, in dictionaries and sequences too: JSON has neither."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value
