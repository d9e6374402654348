"""``mpcs metrics``: the register of metrics."""

import inspect
import sys

from mpcs_torch.cli.console import print_table
from mpcs_torch.cli.options import AsJson
from mpcs_torch.tables import Table


def metrics(as_json: AsJson = False) -> None:
    """List the names that run configs and `mpcs score --metrics` take; in a pipe or a file, as Markdown."""
    table = register_table(code="" if as_json or sys.stdout.isatty() else "`")
    print_table(table)


def register_table(*, code: str = "`") -> Table:
    """Return a row for each entry of the register: name, class, better values, input and what it computes.

    Args:
        code: Stands before and after names; the default is that of Markdown.
    """
    from mpcs_torch.metrics.by_name import ENTRIES

    better = {"min": "lower", "max": "higher", None: ""}
    rows = []
    for entry in ENTRIES:
        settings = ", ".join(f"{name}={value!r}" for name, value in entry.settings.items())
        made = f"{code}{entry.metric.__name__}{code}" + (f" ({settings})" if settings else "")
        about = (inspect.getdoc(entry.metric) or "").splitlines()[0]
        rows.append([f"{code}{entry.name}{code}", made, better[entry.direction], entry.takes.replace("_", " "), about])
    return Table(["name", "metric", "better", "takes", "computes"], rows)
