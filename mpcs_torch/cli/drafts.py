"""Drafts of a concern for ``mpcs concern suggest``, from samples, an embedding, a tree, costs or an order."""

import csv
import sys
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import typer
from numpy.lib import format as npy
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.manifold import TSNE
from torch import Tensor

from mpcs_torch.cli.console import note
from mpcs_torch.cli.progress import counting_bar
from mpcs_torch.concern import ConcernError, ConcernSpec
from mpcs_torch.concern.rules import MAX_MATRIX_CLASSES
from mpcs_torch.concern.suggest import (
    count_releases,
    neighbour_shares,
    spec_from_costs,
    spec_from_neighbours,
    spec_from_order,
    spec_from_tree,
)
from mpcs_torch.errors import shown
from mpcs_torch.io.untrusted_files import FileRuleError, check_member, check_regular
from mpcs_torch.io.yaml_files import read_yaml_file
from mpcs_torch.plots.samples import embedding_figure
from mpcs_torch.tables import Table
from mpcs_torch.trainer.config.sections import DataConfig
from mpcs_torch.trainer.data import DATASETS, DataError


class Samples(NamedTuple):
    """Points with the class of each."""

    points: Tensor
    """(N, D), float32, finite."""
    labels: Tensor
    """(N,), int64 in [0, C)."""
    class_names: tuple[str, ...]
    """C different names."""


def load_samples(source: str, data_root: Path) -> Samples:
    """Load the training samples of a data set or of a loader, or the ``inputs`` of an npz file.

    Raises:
        BadParameter: If there is no such data set or loader.
        DataError: If the samples break a rule, or are missing.
    """
    if source.endswith(".npz"):
        return read_samples(Path(source), "inputs")
    name, _, ucr_set = source.partition("/")
    if ":" in source:
        sys.path.insert(0, str(Path.cwd()))  # where the user's own loader is likely to be
        section = {"path": source}
    elif name in DATASETS and (name == "ucr") == bool(ucr_set):
        section = {"name": name, **({"set": ucr_set} if ucr_set else {})}
    else:
        sets = f"{', '.join(DATASETS)}, with UCR sets as ucr/NAME"
        raise typer.BadParameter(f"{source}: must be one of {sets}; package.module:function; or an npz file")
    try:
        data = DataConfig.model_validate(section).load(data_root)
    except ValidationError as error:
        problems = ("".join(f"{key}: " for key in detail["loc"]) + detail["msg"] for detail in error.errors())
        raise typer.BadParameter(f"{source}: {'; '.join(problems)}") from None
    return _checked(source, "inputs", data.train.inputs.numpy(), data.train.labels.numpy(), data.class_names)


def read_samples(path: Path, key: str) -> Samples:
    """Read points under a key, ``labels`` and, if there are any, ``classes`` from an npz file, without pickle.

    Raises:
        DataError: If the file is not npz, or an array is missing or breaks a rule.
        FileNotFoundError: If there is no such file.
    """
    with _archive(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
        for needed in (key, "labels"):
            if needed not in names:
                raise DataError(f"{path}: must have the array {needed}, but has {shown(', '.join(names)) or 'none'}")
        points, labels = _array(path, archive, key), _array(path, archive, "labels")
        classes = _array(path, archive, "classes") if "classes" in names else None
    if classes is not None and (classes.ndim != 1 or classes.dtype.kind != "U"):
        raise DataError(
            f"{path}: classes must be a list of names, but has the shape {classes.shape} and dtype {classes.dtype}"
        )
    try:
        class_names = None if classes is None else tuple(map(str, classes))
    except (SystemError, ValueError):  # how numpy says that a character does not exist
        raise DataError(f"{path}: classes must be names of valid characters") from None
    return _checked(str(path), key, points, labels, class_names)


def _archive(path: Path) -> zipfile.ZipFile:
    """Open an npz file; refuse one whose arrays take far more than its size."""
    try:
        check_regular(path)
        archive = zipfile.ZipFile(path)
        for member in archive.infolist():
            check_member(member)
    except FileRuleError as error:
        raise DataError(f"{path}: {error}") from None
    except FileNotFoundError:
        raise
    except Exception:  # the parser of zip raises many kinds
        raise DataError(f"{path}: must be an npz file") from None
    return archive


def _array(path: Path, archive: zipfile.ZipFile, key: str) -> NDArray[Any]:
    try:
        with archive.open(f"{key}.npy") as file:
            array: NDArray[Any] = npy.read_array(file, allow_pickle=False)
    except Exception as error:  # the parsers of zip, of Python and of dtypes raise many kinds
        reason = shown(str(error)) or type(error).__name__
        raise DataError(f"{path}: {key} cannot be read without pickle: {reason}") from None
    return array


def _checked(
    source: str, key: str, points: NDArray[Any], labels: NDArray[Any], names: tuple[str, ...] | None
) -> Samples:
    """Return flat points with their labels, after checking every rule; name the classes by number if need be."""
    if points.ndim < 2 or 0 in points.shape or points.dtype.kind not in "fiub":
        rule = "must be numbers of shape (N, ...), not empty"
        raise DataError(f"{source}: {key} {rule}, but has the shape {points.shape} and dtype {points.dtype}")
    if labels.shape != points.shape[:1] or labels.dtype.kind not in "iu":
        rule = f"must be {len(points)} integers, one for each row of {key}"
        raise DataError(f"{source}: labels {rule}, but has the shape {labels.shape} and dtype {labels.dtype}")
    with np.errstate(over="ignore"):  # becomes infinite, which is refused
        flat = points.reshape(len(points), -1).astype(np.float32)
    if not np.isfinite(flat).all():
        row, column = np.argwhere(~np.isfinite(flat))[0]
        raise DataError(f"{source}: {key} must be finite in float32, but row {row} has {flat[row, column]}")
    size = MAX_MATRIX_CLASSES if names is None else len(names)
    if labels.min() < 0 or labels.max() >= size:
        wrong = labels[(labels < 0) | (labels >= size)][0]
        raise DataError(f"{source}: labels must be from 0 to {size - 1}, but has {wrong}")
    names = tuple(map(str, range(int(labels.max()) + 1))) if names is None else names
    try:
        ConcernSpec(names)
    except ConcernError as error:
        raise DataError(f"{source}: {error}") from None
    return Samples(torch.from_numpy(flat), torch.from_numpy(labels.astype(np.int64)), names)


PERPLEXITY = 30
"""Default of scikit-learn; a t-SNE needs more samples than this."""
MAX_SAMPLES = 3000
"""A t-SNE of this many samples takes seconds."""
Notes = list[Table | str]
"""Remarks that are printed beside a draft."""


def project(samples: Samples, seed: int) -> Samples:
    """Project samples to two dimensions by t-SNE: of a large data set, 3000 that the seed draws.

    The first seed starts from the principal components, as is scikit-learn's default; because every such start is the
    same, the other seeds start from random positions.
    """
    if len(samples.labels) <= PERPLEXITY:
        raise ValueError(f"a t-SNE needs more than {PERPLEXITY} samples, but got {len(samples.labels)}.")
    chosen = torch.randperm(len(samples.labels), generator=torch.Generator().manual_seed(seed))[:MAX_SAMPLES]
    tsne = TSNE(perplexity=PERPLEXITY, init="random" if seed else "pca", random_state=seed)
    embedding = torch.from_numpy(tsne.fit_transform(samples.points[chosen].numpy()))
    return Samples(embedding, samples.labels[chosen], samples.class_names)


def from_neighbours(
    source: str,
    picture: Path,
    *,
    seeds: int | None,
    data_root: Path,
    min_share: float | None,
    pairs: int | None,
    factor: float,
) -> tuple[ConcernSpec, Notes]:
    """Draft from the neighbours in t-SNE runs of a data set, or without ``seeds`` in the embedding in a file.

    Draw the first run, or the embedding if it has two dimensions, and return notes: which pairs are released, and how
    many runs agree on each.
    """
    draft = partial(spec_from_neighbours, min_share=min_share, pairs=pairs, factor=factor)
    if seeds is None:
        runs = [read_samples(Path(source), "embedding")]
    else:
        samples, runs = load_samples(source, data_root), []
        size = len(samples.class_names)
        draft(torch.ones(size, size), samples.class_names)  # fail before the slow part if the rule is broken
        with counting_bar("t-SNE", seeds) as advance:
            for seed in range(seeds):
                runs.append(project(samples, seed))
                advance()
    names = runs[0].class_names
    shares = torch.stack([neighbour_shares(run.points, run.labels, len(names)) for run in runs])
    spec = draft(shares.mean(dim=0), names)
    if runs[0].points.shape[1] == 2:
        embedding_figure(runs[0].points, runs[0].labels, spec.released(), names).savefig(picture, dpi=110)
        note(f"wrote {picture}")
    seen = torch.stack([torch.bincount(run.labels, minlength=len(names)) > 0 for run in runs]).all(dim=0)
    missing = [name for name, is_seen in zip(names, seen.tolist(), strict=True) if not is_seen]
    notes = [f"Classes without samples, whose pairs need your judgment: {', '.join(missing)}."] if missing else []
    return spec, [*notes, *_pairs_found(spec, shares, count_releases(shares, min_share=min_share, pairs=pairs))]


def _pairs_found(spec: ConcernSpec, shares: Tensor, counts: Tensor) -> Notes:
    """List the pairs of the draft and those that only single runs release, with their share of neighbours."""
    mean, runs, names = shares.mean(dim=0), len(shares), spec.classes
    mutual, drafted = torch.maximum(mean, mean.t()), spec.released()
    listed = ((counts > 0) | drafted).triu(1).nonzero().tolist()
    listed.sort(key=lambda pair: (not drafted[*pair], -mutual[*pair].item()))
    rows = [[f"{names[i]} and {names[j]}", f"{mutual[i, j]:.3f}"] for i, j in listed]
    if runs == 1:
        return [Table(["pair", "share of neighbours"], rows)]
    for row, (i, j) in zip(rows, listed, strict=True):
        row += ["yes" if drafted[i, j] else "no", f"{counts[i, j]} of {runs}"]
    text = f"Means over {runs} seeds of t-SNE, and the seeds that alone would release the pair:"
    return [text, Table(["pair", "share of neighbours", "in the draft", "seeds"], rows)]


def from_tree(path: Path, classes: str | None, *, max_distance: int, factor: float) -> ConcernSpec:
    """Draft from a YAML file of nested classes."""
    tree = read_yaml_file(path).value
    names = None if classes is None else _names(classes)
    return spec_from_tree(tree, classes=names, max_distance=max_distance, factor=factor)


def from_costs(path: Path, dangerous: float | None) -> ConcernSpec:
    """Draft from a CSV file of costs with the class names in its first row."""
    with path.open(newline="", encoding="utf-8") as file:
        names, *rows = csv.reader(file)
    return _with_threshold(spec_from_costs([[float(cell) for cell in row] for row in rows], names), dangerous)


def from_order(classes: str, dangerous: float | None, *, under: float, over: float) -> ConcernSpec:
    """Draft from class names from low to high, separated by commas."""
    return _with_threshold(spec_from_order(_names(classes), under=under, over=over), dangerous)


def _with_threshold(spec: ConcernSpec, dangerous: float | None) -> ConcernSpec:
    if dangerous is not None and not 0 < dangerous <= 1:
        raise ValueError(f"dangerous must be above 0 and at most 1, the largest weight, but got {dangerous}.")
    return replace(spec, dangerous=dangerous)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
