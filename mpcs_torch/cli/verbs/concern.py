"""``mpcs concern``: check and draft concern files."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import COMMAND_LINE, note, print_result, say
from mpcs_torch.cli.options import (
    demand,
    file_or_name,
    path_of,
    refuse_given,
    refused_values,
    shared,
)

concern = group_of_commands(
    "Check or draft a concern file, which says how much each error matters."
)

Source = Literal["tree", "costs", "order"]
"""The source from which ``mpcs concern suggest`` drafts a concern."""


@concern.command()
@shared("json")
def check(
    file: Annotated[
        Path, typer.Argument(metavar="CONCERN", parser=file_or_name("concerns"))
    ],
) -> None:
    """Show the cost of each error by a concern file, and which errors are dangerous.

    Entries that break a rule are listed with line and column; the exit status is then 2. Valid entries that may be an
    oversight give a warning.

    Args:
        file: A concern file (YAML), or a name, such as traffic-lights.
    """
    from mpcs_torch.concern import load_concern
    from mpcs_torch.concern.files import concern_as_plain
    from mpcs_torch.concern.spec import described, oversights

    spec = load_concern(file)
    with refused_values(f"{file}: "):  # too many classes
        released, warnings = spec.released_array(), list(oversights(spec))
    if COMMAND_LINE.json:
        pairs = [
            [spec.classes[i] for i in pair]
            for pair in zip(*released.nonzero(), strict=True)
        ]
        print_result({**concern_as_plain(spec), "released": pairs, "warnings": warnings})
        return
    say(*described(spec))
    for warning in warnings:
        say(f"mpcs: warning: {warning}", err=True)


@concern.command()
@shared("json", "quiet")
def suggest(
    source: Annotated[Source, typer.Option("--from")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    given: Annotated[str, typer.Argument(metavar="INPUT")],
    under: Annotated[float | None, typer.Option(show_default="1.0")] = None,
    over: Annotated[float | None, typer.Option(show_default="1.0")] = None,
    dangerous: Annotated[
        float | None, typer.Option(show_default="every error with a weight above 0")
    ] = None,
) -> None:
    """Write a draft of a concern file for you to correct.

    Args:
        source: The source of the draft.
        out: The concern file to write.
        given: tree: a YAML file of nested classes. costs: a CSV file with the class names in its first row. order:
            class names from low to high, separated by commas.
        under: order: the cost of a prediction that is too low, for each step in the order of classes.
        over: order: the cost of a prediction that is too high, for each step in the order of classes.
        dangerous: costs and order: errors with at least this weight are dangerous; the largest weight is 1.
    """
    steps = {"under": under, "over": over}
    if source != "order":
        refuse_given(steps, "of_source", sources="order", source=source)
        given = str(path_of(given, "INPUT"))
        demand(Path(given).is_file(), "is_there", "INPUT", path=given, kind="file")
    if source == "tree":
        of_others = {"dangerous": dangerous}
        refuse_given(of_others, "of_source", sources="costs or order", source=source)

    from mpcs_torch.concern import save_concern, spec_from_tree
    from mpcs_torch.concern.suggest import spec_from_costs, spec_from_order
    from mpcs_torch.io.yaml_files import read_yaml_file

    with refused_values(f"{given}: "):
        if source == "tree":
            spec = spec_from_tree(read_yaml_file(Path(given)).value)
        elif source == "costs":
            spec = spec_from_costs(*_read_costs(Path(given)))
        else:
            names = [name.strip() for name in given.split(",")]
            prices = {name: cost for name, cost in steps.items() if cost is not None}
            spec = spec_from_order(names, **prices)
        if dangerous is not None:
            spec = replace(spec, dangerous=dangerous)
    comment = f"Suggested from {source} of {given}. This is a draft: correct it."
    save_concern(spec, out, comment=comment)
    released, size = int(spec.released().sum()), len(spec.classes)
    print_result({"concern": out, "classes": spec.classes, "released": released})
    note(f"wrote {out}: {released} of {size} x {size} pairs released")


def _read_costs(path: Path) -> tuple[list[list[float]], list[str]]:
    """Return the costs in a table, and the names of the classes in its header or its first row."""
    from mpcs_torch.evaluation.files.formats import open_table
    from mpcs_torch.evaluation.files.tables import to_text

    table = open_table(path)
    costs = table.read(table.names).matrix(table.names).tolist()
    names = table.names if table.has_names else [to_text(name) for name in costs.pop(0)]
    return costs, list(names)
