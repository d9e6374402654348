"""The verbs of ``mpcs``, and how their errors reach the user."""

from collections.abc import Sequence
from typing import NoReturn

import typer

from mpcs_torch.cli.concern import concern
from mpcs_torch.cli.data import data
from mpcs_torch.cli.demo import demo
from mpcs_torch.cli.reproduce import reproduce
from mpcs_torch.cli.score import score
from mpcs_torch.cli.select import select
from mpcs_torch.cli.study import study
from mpcs_torch.cli.train import train
from mpcs_torch.concern import ConcernError
from mpcs_torch.scoring import PredictionsError
from mpcs_torch.trainer.config import ConfigError
from mpcs_torch.trainer.data import DataError

app = typer.Typer(
    help="Evaluate and train classifiers whose errors are not equally bad.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(train)
app.command()(reproduce)
app.command()(score)
app.command()(select)
app.command()(study)
app.command()(demo)
app.add_typer(data, name="data")
app.add_typer(concern, name="concern")


def run_app(arguments: Sequence[str]) -> NoReturn:
    """Run one command line and exit: with 0, or with 2 and one message for an error that the user can mend."""
    try:
        app(list(arguments))
    except (ConcernError, ConfigError, DataError, PredictionsError, OSError) as error:
        typer.echo(f"mpcs: {error}", err=True)
        raise SystemExit(2) from None
    raise SystemExit(0)
