"""The comparisons of systems as a table, or as plain values."""

from collections.abc import Sequence
from typing import Any

from mpcs_torch.functional import Comparison
from mpcs_torch.tables import Table

MOST_ROWS = 12
"""Above it, a terminal shows only the rows of the first metrics."""


def leading(comparisons: Sequence[Comparison], *, most: int = MOST_ROWS) -> tuple[list[Comparison], list[str]]:
    """Return the rows of the first metrics, as many as fit but at least those of one, and the other metrics."""
    by_measure: dict[str, list[Comparison]] = {}
    for row in comparisons:
        by_measure.setdefault(row.measure, []).append(row)
    kept: list[Comparison] = []
    left = list(by_measure)
    while left and (not kept or len(kept) + len(by_measure[left[0]]) <= most):
        kept += by_measure[left.pop(0)]
    return kept, left


def comparison_table(comparisons: Sequence[Comparison]) -> Table:
    """Return a row for each metric and pair of systems."""
    header = ["metric", "A", "B", "B - A", "95 %", "p", "p, corrected"]
    rows = [
        [
            row.measure,
            row.first,
            row.second,
            f"{row.found.difference:.4g}",
            f"{row.found.low:.4g} to {row.found.high:.4g}",
            f"{row.found.p_value:.2g}",
            f"{row.adjusted_p_value:.2g}",
        ]
        for row in comparisons
    ]
    return Table(header, rows)


def plain_comparisons(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return the values of comparisons by name."""
    return [
        {
            "measure": row.measure,
            "systems": [row.first, row.second],
            **row.found._asdict(),
            "adjusted_p_value": row.adjusted_p_value,
            "verdict": row.verdict,
        }
        for row in comparisons
    ]
