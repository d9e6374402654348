"""Values as JSON holds them."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the console imports this file, and must not load torch
    from mpcs_torch.functional import Comparison


def finite(value: Any) -> Any:
    """Replace NaN and infinity by None and paths by their text, in dictionaries and sequences too: JSON has neither."""
    if isinstance(value, dict):
        return {key: finite(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [finite(entry) for entry in value]
    if isinstance(value, Path):
        return str(value)
    return None if isinstance(value, float) and not math.isfinite(value) else value


def plain_comparisons(comparisons: "Sequence[Comparison]") -> list[dict[str, Any]]:
    """Return the values of comparisons by name."""
    return [
        {
            "measure": row.measure,
            "systems": [row.first, row.second],
            **finite(row.found._asdict()),
            "adjusted_p_value": row.adjusted_p_value,
            "verdict": row.verdict,
        }
        for row in comparisons
    ]
