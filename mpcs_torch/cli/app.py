"""The ``mpcs`` command and its own options; `VerbGroup` adds the verbs."""

from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer

from mpcs_torch.cli.console import COMMAND_LINE
from mpcs_torch.cli.groups import VerbGroup

app = typer.Typer(cls=VerbGroup, no_args_is_help=True)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"mpcs_torch {version('mpcs_torch')}")
        raise typer.Exit


@app.callback()
def mpcs(
    *,
    version: Annotated[  # read by its callback
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[  # read by the group
        bool, typer.Option("--debug", help="Show the traceback of an error.")
    ] = False,
) -> None:
    """Evaluate and train classifiers whose errors are not equally bad."""


def run_app(arguments: Sequence[str]) -> NoReturn:
    """Run one command line and exit: with 0, with 2 for an error of the user, or with 1 for a bug."""
    COMMAND_LINE.begin(arguments)
    typer.main.get_command(app)(list(arguments), prog_name="mpcs")
    raise SystemExit(0)
