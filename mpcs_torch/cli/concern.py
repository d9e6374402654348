"""``mpcs concern``: drafts of what errors matter."""

import csv
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpcs_torch.cli.groups import FlagGroup
from mpcs_torch.cli.options import DataRoot

if TYPE_CHECKING:
    from mpcs_torch.concern import ConcernSpec

concern = typer.Typer(
    cls=FlagGroup, help="Draft a concern file: which errors matter less.", no_args_is_help=True, add_completion=False
)


class Source(StrEnum):
    """What a suggestion rests on."""

    TSNE = "tsne"
    TREE = "tree"
    COSTS = "costs"
    ORDER = "order"


@concern.callback()
def explain() -> None:
    """Keep `suggest` a verb of its own."""


@concern.command()
def suggest(
    source: Annotated[Source, typer.Option("--from", help="What the suggestion rests on.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The concern file to write.")],
    given: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="tsne: a data set of ours, such as digits or mnist; tree: a YAML file of nested classes; costs: a CSV "
            "file, class names in its first row; order: class names, separated by commas.",
        ),
    ],
    factor: Annotated[float, typer.Option(help="Concern of a released pair (tsne, tree).")] = 0.5,
    least_share: Annotated[
        float, typer.Option(help="tsne: release classes that have this share of one another's neighbours.")
    ] = 0.01,
    farthest: Annotated[int, typer.Option(help="tree: release classes up to so many edges apart.")] = 2,
    classes: Annotated[
        str | None, typer.Option(help="tree: all classes in index order, separated by commas; else the tree's order.")
    ] = None,
    data_root: DataRoot = Path("data"),
) -> None:
    """Write a draft for somebody to correct who knows what the errors do; a t-SNE is drawn beside it."""
    picture = out.with_suffix(".png")
    _check_files(source, given, out, picture)

    from mpcs_torch.concern import save_concern

    if source is Source.TSNE:
        from mpcs_torch.cli.tsne import spec_from_tsne

        spec = spec_from_tsne(given, data_root, picture, least_share=least_share, factor=factor)
    elif source is Source.TREE:
        names = None if classes is None else _names(classes)
        spec = _checked(lambda: _from_tree(Path(given), names, farthest=farthest, factor=factor))
    elif source is Source.COSTS:
        spec = _checked(lambda: _from_costs(Path(given)))
    else:
        spec = _checked(lambda: _from_order(given))
    save_concern(spec, out, comment=f"Suggested from {source} of {given}. A draft: correct it.")
    typer.echo(
        f"wrote {out}: {int(spec.released().sum())} of {len(spec.class_names)} x {len(spec.class_names)} pairs released"
    )


def _check_files(source: Source, given: str, out: Path, picture: Path) -> None:
    if out.suffix == ".png":
        raise typer.BadParameter(f"{out}: a concern file is YAML, and a picture may stand beside it")
    for path in (out, picture) if source is Source.TSNE else (out,):
        if path.exists():
            raise FileExistsError(f"{path} exists: choose another file")
    if source in (Source.TREE, Source.COSTS) and not Path(given).is_file():
        raise typer.BadParameter(f"{given}: no such file", param_hint="INPUT")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _from_tree(path: Path, classes: list[str] | None, *, farthest: int, factor: float) -> "ConcernSpec":
    from mpcs_torch.concern.suggest import spec_from_tree
    from mpcs_torch.yaml_files import parse_yaml

    tree = parse_yaml(path.read_text(encoding="utf-8"))
    return spec_from_tree(tree, classes=classes, farthest=farthest, factor=factor)


def _from_costs(path: Path) -> "ConcernSpec":
    from mpcs_torch.concern.suggest import spec_from_costs

    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    return spec_from_costs([[float(cell) for cell in row] for row in rows], names)


def _from_order(given: str) -> "ConcernSpec":
    from mpcs_torch.concern.suggest import spec_from_order

    return spec_from_order(_names(given))


def _checked(make: "Callable[[], ConcernSpec]") -> "ConcernSpec":
    try:
        return make()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
