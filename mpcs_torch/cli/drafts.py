"""Draft a concern (costs of errors) for ``mpcs concern suggest``, from a tree, costs or an order."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from mpcs_torch.concern import ConcernSpec, spec_from_tree
from mpcs_torch.concern.suggest import spec_from_costs, spec_from_order
from mpcs_torch.evaluation.files.formats import open_table
from mpcs_torch.evaluation.files.tables import to_text
from mpcs_torch.io.yaml_files import read_yaml_file


def from_tree(path: str) -> ConcernSpec:
    """Draft a concern from a YAML file with a tree of classes, by `spec_from_tree`."""
    return spec_from_tree(read_yaml_file(Path(path)).value)


def from_costs(path: str, *, dangerous: float | None) -> ConcernSpec:
    """Draft a concern from a table of costs below class names; errors with a weight >= ``dangerous`` are dangerous."""
    table = open_table(Path(path))
    costs = table.read(table.names).matrix(table.names).tolist()
    names = table.names if table.has_names else [to_text(name) for name in costs.pop(0)]
    return _with_threshold(spec_from_costs(costs, names), dangerous)


def from_order(
    classes: str, *, dangerous: float | None, under: float, over: float
) -> ConcernSpec:
    """Draft a concern for class names from low to high, with commas between.

    An error costs ``under`` for each class by which it is too low, or ``over`` for each class by which it is too high.
    """
    names = [name.strip() for name in classes.split(",")]
    return _with_threshold(spec_from_order(names, under=under, over=over), dangerous)


def _with_threshold(spec: ConcernSpec, dangerous: float | None) -> ConcernSpec:
    if dangerous is not None and not 0 < dangerous <= 1:
        raise ValueError(
            f"dangerous must be above 0 and at most 1, the largest weight, but got {dangerous}."
        )
    return replace(spec, dangerous=dangerous)


DRAFTS: Mapping[str, Callable[..., ConcernSpec]] = {
    "tree": from_tree,
    "costs": from_costs,
    "order": from_order,
}
"""The function that makes a draft, by source. Arguments: the input and options of ``mpcs concern suggest``."""
