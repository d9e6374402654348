"""Draft a concern (costs of errors) for ``mpcs concern suggest``, from samples, a tree, costs or an order."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
import typer
from torch import Tensor

from mpcs_torch.cli.console import counting_bar
from mpcs_torch.cli.options import refused_values
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.checks import MAX_MATRIX_CLASSES
from mpcs_torch.concern.suggest import (
    count_releases,
    neighbour_shares,
    spec_from_costs,
    spec_from_neighbours,
    spec_from_order,
    spec_from_tree,
)
from mpcs_torch.errors import DataError
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.tables import distinct_texts, to_number, to_text
from mpcs_torch.io.yaml_files import read_yaml_file
from mpcs_torch.tables import Table

LABELS = "labels"
"""The column of labels in a file of samples."""


class LabelledPoints(NamedTuple):
    """Labelled samples: N points, and the class of each point."""

    points: Tensor
    """The points, (N, ...); after `_checked`, finite float32 (N, D)."""
    labels: Tensor
    """The class of each point, (N,), int64 in [0, C)."""
    class_names: tuple[str, ...]
    """The names of the C classes, all different."""


class Draft(NamedTuple):
    """A draft of a concern (``spec``), notes to print, and a figure to save (None if there is no figure)."""

    spec: ConcernSpec
    notes: Sequence[Table | str] = ()
    figure: Any = None


def load_samples(source: str, data_root: Path) -> LabelledPoints:
    """Load training samples from a data set (given by name), a loader (package.module:function) or a file.

    Raises:
        BadParameter: If there is no such data set or loader.
        MpcsError: If the samples break a rule, or are missing.
    """
    if ":" not in source and Path(source).suffix:
        return read_samples(Path(source))
    from mpcs_torch.trainer.config.sections import DataConfig
    from mpcs_torch.trainer.data import DATASETS

    name, _, ucr_set = source.partition("/")
    if ":" in source:
        section = {"path": source}
    elif name in DATASETS and (name == "ucr") == bool(ucr_set):
        section = {"name": name, **({"set": ucr_set} if ucr_set else {})}
    else:
        sets = f"{', '.join(DATASETS)}, with UCR sets as ucr/NAME"
        raise typer.BadParameter(f"{source}: must be one of {sets}; package.module:function; or a file")
    with refused_values(f"{source}: "):
        data = DataConfig.model_validate(section).load(data_root)
    return _checked(source, LabelledPoints(data.train.inputs, data.train.labels, data.class_names))


def read_samples(path: Path) -> LabelledPoints:
    """Read samples from a file in any format of `open_table`: the column ``labels``, and numbers in all other columns.

    Raises:
        MpcsError: If the file cannot be read, or a value breaks a rule.
        FileNotFoundError: If there is no such file.
    """
    table = open_table(path)
    table.check_columns([LABELS])
    features = [name for name in table.names if name != LABELS]
    texts, columns = distinct_texts(table, LABELS, MAX_MATRIX_CLASSES), table.read(table.names)
    if not features or "" in texts:
        raise DataError(f"{path}: must have columns of numbers beside {LABELS}, and no empty label")
    names = sorted(texts, key=lambda name: (to_number(name) or 0, name))  # 9 before 10
    places = {name: place for place, name in enumerate(names)}
    labels = columns.codes(LABELS, lambda value: places[to_text(value)], "")
    return _checked(str(path), LabelledPoints(columns.matrix(features), labels, tuple(names)))


def _checked(source: str, samples: LabelledPoints) -> LabelledPoints:
    """Return ``samples`` with points as float32 (N, D); refuse invalid class names, and points that are not finite."""
    points = samples.points.flatten(1).float()
    if not points.isfinite().all():
        row, column = (~points.isfinite()).nonzero()[0].tolist()
        raise DataError(f"{source}: inputs must be finite in float32, but sample {row} has {points[row, column]:g}")
    ConcernSpec(samples.class_names)
    return samples._replace(points=points)


def project(samples: LabelledPoints, seed: int) -> LabelledPoints:
    """Choose at most 3000 samples at random by ``seed``, and project their points by t-SNE to two dimensions, (n, 2).

    Seed 0 starts from the principal components, and other seeds start from random positions.
    """
    chosen = torch.randperm(len(samples.labels), generator=torch.Generator().manual_seed(seed))[:3000]
    from sklearn.manifold import TSNE

    tsne = TSNE(init="random" if seed else "pca", random_state=seed)
    embedding = torch.from_numpy(tsne.fit_transform(samples.points[chosen].numpy()))
    return LabelledPoints(embedding, samples.labels[chosen], samples.class_names)


def from_tsne(source: str, *, seeds: int, data_root: Path = Path(), **rule: Any) -> Draft:
    """Draft a concern that releases (tolerates) confusions of classes that are neighbours in t-SNE projections.

    The samples of ``source`` are projected with ``seeds`` different seeds. `spec_from_neighbours`, with the arguments
    in ``rule``, chooses confusions by the mean over the projections. The figure shows the first projection. The notes
    say how many projections alone would release each pair of classes.
    """
    from mpcs_torch.plots.confusion import embedding_figure

    samples, runs = load_samples(source, data_root), []
    names, size = samples.class_names, len(samples.class_names)
    spec_from_neighbours(torch.ones(size, size), names, **rule)  # fail early if the rule is broken
    with counting_bar("t-SNE", seeds) as advance:
        for seed in range(seeds):
            runs.append(project(samples, seed))
            advance()
    shares = torch.stack([neighbour_shares(run.points, run.labels, size) for run in runs])
    spec = spec_from_neighbours(shares.mean(dim=0), names, **rule)
    figure = embedding_figure(runs[0].points, runs[0].labels, spec.released(), names)
    seen = torch.stack([torch.bincount(run.labels, minlength=size) > 0 for run in runs]).all(dim=0)
    missing = [name for name, is_seen in zip(names, seen.tolist(), strict=True) if not is_seen]
    notes = [f"Classes without samples, whose pairs need your judgment: {', '.join(missing)}."] if missing else []
    counts = count_releases(shares, pairs=rule["pairs"])
    return Draft(spec, [*notes, *_pairs_found(spec, shares, counts)], figure)


def _pairs_found(spec: ConcernSpec, shares: Tensor, counts: Tensor) -> list[Table | str]:
    """Return a text and a table of the class pairs that ``spec`` or any run releases; those of ``spec`` come first."""
    mean, runs, names = shares.mean(dim=0), len(shares), spec.classes
    mutual, drafted = torch.maximum(mean, mean.t()), spec.released()
    listed = ((counts > 0) | drafted).triu(1).nonzero().tolist()
    listed.sort(key=lambda pair: (not drafted[*pair], -mutual[*pair].item()))
    rows = [
        [
            f"{names[i]} and {names[j]}",
            f"{mutual[i, j]:.3f}",
            "yes" if drafted[i, j] else "no",
            f"{counts[i, j]} of {runs}",
        ]
        for i, j in listed
    ]
    text = f"Means over {runs} seeds of t-SNE, and the seeds that alone would release the pair:"
    return [text, Table(["pair", "share of neighbours", "in the draft", "seeds"], rows)]


def from_tree(path: str) -> Draft:
    """Draft a concern from a YAML file with a tree of classes, by `spec_from_tree`."""
    return Draft(spec_from_tree(read_yaml_file(Path(path)).value))


def from_costs(path: str, *, dangerous: float | None) -> Draft:
    """Draft a concern from a table of costs below class names; errors with a weight >= ``dangerous`` are dangerous."""
    table = open_table(Path(path))
    costs = table.read(table.names).matrix(table.names).tolist()
    names = table.names if table.has_names else [to_text(name) for name in costs.pop(0)]
    return _with_threshold(spec_from_costs(costs, names), dangerous)


def from_order(classes: str, *, dangerous: float | None, under: float, over: float) -> Draft:
    """Draft a concern for class names from low to high, with commas between.

    An error costs ``under`` for each class by which it is too low, or ``over`` for each class by which it is too high.
    """
    names = [name.strip() for name in classes.split(",")]
    return _with_threshold(spec_from_order(names, under=under, over=over), dangerous)


def _with_threshold(spec: ConcernSpec, dangerous: float | None) -> Draft:
    if dangerous is not None and not 0 < dangerous <= 1:
        raise ValueError(f"dangerous must be above 0 and at most 1, the largest weight, but got {dangerous}.")
    return Draft(replace(spec, dangerous=dangerous))


DRAFTS: Mapping[str, Callable[..., Draft]] = {
    "tsne": from_tsne,
    "tree": from_tree,
    "costs": from_costs,
    "order": from_order,
}
"""The function that makes a draft, by source. Arguments: the input and options of ``mpcs concern suggest``."""
