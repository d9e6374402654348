"""``mpcs data``: download and list data sets."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import note, print_result
from mpcs_torch.cli.options import DataRoot, shared
from mpcs_torch.cli.progress import shown_progress
from mpcs_torch.trainer.sources.checksums import SHA256, UCR_SHA256

data = group_of_commands("Download and list the data sets of the experiments.")


def _check_names(names: list[str]) -> list[str]:
    for name in names:
        kind, _, ucr_set = name.partition("/")
        if name not in SHA256 and (kind != "ucr" or not ucr_set or "/" in ucr_set):
            raise typer.BadParameter(f"{name}: must be {', '.join(SHA256)} or ucr/NAME")
    return names


@data.command()
@shared("quiet")
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
) -> None:
    """Download data sets. Correct files are kept, and an interrupted download is resumed.

    Args:
        names: mnist, add, or ucr/NAME with the name of a set in the UCR archive.
    """
    from mpcs_torch.trainer.sources.published import get as get_set

    with ExitStack() as stack:
        bars = dict[str, Callable[..., None]]()

        def advance(file: str, here: int, total: int | None) -> None:
            if file not in bars:
                stack.close()  # the bar of the file before
                bars[file] = stack.enter_context(shown_progress(file, total, "{task.completed:,.0f} bytes"))
            bars[file](completed=here)

        for name in names:
            get_set(name, data_root, advance)
    note(f"{', '.join(names)}: in {data_root}")


@data.command("list")
@shared("json")
def show(data_root: DataRoot = Path("data")) -> None:
    """List the data sets in the data root, and whether their checksums are correct."""
    from mpcs_torch.tables import Table
    from mpcs_torch.trainer.sources.published import status

    rows = [[entry.name, entry.state] for entry in status(data_root)]
    print_result(Table(["name", "state"], rows).records(), Table(["data set", "state"], rows))
