"""``mpcs concern``: drafts of concern files."""

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
    cls=FlagGroup,
    help="Draft a concern file, which says how much each error matters.",
    no_args_is_help=True,
    add_completion=False,
)


class Source(StrEnum):
    """What a suggestion is derived from."""

    TSNE = "tsne"
    TREE = "tree"
    COSTS = "costs"
    ORDER = "order"


@concern.callback()
def explain() -> None:
    """Make Typer keep ``suggest`` as a command of its own."""


@concern.command()
def suggest(
    source: Annotated[Source, typer.Option("--from", help="What to derive the suggestion from.")],
    out: Annotated[Path, typer.Option(dir_okay=False, help="The concern file to write.")],
    given: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="tsne: a data set, such as digits or mnist; tree: a YAML file of nested classes; costs: a CSV file "
            "with the class names in its first row; order: class names separated by commas.",
        ),
    ],
    factor: Annotated[float, typer.Option(help="tsne and tree: the concern of a released pair.")] = 0.5,
    min_share: Annotated[
        float, typer.Option(help="tsne: release pairs of classes with at least this share of each other's neighbours.")
    ] = 0.01,
    max_distance: Annotated[
        int, typer.Option(help="tree: release classes that are at most this many edges apart.")
    ] = 2,
    classes: Annotated[
        str | None,
        typer.Option(help="tree: all classes in index order, separated by commas. Default: the order of the tree."),
    ] = None,
    data_root: DataRoot = Path("data"),
) -> None:
    """Write a draft of a concern file, for you to correct. With --from tsne, also draw the t-SNE next to it."""
    picture = out.with_suffix(".png")
    _check_files(source, given, out, picture)

    from mpcs_torch.concern import save_concern

    if source is Source.TSNE:
        from mpcs_torch.cli.tsne import spec_from_tsne

        spec = spec_from_tsne(given, data_root, picture, min_share=min_share, factor=factor)
    elif source is Source.TREE:
        names = None if classes is None else _names(classes)
        spec = _checked(lambda: _from_tree(Path(given), names, max_distance=max_distance, factor=factor))
    elif source is Source.COSTS:
        spec = _checked(lambda: _from_costs(Path(given)))
    else:
        spec = _checked(lambda: _from_order(given))
    save_concern(spec, out, comment=f"Suggested from {source} of {given}. This is a draft: correct it.")
    typer.echo(
        f"wrote {out}: {int(spec.released().sum())} of {len(spec.class_names)} x {len(spec.class_names)} pairs released"
    )


def _check_files(source: Source, given: str, out: Path, picture: Path) -> None:
    if out.suffix == ".png":
        raise typer.BadParameter(f"{out}: a concern file is YAML and must not end in .png")
    for path in (out, picture) if source is Source.TSNE else (out,):
        if path.exists():
            raise FileExistsError(f"{path} exists: choose another file")
    if source in (Source.TREE, Source.COSTS) and not Path(given).is_file():
        raise typer.BadParameter(f"{given}: no such file", param_hint="INPUT")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]


def _from_tree(path: Path, classes: list[str] | None, *, max_distance: int, factor: float) -> "ConcernSpec":
    from mpcs_torch.concern.suggest import spec_from_tree
    from mpcs_torch.yaml_files import parse_yaml

    tree = parse_yaml(path.read_text(encoding="utf-8"))
    return spec_from_tree(tree, classes=classes, max_distance=max_distance, factor=factor)


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
