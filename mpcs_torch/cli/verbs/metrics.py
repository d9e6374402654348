"""``mpcs metrics``: the register of metrics."""

import json
import sys
from pathlib import Path

from mpcs_torch.cli.console import COMMAND_LINE, print_result
from mpcs_torch.cli.options import shared
from mpcs_torch.tables import Table

LISTING = Path(__file__).parents[1] / "metrics.json"
"""The list of metrics as JSON, readable without PyTorch. ``python -m tests.metrics.listing`` writes this file."""


@shared("json")
def metrics() -> None:
    """List the names that run configs and `mpcs score --metrics` take; in a pipe or a file, as Markdown."""
    table = register_table(code="" if COMMAND_LINE.json or sys.stdout.isatty() else "`")
    print_result(table.records(), table)


def register_table(*, code: str = "`") -> Table:
    """Return a table with a row for each metric: name, class, better direction, input, and what the metric computes.

    ``code`` is put before and after each name and class; the default marks code in Markdown.
    """
    rows = []
    for entry in json.loads(LISTING.read_text(encoding="utf-8")):
        made = f"{code}{entry['metric']}{code}" + (f" ({entry['settings']})" if entry["settings"] else "")
        rows.append([f"{code}{entry['name']}{code}", made, entry["better"], entry["takes"], entry["computes"]])
    return Table(["name", "metric", "better", "takes", "computes"], rows)
