"""``mpcs metrics``: the register of metrics."""

import sys

from mpcs_torch.cli.console import COMMAND_LINE, print_result
from mpcs_torch.cli.options import shared
from mpcs_torch.tables import Table

BETTER = {"min": "lower", "max": "higher", None: ""}


@shared("json")
def metrics() -> None:
    """List the names that run configs and `mpcs score --metrics` take; in a pipe or a file, as Markdown."""
    table = register_table(code="" if COMMAND_LINE.json or sys.stdout.isatty() else "`")
    print_result(table.records(), table)


def register_table(*, code: str = "`") -> Table:
    """Return a table with a row for each metric: name, class, better direction, input, and what the metric computes.

    ``code`` is put before and after each name and class; the default marks code in Markdown.
    """
    from mpcs_torch.metrics.named_metrics import ENTRIES, OF_CLASS  # imports PyTorch

    rows = []
    for entry in (*ENTRIES, *OF_CLASS.values()):
        settings = ", ".join(f"{name}={value!r}" for name, value in entry.settings.items())
        made = f"{code}{entry.class_name}{code}" + (f" ({settings})" if settings else "")
        takes = entry.takes.replace("_", " ")
        rows.append(
            [
                f"{code}{entry.name}{code}",
                made,
                BETTER[entry.direction],
                takes,
                entry.computes,
            ]
        )
    return Table(["name", "metric", "better", "takes", "computes"], rows)
