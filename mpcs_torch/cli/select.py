"""``mpcs select``: which turn of a finished run a rule picks."""

from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from mpcs_torch.learning.selection import Epoch, explain
from mpcs_torch.trainer.learning_config import SelectorConfig
from mpcs_torch.trainer.records import read_records

Limits = Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="May stand several times.")]


def select(
    run: Annotated[Path, typer.Argument(help="Folder of a run, with its records.csv.")],
    by: Annotated[str, typer.Option(help="The column that decides.")] = "mpcs",
    within: Limits = None,
    at_most: Limits = None,
    at_least: Limits = None,
    ties: Annotated[str, typer.Option(help="first or last")] = "first",
    top_k: Annotated[int, typer.Option(help="How many of the best turns to name.")] = 1,
) -> None:
    """Print the turn that a rule picks, and what each metric alone would have picked instead.

    --within accuracy=0.001 leaves only turns whose accuracy is within 0.1 points of the best; --at-most and --at-least
    limit values.
    """
    limits = {"within": _limits(within), "at_most": _limits(at_most), "at_least": _limits(at_least)}
    try:
        config = SelectorConfig.model_validate({"by": by, "ties": ties, "top_k": top_k, **limits})
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()]
        raise typer.BadParameter("; ".join(problems)) from None
    epochs = [Epoch(int(record.pop("turn")), record) for record in read_records(run / "records.csv")]
    if not epochs:
        raise typer.BadParameter(f"{run / 'records.csv'} holds no turn")
    missing = [name for name in config.columns if name not in epochs[0].values]
    if missing:
        raise typer.BadParameter(f"{run / 'records.csv'} lacks the columns {', '.join(missing)}")
    rule = config.rule(epochs[0].values)
    typer.echo(explain(rule, epochs).markdown())
    ranking = rule.ranking(epochs)
    typer.echo(f"\nBest first: {', '.join(str(epoch.number) for epoch in ranking[: config.top_k]) or 'no turn'}")
    if not ranking:
        typer.echo("No turn keeps to the limits.")


def _limits(given: list[str] | None) -> dict[str, float]:
    limits = {}
    for entry in given or []:
        name, _, value = entry.partition("=")
        try:
            limits[name] = float(value)
        except ValueError:
            raise typer.BadParameter(f"{entry!r} must read COLUMN=VALUE with a number") from None
    return limits
