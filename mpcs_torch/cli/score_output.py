"""The output of ``mpcs score``: tables and verdicts, or JSON."""

from mpcs_torch.cli.console import print_json, say, text_of
from mpcs_torch.evaluation import Result
from mpcs_torch.tables import Table


def print_scores(found: Result, *, as_json: bool) -> None:
    """Print everything that was measured."""
    if as_json:
        print_json(found.to_dict())
    else:
        say("\n\n".join(text_of(part) if isinstance(part, Table) else part for part in found.parts()))
    for warning in found.warnings():
        say(f"warning: {warning}", err=True)
