"""``mpcs concern``: check and draft concern files."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpcs_torch.cli.app import group_of_commands
from mpcs_torch.cli.console import note, print_json, say, show, text_of
from mpcs_torch.cli.options import AsJson, DataRoot, Quiet, file_or_name, refused_values
from mpcs_torch.tables import Table

if TYPE_CHECKING:
    from mpcs_torch.concern import ConcernSpec

concern = group_of_commands("Check or draft a concern file, which says how much each error matters.")

MOST_CLASSES = 30
"""The matrix of more classes is not readable: only the pairs that are released are listed."""
MOST_ROWS = 40

Source = StrEnum("Source", ["TSNE", "EMBEDDING", "TREE", "COSTS", "ORDER"])
"""The source of a suggestion."""
OPTIONS = {
    Source.TSNE: {"min_share", "pairs", "factor", "seeds", "data_root"},
    Source.EMBEDDING: {"min_share", "pairs", "factor"},
    Source.TREE: {"factor", "max_distance", "classes"},
    Source.COSTS: {"dangerous"},
    Source.ORDER: {"under", "over", "dangerous"},
}
"""The options that each source takes; the others are refused."""


@concern.command()
def check(
    file: Annotated[Path, typer.Argument(metavar="CONCERN", parser=file_or_name("concerns"))], as_json: AsJson = False
) -> None:
    """Show what each error costs by a concern file, and which errors are dangerous.

    What breaks a rule is listed with its line and column; the exit status is then 2. What is allowed, but may be an
    oversight, is a warning.

    Args:
        file: A concern file (YAML), or a name, such as traffic-lights.
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


@concern.command()
def suggest(
    context: typer.Context,
    source: Annotated[Source, typer.Option("--from")],
    out: Annotated[Path, typer.Option(dir_okay=False)],
    given: Annotated[str, typer.Argument(metavar="INPUT")],
    factor: float = 0.5,
    min_share: Annotated[float | None, typer.Option(show_default="0.01")] = None,
    pairs: int | None = None,
    seeds: Annotated[int, typer.Option(min=1)] = 5,
    max_distance: int = 2,
    classes: str | None = None,
    under: float = 1.0,
    over: float = 1.0,
    dangerous: Annotated[float | None, typer.Option(show_default="every error with a weight above 0")] = None,
    data_root: DataRoot = Path("data"),
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001  # read by its callback
) -> None:
    """Write a draft of a concern file for you to correct. Also draw the first t-SNE, or a two-dimensional embedding.

    Args:
        source: What to derive the suggestion from.
        out: The concern file to write.
        given: tsne: a data set, such as digits or mnist; package.module:function, a loader of your own; or an npz file
            with inputs (N, ...), labels (N,) and perhaps names in classes. embedding: an npz file with embedding (N, D)
            instead of inputs. tree: a YAML file of nested classes. costs: a CSV file with the class names in its first
            row. order: class names from low to high, separated by commas.
        factor: tsne, embedding and tree: the concern of a released pair.
        min_share: tsne and embedding: release pairs of classes with at least this share of each other's neighbours.
        pairs: tsne and embedding, instead of --min-share: how many ordered pairs to release; an even number, because
            both directions are released.
        seeds: tsne: how many runs to average, and to compare for each pair.
        max_distance: tree: release classes that are at most this many edges apart.
        classes: tree: all classes in index order, separated by commas. Default: the order of the tree.
        under: order: the cost of each class that a prediction is too low.
        over: order: the cost of each class that a prediction is too high.
        dangerous: costs and order: the weight from which on an error is dangerous, at most 1, which is the largest.
    """
    picture = out.with_suffix(".png")
    _check_options(context, source)
    _check_files(source, given, out, picture)

    from mpcs_torch.cli import drafts
    from mpcs_torch.concern import save_concern

    notes: list[Table | str] = []
    with refused_values(f"{given}: "):
        if source in (Source.TSNE, Source.EMBEDDING):
            spec, notes = drafts.from_neighbours(
                given,
                picture,
                seeds=seeds if source is Source.TSNE else None,
                data_root=data_root,
                min_share=min_share,
                pairs=pairs,
                factor=factor,
            )
        elif source is Source.TREE:
            spec = drafts.from_tree(Path(given), classes, max_distance=max_distance, factor=factor)
        elif source is Source.COSTS:
            spec = drafts.from_costs(Path(given), dangerous)
        else:
            spec = drafts.from_order(given, dangerous, under=under, over=over)
    comment = "\n".join(part.markdown() if isinstance(part, Table) else part for part in notes)
    save_concern(spec, out, comment=f"Suggested from {source} of {given}. This is a draft: correct it.\n{comment}")
    if notes:
        show("\n".join(map(text_of, notes)))
    released, size = int(spec.released().sum()), len(spec.classes)
    note(f"wrote {out}: {released} of {size} x {size} pairs released")
    if as_json:
        rows = [row for part in notes if isinstance(part, Table) for row in part.records()]
        print_json({"concern": out, "classes": spec.classes, "released": released, "pairs": rows})


def _check_options(context: typer.Context, source: Source) -> None:
    """Refuse options that the source does not take; they would change nothing."""
    for name in set.union(*OPTIONS.values()) - OPTIONS[source]:
        origin = context.get_parameter_source(name)
        if origin is not None and origin.name == "COMMANDLINE":
            takers = [str(taker) for taker, names in OPTIONS.items() if name in names]
            option = f"--{name.replace('_', '-')}"
            raise typer.BadParameter(f"only for --from {' or '.join(takers)}, but got {source}", param_hint=option)


def _check_files(source: Source, given: str, out: Path, picture: Path) -> None:
    if out.suffix == ".png":
        raise typer.BadParameter(f"{out}: a concern file is YAML and must not end in .png")
    if not out.parent.is_dir():
        raise typer.BadParameter(f"{out}: the folder {out.parent} does not exist", param_hint="--out")
    for path in (out, picture) if source in (Source.TSNE, Source.EMBEDDING) else (out,):
        if path.exists():
            raise FileExistsError(f"{path} exists: choose another file")
    is_file = source in (Source.TREE, Source.COSTS, Source.EMBEDDING) or given.endswith(".npz")
    if is_file and not Path(given).is_file():
        raise typer.BadParameter(f"{given}: no such file", param_hint="INPUT")
