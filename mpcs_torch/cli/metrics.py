"""``mpcs metrics``: the register of metrics."""

import inspect

import typer

from mpcs_torch.tables import Table


def metrics() -> None:
    """List the names that run configs and `mpcs score --metrics` take, as Markdown."""
    typer.echo(register_table().markdown())


def register_table() -> Table:
    """Return a row for each entry of the register: name, class, better values, input and what it computes."""
    from mpcs_torch.metrics.by_name import ENTRIES

    better = {"min": "lower", "max": "higher", None: ""}
    rows = []
    for entry in ENTRIES:
        settings = ", ".join(f"{name}={value!r}" for name, value in entry.settings.items())
        made = f"`{entry.metric.__name__}`" + (f" ({settings})" if settings else "")
        about = (inspect.getdoc(entry.metric) or "").splitlines()[0]
        rows.append([f"`{entry.name}`", made, better[entry.direction], entry.takes.replace("_", " "), about])
    return Table(["name", "metric", "better", "takes", "computes"], rows)
