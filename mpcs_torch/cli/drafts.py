"""Read the input of ``mpcs concern suggest`` and draft a spec from it; the options come from the command line."""

import csv
from dataclasses import replace
from pathlib import Path

from mpcs_torch.cli.samples import load_samples, read_samples
from mpcs_torch.cli.tsne import Notes, Rule, draft_from_embedding, draft_from_tsne
from mpcs_torch.concern import ConcernSpec
from mpcs_torch.concern.suggest import spec_from_costs, spec_from_order, spec_from_tree
from mpcs_torch.io.yaml_files import read_yaml_file


def from_neighbours(
    given: str, rule: Rule, picture: Path, *, seeds: int | None, data_root: Path
) -> tuple[ConcernSpec, Notes]:
    """Draft from t-SNE runs of a data set, or without ``seeds`` from the embedding in a file; return notes as well."""
    if seeds is None:
        return draft_from_embedding(read_samples(Path(given), "embedding"), rule, picture)
    return draft_from_tsne(load_samples(given, data_root), seeds, rule, picture)


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


def from_order(given: str, dangerous: float | None, *, under: float, over: float) -> ConcernSpec:
    """Draft from class names from low to high, separated by commas."""
    return _with_threshold(spec_from_order(_names(given), under=under, over=over), dangerous)


def _with_threshold(spec: ConcernSpec, dangerous: float | None) -> ConcernSpec:
    if dangerous is not None and not 0 < dangerous <= 1:
        raise ValueError(f"dangerous must be above 0 and at most 1, the largest weight, but got {dangerous}.")
    return replace(spec, dangerous=dangerous)


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",")]
