"""``mpcs select``: which turn of a finished run a rule picks."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from mpcs_torch.learning.selection import Epoch
    from mpcs_torch.trainer.learning_config import SelectorConfig

Limits = Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="May stand several times.")]


class Ties(StrEnum):
    """Which of several equal turns is picked."""

    FIRST = "first"
    LAST = "last"


def select(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", exists=True, file_okay=False, help="Folder of a run, with its records.csv.")
    ],
    by: Annotated[str, typer.Option(help="The column that decides.")] = "mpcs",
    within: Limits = None,
    at_most: Limits = None,
    at_least: Limits = None,
    ties: Annotated[Ties, typer.Option(help="The turn to pick of several that are equal.")] = Ties.FIRST,
    top_k: Annotated[int, typer.Option(min=1, help="How many of the best turns to name.")] = 1,
) -> None:
    """Print the turn that a rule picks, and what each metric alone would have picked instead.

    --within accuracy=0.001 leaves only turns whose accuracy is within 0.1 points of the best; --at-most and --at-least
    limit values.
    """
    limits = {"within": _limits(within), "at_most": _limits(at_most), "at_least": _limits(at_least)}
    records = run / "records.csv"
    if not records.is_file():
        raise typer.BadParameter(f"{run} holds no records.csv", param_hint="RUN")

    from mpcs_torch.learning.selection import explain

    config = _config({"by": by, "ties": str(ties), "top_k": top_k, **limits})
    epochs = _epochs(records)
    missing = [name for name in config.columns if name not in epochs[0].values]
    if missing:
        raise typer.BadParameter(f"{records} lacks the columns {', '.join(missing)}")
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


def _config(settings: dict[str, object]) -> "SelectorConfig":
    from pydantic import ValidationError

    from mpcs_torch.trainer.learning_config import SelectorConfig

    try:
        return SelectorConfig.model_validate(settings)
    except ValidationError as error:
        problems = [f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in error.errors()]
        raise typer.BadParameter("; ".join(problems)) from None


def _epochs(path: Path) -> "list[Epoch]":
    from mpcs_torch.learning.selection import Epoch
    from mpcs_torch.trainer.records import read_records

    try:
        epochs = [Epoch(int(record.pop("turn")), record) for record in read_records(path)]
    except (KeyError, TypeError, ValueError) as error:
        raise typer.BadParameter(f"{path} must hold a column turn, and numbers alone: {error}") from None
    if not epochs:
        raise typer.BadParameter(f"{path} holds no turn")
    return epochs
