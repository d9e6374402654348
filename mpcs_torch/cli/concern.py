"""``mpcs concern``: drafts of what errors matter."""

import csv
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import torch
import typer

from mpcs_torch.cli.options import DataRoot
from mpcs_torch.concern import ConcernSpec, save_concern
from mpcs_torch.concern.suggest import (
    neighbour_shares,
    spec_from_costs,
    spec_from_neighbours,
    spec_from_order,
    spec_from_tree,
)
from mpcs_torch.plots.embedding import embedding_figure
from mpcs_torch.trainer.config import DataConfig
from mpcs_torch.trainer.data import DATASETS
from mpcs_torch.yaml_files import parse_yaml

concern = typer.Typer(help="Draft a concern file: which errors matter less.", no_args_is_help=True)
SMALLEST = 30
SAMPLES = 3000
"""As many as a t-SNE gets through in seconds."""


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
    out: Annotated[Path, typer.Option(help="The concern file to write.")],
    given: Annotated[
        str,
        typer.Argument(
            metavar="INPUT",
            help="tsne: a data set of ours, such as digits or mnist; tree: a YAML file of nested classes; costs: a CSV "
            "file, class names in its first row; order: class names, apart by commas.",
        ),
    ],
    factor: Annotated[float, typer.Option(help="Concern of a released pair (tsne, tree).")] = 0.5,
    least_share: Annotated[
        float, typer.Option(help="tsne: release classes that have this share of one another's neighbours.")
    ] = 0.01,
    farthest: Annotated[int, typer.Option(help="tree: release classes up to so many edges apart.")] = 2,
    classes: Annotated[
        str | None, typer.Option(help="tree: all classes in index order, apart by commas; else the tree's order.")
    ] = None,
    data_root: DataRoot = Path("data"),
) -> None:
    """Write a draft for somebody to correct who knows what the errors do; a t-SNE is drawn beside it."""
    for path in [out, *([out.with_suffix(".png")] if source is Source.TSNE else [])]:
        if path.exists():
            raise FileExistsError(f"{path} is there already: choose another file")
    if out.suffix == ".png":
        raise typer.BadParameter(f"{out}: a concern file is YAML, and a picture may stand beside it")
    if source is Source.TSNE:
        spec = _from_tsne(given, data_root, out.with_suffix(".png"), least_share=least_share, factor=factor)
    elif source is Source.TREE:
        names = None if classes is None else [name.strip() for name in classes.split(",")]
        spec = _checked(
            lambda: spec_from_tree(
                parse_yaml(Path(given).read_text(encoding="utf-8")), classes=names, farthest=farthest, factor=factor
            )
        )
    elif source is Source.COSTS:
        spec = _from_costs(Path(given))
    else:
        spec = spec_from_order([name.strip() for name in given.split(",")])
    save_concern(spec, out, comment=f"Suggested from {source} of {given}. A draft: correct it.")
    typer.echo(
        f"wrote {out}: {int(spec.released().sum())} of {len(spec.class_names)} x {len(spec.class_names)} pairs released"
    )


def _from_tsne(name: str, data_root: Path, picture: Path, *, least_share: float, factor: float) -> ConcernSpec:
    from sklearn.manifold import TSNE

    name, _, ucr_set = name.partition("/")
    if name not in DATASETS or (name == "ucr") != bool(ucr_set):
        raise typer.BadParameter(f"{name}: must be among {', '.join(DATASETS)}, the UCR sets as ucr/NAME")
    data = DataConfig.model_validate({"name": name, **({"set": ucr_set} if ucr_set else {})}).load(data_root)
    if len(data.train_labels) <= SMALLEST:
        raise typer.BadParameter(
            f"{name}: a t-SNE needs more than {SMALLEST} samples, but it has {len(data.train_labels)}"
        )
    chosen = torch.randperm(len(data.train_labels), generator=torch.Generator().manual_seed(0))[:SAMPLES]
    inputs, labels = data.train_inputs[chosen].flatten(1), data.train_labels[chosen]
    embedding = torch.from_numpy(TSNE(random_state=0).fit_transform(inputs.numpy()))
    shares = neighbour_shares(embedding, labels, len(data.class_names))
    spec = spec_from_neighbours(shares, data.class_names, least_share=least_share, factor=factor)
    embedding_figure(embedding, labels, spec.released(), data.class_names).savefig(picture, dpi=110)
    typer.echo(f"wrote {picture}")
    return spec


def _from_costs(path: Path) -> ConcernSpec:
    def read() -> ConcernSpec:
        with path.open(newline="", encoding="utf-8") as file:
            names, *rows = csv.reader(file)
        return spec_from_costs([[float(cell) for cell in row] for row in rows], names)

    return _checked(read)


def _checked(make: Callable[[], ConcernSpec]) -> ConcernSpec:
    try:
        return make()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
