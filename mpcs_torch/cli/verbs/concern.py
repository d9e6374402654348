"""``mpcs concern``: check and draft concern files."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import COMMAND_LINE, note, print_result, say
from mpcs_torch.cli.options import (
    file_or_name,
    option_name,
    path_of,
    refused_values,
    shared,
)

concern = group_of_commands(
    "Check or draft a concern file, which says how much each error matters."
)

Source = Literal["tree", "costs", "order"]
"""The source from which ``mpcs concern suggest`` drafts a concern."""
OPTIONS: dict[Source, set[str]] = {
    "tree": set(),
    "costs": {"dangerous"},
    "order": {"under", "over", "dangerous"},
}
"""The options that each source takes. The other options in this dictionary are refused."""


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
    context: typer.Context,
    source: Annotated[Source, typer.Option("--from")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    given: Annotated[str, typer.Argument(metavar="INPUT")],
    under: float = 1.0,
    over: float = 1.0,
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
    _check_options(context, source)
    given = given if source == "order" else str(path_of(given, "INPUT"))  # a file or a name
    if source != "order" and not Path(given).is_file():
        raise typer.BadParameter(f"{given}: no such file", param_hint="INPUT")

    from mpcs_torch.cli.drafts import DRAFTS
    from mpcs_torch.concern import save_concern

    settings = {"under": under, "over": over, "dangerous": dangerous}
    with refused_values(f"{given}: "):
        spec = DRAFTS[source](given, **{name: settings[name] for name in OPTIONS[source]})
    save_concern(
        spec,
        out,
        comment=f"Suggested from {source} of {given}. This is a draft: correct it.",
    )
    released, size = int(spec.released().sum()), len(spec.classes)
    print_result({"concern": out, "classes": spec.classes, "released": released})
    note(f"wrote {out}: {released} of {size} x {size} pairs released")


def _check_options(context: typer.Context, source: Source) -> None:
    for name in set.union(*OPTIONS.values()) - OPTIONS[source]:
        origin = context.get_parameter_source(name)
        if origin is not None and origin.name == "COMMANDLINE":
            takers = " or ".join(taker for taker, names in OPTIONS.items() if name in names)
            raise typer.BadParameter(
                f"only for --from {takers}, but got {source}", param_hint=option_name(name)
            )
