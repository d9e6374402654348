"""``mpcs concern check``: read a concern file, and show what it says."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli.console import print_json, say, text_of
from mpcs_torch.cli.options import AsJson, file_or_name, refused_values
from mpcs_torch.tables import Table

if TYPE_CHECKING:
    from mpcs_torch.concern import ConcernSpec

MOST_CLASSES = 30
"""The matrix of more classes is not readable: only the pairs that are released are listed."""
MOST_ROWS = 40


def check(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="CONCERN",
            parser=file_or_name("concerns"),
            help="A concern file (YAML), or a name, such as traffic-lights.",
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show what each error costs by a concern file, and which errors are dangerous.

    What breaks a rule is listed with its line and column; the exit status is then 2. What is allowed, but may be an
    oversight, is a warning.
    """
    from mpcs_torch.concern import load_concern
    from mpcs_torch.concern.files import concern_as_plain
    from mpcs_torch.concern.oversights import oversights

    spec = load_concern(file)
    with refused_values(f"{file}: "):  # too many classes
        released, warnings = spec.released_array(), list(oversights(spec))
    if as_json:
        pairs = [[spec.classes[i] for i in pair] for pair in zip(*released.nonzero(), strict=True)]
        print_json({**concern_as_plain(spec), "released": pairs, "warnings": warnings})
        return
    size = len(spec.classes)
    errors, harmless = size * (size - 1), int(released.sum())
    kind = "are released" if spec.weights is None else "are not dangerous"
    say(f"{size} classes; of {errors} errors, {errors - harmless} are dangerous, and {harmless} {kind}\n")
    typer.echo(text_of(_matrix(spec) if size <= MOST_CLASSES else _released_table(spec)))
    say("\n" + "\n".join(_facts(spec)))
    for warning in warnings:
        say(f"mpcs: warning: {warning}", err=True)


def _matrix(spec: "ConcernSpec") -> Table:
    dangerous = spec.dangerous_array().tolist()
    rows = [
        [name, *("-" if i == j else f"{cost:g}{' !' if dangerous[i][j] else ''}" for j, cost in enumerate(costs))]
        for i, (name, costs) in enumerate(zip(spec.classes, spec.matrix_array().tolist(), strict=True))
    ]
    return Table(["true \\ predicted", *spec.classes], rows)


def _released_table(spec: "ConcernSpec") -> Table:
    names = spec.classes
    rows = []
    for name, row in zip(names, spec.released_array(), strict=True):
        if row.any():
            others = [names[other] for other in row.nonzero()[0]]
            rows.append([name, str(len(others)), ", ".join(others)])
    if len(rows) > MOST_ROWS:
        rows = [*rows[:MOST_ROWS], [f"and {len(rows) - MOST_ROWS} others", "", ""]]
    return Table(["true class", "released", "predicted as"], rows)


def _facts(spec: "ConcernSpec") -> list[str]:
    facts: list[str] = []
    if len(spec.classes) <= MOST_CLASSES:
        others = "; any others are released" if spec.weights is None else ""
        facts.append(f"The cost of each error; ! marks the dangerous ones{others}.")
    if spec.weights is None:
        facts.append(f"Factor: a released error costs {spec.factor:g}, a dangerous one 1.")
    elif isinstance(spec.dangerous, int | float):
        facts.append(f"Dangerous: errors with a weight of at least {spec.dangerous:g}.")
    facts.append(_about(spec.refer, "Referral", "none, every sample is decided"))
    answers = "; ".join(f"{name} costs {cost:g}" for name, cost in spec.answers)
    facts += [f"Coarse answers: {answers}, if the true class is in it."] if answers else []
    facts.append(_about(spec.concession, "Concession", "MPCS's own, just below 0.005"))
    return facts


def _about(value: Any, title: str, otherwise: str) -> str:
    if isinstance(value, tuple):
        return f"{title}: {', '.join(f'{cost:g}' for cost in value)}, by true class."
    return f"{title}: {otherwise if value is None else f'{value:g}'}."
