"""``mpcs data``: the data files that experiments need."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from mpcs_torch.cli.options import DataRoot
from mpcs_torch.tables import Table
from mpcs_torch.trainer.data.sources import get as get_set
from mpcs_torch.trainer.data.sources import status

data = typer.Typer(help="Get the data files that experiments need, and see what is there.", no_args_is_help=True)


@data.command()
def get(
    names: Annotated[list[str], typer.Argument(help="mnist, add, or ucr/NAME with a name in the UCR archive.")],
    data_root: DataRoot = Path("data"),
) -> None:
    """Download data sets; what is there and right is kept, and a broken download goes on where it broke."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(file: str, here: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file, total=total)
            progress.update(tasks[file], completed=here, total=total)

        for name in names:
            get_set(name, data_root, advance)
    typer.echo(f"{', '.join(names)}: in {data_root}")


@data.command("list")
def show(data_root: DataRoot = Path("data")) -> None:
    """Say which data sets are in the data root, and whether they are the published ones."""
    typer.echo(Table(["data set", "state"], [[entry.name, entry.state] for entry in status(data_root)]).markdown())
