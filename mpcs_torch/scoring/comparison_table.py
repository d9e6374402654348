"""A table of the comparisons of systems."""

from collections.abc import Sequence

from mpcs_torch.functional import Comparison
from mpcs_torch.tables import Table


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
