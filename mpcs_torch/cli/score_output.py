"""The output of ``mpcs score``: tables and verdicts, or JSON."""

from typing import Any

from mpcs_torch.cli.console import print_json, say, text_of
from mpcs_torch.evaluation import Result
from mpcs_torch.tables import Table


def print_scores(result: Result[Any], *, as_json: bool) -> None:
    """Print everything that was measured."""
    if as_json:
        print_json(result.to_dict())
    else:
        say("\n\n".join(text_of(part) if isinstance(part, Table) else part for part in result.parts()))
    for warning in result.warnings():
        say(f"warning: {warning}", err=True)
