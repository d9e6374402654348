"""``mpcs data``: download and list data sets."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import note, print_result
from mpcs_torch.cli.options import DataRoot, shared
from mpcs_torch.paper.downloads import CHECKSUMS

data = group_of_commands("Download and list the data sets of the experiments.")


@data.command()
@shared("quiet")
def get(
    names: Annotated[
        list[str], typer.Argument(metavar="NAME", autocompletion=lambda: [*CHECKSUMS])
    ],
    data_root: DataRoot = Path("data"),
) -> None:
    """Download data sets, and check their values. Files that are there are kept.

    Args:
        names: mnist, add, or ucr/NAME with the name of a set in the UCR archive.
    """
    from mpcs_torch.paper.downloads import get as get_set

    for name in names:
        note(f"{name}: downloading what is missing to {data_root}")
        get_set(name, data_root)


@data.command("list")
@shared("json")
def show(data_root: DataRoot = Path("data")) -> None:
    """List the data sets in the data root, and whether their checksums are correct."""
    from mpcs_torch.paper.downloads import status
    from mpcs_torch.tables import Table

    rows = [[*entry] for entry in status(data_root)]
    print_result(
        Table(["name", "state"], rows).records(), Table(["data set", "state"], rows)
    )
