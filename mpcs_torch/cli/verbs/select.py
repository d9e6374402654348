"""``mpcs select``: apply a selection rule to a finished run."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mpcs_torch.cli.console import print_result
from mpcs_torch.cli.options import named_numbers, option_name, refused_values, shared

Limits = Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE")]


@shared("json")
def select(
    run: Annotated[Path, typer.Argument(metavar="RUN", exists=True, file_okay=False)],
    by: str = "mpcs",
    within: Limits = None,
    at_most: Limits = None,
    at_least: Limits = None,
    ties: Literal["first", "last"] = "first",
    top_k: Annotated[int, typer.Option(min=1)] = 1,
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
    entries = {"within": within or (), "at_most": at_most or (), "at_least": at_least or ()}
    limits = {name: named_numbers(each, option_name(name), "COLUMN=VALUE") for name, each in entries.items()}
    records = run / "records.csv"

    from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT, LEVEL
    from mpcs_torch.learning.selection import Epoch, count_interval, count_metrics, explain, indistinguishable
    from mpcs_torch.trainer.config.parts import TEST
    from mpcs_torch.trainer.config.sections import SelectorConfig, follower_problems
    from mpcs_torch.trainer.result import read_records, recorded_directions

    with refused_values():
        config = SelectorConfig.model_validate({"by": by, "ties": ties, "top_k": top_k, **limits})
    epochs = [Epoch(int(record.pop("epoch")), record) for record in read_records(records)]
    if not epochs:
        raise typer.BadParameter(f"{records} contains no epochs")
    directions = recorded_directions(run, epochs[0].values)
    problems = list(follower_problems(list(config.followers()), epochs[0].values, directions))
    if problems:
        raise typer.BadParameter("; ".join(problems).replace("selector.", "--").replace("at_", "at-"))
    rule = config.rule({name: way for name, way in directions.items() if not name.startswith(TEST)})
    ranking = rule.ranking(epochs)
    best = ranking[: config.top_k]
    counts = count_metrics(rule, epochs)
    same = (
        [epoch.number for epoch in indistinguishable(ranking, rule.by, best[0])] if best and rule.by in counts else []
    )
    plain = {
        "best": [{"epoch": epoch.number, "values": dict(epoch.values)} for epoch in best],
        "intervals": {name: count_interval(best[0].values[name]) for name in counts if best},
        "indistinguishable": same,
        "picked_by_each": {name: epoch.number for name, epoch in rule.picked_by_each(epochs).items()},
    }
    ranked = ", ".join(str(epoch.number) for epoch in best)
    sentences = f"Best first: {ranked}" if best else "Best first: no epoch\nNo epoch is within the limits."
    if same:
        numbers = ", ".join(map(str, same))
        by = f"epoch {best[0].number} by {rule.by} (exact test, {100 * LEVEL:g} %)"
        sentences += f"\nThese epochs do not differ significantly from {by}: {numbers}."
    counted = f"columns read as counts of independent errors: {', '.join(counts)}."
    print_result(
        plain,
        explain(rule, epochs),
        *([f"In brackets: {CONFIDENCE_TEXT} intervals of {counted}"] if counts else []),
        sentences,
    )
