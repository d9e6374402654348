"""``mpcs select``: apply a selection rule to a finished run."""

from pathlib import Path
from typing import Annotated

import typer

from mpcs_torch.cli.console import print_result
from mpcs_torch.cli.options import named_numbers, refused_values, shared


@shared("json")
def select(
    run: Annotated[Path, typer.Argument(metavar="RUN", exists=True, file_okay=False)],
    by: str = "mpcs",
    within: Annotated[list[str] | None, typer.Option(metavar="COLUMN=VALUE")] = None,
) -> None:
    """Print the epoch that a rule picks, and the epochs that each metric alone would have picked.

    For example, --within accuracy=0.001 considers only epochs whose accuracy is within 0.1 points of the best.

    Args:
        run: Folder of a finished run, with records.csv.
        by: Column to rank epochs by.
        within: Largest distance from the best value. Repeat for several columns.
    """
    records, slack = run / "records.csv", named_numbers(within or (), "--within", "COLUMN=VALUE")

    from mpcs_torch.functional.inputs.confidence import CONFIDENCE_TEXT, LEVEL
    from mpcs_torch.learning.selection import Epoch, count_interval, count_metrics, explain, indistinguishable
    from mpcs_torch.trainer.config.parts import TEST
    from mpcs_torch.trainer.config.sections import SelectorConfig, follower_problems
    from mpcs_torch.trainer.result import read_records, recorded_directions

    with refused_values():
        config = SelectorConfig.model_validate({"by": by, "within": slack})
    epochs = [Epoch(int(record.pop("epoch")), record) for record in read_records(records)]
    if not epochs:
        raise typer.BadParameter(f"{records} contains no epochs")
    directions = recorded_directions(run, epochs[0].values)
    problems = list(follower_problems(list(config.followers()), epochs[0].values, directions))
    if problems:
        raise typer.BadParameter("; ".join(problems).replace("selector.", "--"))
    rule = config.rule({name: way for name, way in directions.items() if not name.startswith(TEST)})
    ranking = rule.ranking(epochs)
    counts = count_metrics(rule, epochs)
    same = indistinguishable(ranking, rule.by, ranking[0]) if ranking and rule.by in counts else []
    plain = {
        "best": [{"epoch": epoch.number, "values": dict(epoch.values)} for epoch in ranking[:1]],
        "intervals": {name: count_interval(ranking[0].values[name]) for name in counts if ranking},
        "indistinguishable": [epoch.number for epoch in same],
        "picked_by_each": {name: epoch.number for name, epoch in rule.picked_by_each(epochs).items()},
    }
    sentences = f"Best epoch: {ranking[0].number}" if ranking else "No epoch is within the limits."
    if same:
        best = f"epoch {ranking[0].number} by {rule.by} (exact test, {100 * LEVEL:g} %)"
        numbers = ", ".join(str(epoch.number) for epoch in same)
        sentences += f"\nThese epochs do not differ significantly from {best}: {numbers}."
    counted = f"columns read as counts of independent errors: {', '.join(counts)}."
    in_brackets = [f"In brackets: {CONFIDENCE_TEXT} intervals of {counted}"] if counts else []
    print_result(plain, explain(rule, epochs), *in_brackets, sentences)
