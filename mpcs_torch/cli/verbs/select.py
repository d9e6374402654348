"""``mpcs select``: apply a selection rule to a finished run."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.console import print_json, text_of
from mpcs_torch.cli.failures import told_warnings
from mpcs_torch.cli.options import AsJson

if TYPE_CHECKING:
    from mpcs_torch.learning.selection import Epoch
    from mpcs_torch.trainer.config.learning import SelectorConfig


Ties = StrEnum("Ties", ["FIRST", "LAST"])
"""The epoch to pick if several are equally good."""


def select(
    run: Annotated[Path, typer.Argument(metavar="RUN", exists=True, file_okay=False)],
    by: str = "mpcs",
    within: Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE")] = None,
    at_most: Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE")] = None,
    at_least: Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE")] = None,
    ties: Ties = Ties.FIRST,
    top_k: Annotated[int, typer.Option(min=1)] = 1,
    as_json: AsJson = False,
) -> None:
    """Print the epoch that a rule picks, and the epochs that each metric alone would have picked.

    For example, --within accuracy=0.001 considers only epochs whose accuracy is within 0.1 points of the best.

    Args:
        run: Folder of a finished run, with records.csv.
        by: Column to rank epochs by.
        within: Largest distance from the best value. Repeat for several columns.
        at_most: Highest value. Repeat for several columns.
        at_least: Lowest value. Repeat for several columns.
        ties: Epoch to pick if several are equally good.
        top_k: Number of best epochs to print.
    """
    limits = {"within": _limits(within), "at_most": _limits(at_most), "at_least": _limits(at_least)}
    records = run / "records.csv"
    if not records.is_file():
        raise typer.BadParameter(f"{run} contains no records.csv", param_hint="RUN")

    from mpcs_torch.learning.selection import explain
    from mpcs_torch.trainer.config.learning import follower_problems
    from mpcs_torch.trainer.config.metrics import TEST
    from mpcs_torch.trainer.records import recorded_directions

    config = _config({"by": by, "ties": str(ties), "top_k": top_k, **limits})
    epochs = _epochs(records)
    directions = recorded_directions(run, epochs[0].values)
    problems = list(follower_problems(list(config.followers()), epochs[0].values, directions))
    if problems:
        raise typer.BadParameter("; ".join(problems).replace("selector.", "--").replace("at_", "at-"))
    rule = config.rule({name: way for name, way in directions.items() if not name.startswith(TEST)})
    ranking = rule.ranking(epochs)
    if as_json:
        best = [{"epoch": epoch.number, "values": dict(epoch.values)} for epoch in ranking[: config.top_k]]
        alone = {name: epoch.number for name, epoch in rule.picked_by_each(epochs).items()}
        print_json({"best": best, "picked_by_each": alone})
        return
    typer.echo(text_of(explain(rule, epochs)))
    typer.echo(f"\nBest first: {', '.join(str(epoch.number) for epoch in ranking[: config.top_k]) or 'no epoch'}")
    if not ranking:
        typer.echo("No epoch is within the limits.")


def _limits(entries: list[str] | None) -> dict[str, float]:
    limits = {}
    for entry in entries or []:
        name, _, value = entry.partition("=")
        try:
            limits[name] = float(value)
        except ValueError:
            raise typer.BadParameter(f"{entry!r} must have the form COLUMN=VALUE with a number") from None
    return limits


def _config(settings: dict[str, object]) -> "SelectorConfig":
    from pydantic import ValidationError

    from mpcs_torch.trainer.config.learning import SelectorConfig

    try:
        return SelectorConfig.model_validate(settings)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()]
        raise typer.BadParameter("; ".join(problems)) from None


def _epochs(path: Path) -> "list[Epoch]":
    from mpcs_torch.learning.selection import Epoch
    from mpcs_torch.trainer.records import read_records

    with told_warnings():
        epochs = [Epoch(int(record.pop("epoch")), record) for record in read_records(path)]
    if not epochs:
        raise typer.BadParameter(f"{path} contains no epochs")
    return epochs
