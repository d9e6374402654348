"""Drafts of a concern for ``mpcs concern suggest``, from samples, a tree, costs or an order."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import typer
from numpy.lib.npyio import NpzFile
from numpy.typing import NDArray
from torch import Tensor

from mpcs_torch.cli.options import refused_values
from mpcs_torch.cli.progress import counting_bar
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
from mpcs_torch.errors import DataError, shown
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.reading import reading
from mpcs_torch.evaluation.files.tables import text_of
from mpcs_torch.io.untrusted_files import FileRuleError, check_member
from mpcs_torch.io.yaml_files import read_yaml_file
from mpcs_torch.tables import Table


class LabelledPoints(NamedTuple):
    """Points, and the class of each point."""

    points: Tensor
    """The points, (N, D), float32, finite."""
    labels: Tensor
    """The class of each point, (N,), int64 in [0, C)."""
    class_names: tuple[str, ...]
    """The names of the C classes, all different."""


class Draft(NamedTuple):
    """A draft of a concern, with the notes and the figure that are shown beside the draft."""

    spec: ConcernSpec
    notes: Sequence[Table | str] = ()
    figure: Any = None


def load_samples(source: str, data_root: Path) -> LabelledPoints:
    """Load the training samples of a data set or of a loader, or the arrays of an npz file.

    Raises:
        BadParameter: If there is no such data set or loader.
        DataError: If the samples break a rule, or are missing.
    """
    if source.endswith(".npz"):
        return read_samples(Path(source))
    from mpcs_torch.trainer.config.sections import DataConfig
    from mpcs_torch.trainer.data import DATASETS

    name, _, ucr_set = source.partition("/")
    if ":" in source:
        sys.path.insert(0, str(Path.cwd()))  # where the user's own loader is likely to be
        section = {"path": source}
    elif name in DATASETS and (name == "ucr") == bool(ucr_set):
        section = {"name": name, **({"set": ucr_set} if ucr_set else {})}
    else:
        sets = f"{', '.join(DATASETS)}, with UCR sets as ucr/NAME"
        raise typer.BadParameter(f"{source}: must be one of {sets}; package.module:function; or an npz file")
    with refused_values(f"{source}: "):
        data = DataConfig.model_validate(section).load(data_root)
    arrays = {"inputs": data.train.inputs.numpy(), "labels": data.train.labels.numpy()}
    return _checked(source, {**arrays, "classes": np.array(data.class_names)})


def read_samples(path: Path) -> LabelledPoints:
    """Read ``inputs``, ``labels`` and, if there are any, ``classes`` from an npz file, without pickle.

    Raises:
        MpcsError: If the file is not npz, or an array is missing or breaks a rule.
        FileNotFoundError: If there is no such file.
    """
    with reading(path), path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
        if not isinstance(archive, NpzFile) or archive.zip is None:
            raise FileRuleError("must be an npz file")
        for member in archive.zip.infolist():
            check_member(member)
        names = archive.files
        known = [name for name in ("inputs", "labels", "classes") if name in names]
        arrays: dict[str, NDArray[Any]] = {name: np.asarray(archive[name]) for name in known}
    for needed in ("inputs", "labels"):
        if needed not in arrays:
            raise DataError(f"{path}: must have the array {needed}, but has {shown(', '.join(names)) or 'none'}")
    return _checked(str(path), arrays)


def _checked(source: str, arrays: Mapping[str, NDArray[Any]]) -> LabelledPoints:
    """Check the arrays; return flattened points with their labels. Classes without names get numbers as names."""
    points, labels = arrays["inputs"], arrays["labels"]
    classes = arrays.get("classes", np.arange(MAX_MATRIX_CLASSES).astype(str))

    def check(is_kept: bool, rule: str, array: NDArray[Any]) -> None:
        if not is_kept:
            raise DataError(f"{source}: {rule}, but has the shape {array.shape} and dtype {array.dtype}")

    are_points = points.ndim > 1 and 0 not in points.shape and points.dtype.kind in "fiub"
    check(are_points, "inputs must be numbers of shape (N, ...), not empty", points)
    are_labels = labels.shape == points.shape[:1] and labels.dtype.kind in "iu"
    check(are_labels, f"labels must be {len(points)} integers, one for each row of inputs", labels)
    check(classes.ndim == 1 and classes.dtype.kind == "U", "classes must be a list of names", classes)
    with np.errstate(over="ignore"):  # numbers that overflow become infinite, and are refused below
        flat = points.reshape(len(points), -1).astype(np.float32)
    if not np.isfinite(flat).all():
        row, column = np.argwhere(~np.isfinite(flat))[0]
        raise DataError(f"{source}: inputs must be finite in float32, but row {row} has {flat[row, column]}")
    if labels.min() < 0 or labels.max() >= len(classes):
        wrong = labels[(labels < 0) | (labels >= len(classes))][0]
        raise DataError(f"{source}: labels must be from 0 to {len(classes) - 1}, but has {wrong}")
    try:
        names = tuple(map(str, classes if "classes" in arrays else classes[: labels.max() + 1]))
    except (SystemError, ValueError):  # numpy's errors for a character that does not exist
        raise DataError(f"{source}: classes must be names of valid characters") from None
    ConcernSpec(names)  # refuses too few names, and equal names
    return LabelledPoints(torch.from_numpy(flat), torch.from_numpy(labels.astype(np.int64)), names)


def project(samples: LabelledPoints, seed: int) -> LabelledPoints:
    """Project samples to two dimensions by t-SNE; of a large data set, ``seed`` draws 3000 samples.

    Seed 0 starts from the principal components, as is scikit-learn's default. This start is always the same, so the
    other seeds start from random positions.
    """
    chosen = torch.randperm(len(samples.labels), generator=torch.Generator().manual_seed(seed))[:3000]
    from sklearn.manifold import TSNE

    tsne = TSNE(init="random" if seed else "pca", random_state=seed)
    embedding = torch.from_numpy(tsne.fit_transform(samples.points[chosen].numpy()))
    return LabelledPoints(embedding, samples.labels[chosen], samples.class_names)


def from_tsne(source: str, *, seeds: int, data_root: Path = Path(), **rule: Any) -> Draft:
    """Draft a concern from the neighbours of samples in t-SNE runs.

    The figure shows the first run. The notes list the pairs that the draft or any single run releases, and how many
    runs agree on each pair. ``rule`` has the arguments of `spec_from_neighbours`.
    """
    from mpcs_torch.plots.samples import embedding_figure

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
    counts = count_releases(shares, min_share=rule["min_share"], pairs=rule["pairs"])
    return Draft(spec, [*notes, *_pairs_found(spec, shares, counts)], figure)


def _pairs_found(spec: ConcernSpec, shares: Tensor, counts: Tensor) -> list[Table | str]:
    """List the pairs that the draft or any single run releases, with their shares of neighbours."""
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
    """Draft a concern from a YAML file of nested classes."""
    return Draft(spec_from_tree(read_yaml_file(Path(path)).value))


def from_costs(path: str, *, dangerous: float | None) -> Draft:
    """Draft a concern from a table of costs with the class names in its first row."""
    table = open_table(Path(path))
    costs = table.read(table.names).matrix(table.names).tolist()
    names = table.names if table.has_names else [text_of(name) for name in costs.pop(0)]
    return _with_threshold(spec_from_costs(costs, names), dangerous)


def from_order(classes: str, *, dangerous: float | None, under: float, over: float) -> Draft:
    """Draft a concern from class names in order from low to high, separated by commas."""
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
"""The functions that make drafts, by source; each takes the input and the options of ``mpcs concern suggest``."""
