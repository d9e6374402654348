"""``mpcs data``: download and list data sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import COMMAND_LINE, note, print_json, text_of
from mpcs_torch.cli.options import AsJson, DataRoot, Quiet
from mpcs_torch.trainer.sources.checksums import SHA256, UCR_SHA256

if TYPE_CHECKING:
    from rich.progress import TaskID

data = group_of_commands("Download and list the data sets of the experiments.")


def _check_names(names: list[str]) -> list[str]:
    for name in names:
        kind, _, ucr_set = name.partition("/")
        if name not in SHA256 and (kind != "ucr" or not ucr_set or "/" in ucr_set):
            raise typer.BadParameter(f"{name}: must be {', '.join(SHA256)} or ucr/NAME")
    return names


@data.command()
def get(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME",
            callback=_check_names,
            autocompletion=lambda: [*SHA256, *(f"ucr/{name}" for name in UCR_SHA256)],
        ),
    ],
    data_root: DataRoot = Path("data"),
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Download data sets. Correct files are kept, and an interrupted download is resumed.

    Args:
        names: mnist, add, or ucr/NAME with the name of a set in the UCR archive.
    """
    import sys

    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

    from mpcs_torch.trainer.sources.published import get as get_set

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    is_shown = sys.stderr.isatty() and not COMMAND_LINE.is_quiet
    with Progress(*columns, console=Console(stderr=True), disable=not is_shown) as progress:
        tasks: dict[str, TaskID] = {}

        def advance(file: str, here: int, total: int | None) -> None:
            if file not in tasks:
                tasks[file] = progress.add_task(file, total=total)
            progress.update(tasks[file], completed=here, total=total)

        for name in names:
            get_set(name, data_root, advance)
    note(f"{', '.join(names)}: in {data_root}")


@data.command("list")
def show(data_root: DataRoot = Path("data"), as_json: AsJson = False) -> None:
    """List the data sets in the data root, and whether their checksums are correct."""
    from mpcs_torch.tables import Table
    from mpcs_torch.trainer.sources.published import status

    sets = status(data_root)
    if as_json:
        print_json([{"name": entry.name, "state": entry.state} for entry in sets])
    else:
        typer.echo(text_of(Table(["data set", "state"], [[entry.name, entry.state] for entry in sets])))
