"""Names of the groups or clusters that rows belong to, as codes."""

from collections.abc import Mapping
from math import isnan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensor


class Groups(NamedTuple):
    """A column that says to which group each row belongs, such as a speaker or a recording condition."""

    names: list[str]
    """(G,), in the order in which they occur."""
    codes: Tensor
    """(N,), int64: indices of the names."""


def row_names(argument: str, values: Any, number: int) -> list[str]:
    """Return the names of what each row belongs to.

    Raises:
        ValueError: If there is not one name for each of the rows, or one is missing.
    """
    plain = values.tolist() if hasattr(values, "tolist") else values
    names = [] if isinstance(plain, str) else list(plain)
    if any(isinstance(name, list) for name in names):
        raise ValueError(f"{argument} must have one dimension, but has more.")
    if len(names) != number:
        raise ValueError(f"{argument} must be one name for each of the {number} rows, but got {len(names)}.")
    missing = next((row for row, name in enumerate(names) if _is_missing(name)), None)
    if missing is not None:
        raise ValueError(f"{argument} must name something for every row, but row {missing} (from 0) has none.")
    return [str(name) for name in names]


def row_weights(values: Any, number: int) -> Tensor:
    """Return the weight of each row: (n,), float64.

    Raises:
        ValueError: If there is not one for each of the rows, one is negative or not finite, or all are 0.
    """
    weights = as_tensor(values, "weights").double()
    if weights.shape != (number,):
        raise ValueError(f"weights must be (N,) for the {number} rows, but have shape {tuple(weights.shape)}.")
    if bad := (~((weights >= 0) & (weights < torch.inf))).nonzero().tolist():
        row = bad[0][0]
        raise ValueError(f"weights must be at least 0 and finite, but that of row {row} (from 0) is {weights[row]:g}.")
    return weights.cpu()


MAX_REPEATED = 10**8
"""The most rows that frequencies may stand for: each is added up."""


def row_frequencies(values: Any, number: int) -> Tensor:
    """Return how often each row is repeated: (n,), int64.

    Raises:
        ValueError: If there is not one for each of the rows, one is no whole number of at least 1, or the sum is more
            than `MAX_REPEATED`.
    """
    given = as_tensor(values, "frequencies").cpu()
    if given.shape != (number,):
        raise ValueError(f"frequencies must be (N,) for the {number} rows, but have shape {tuple(given.shape)}.")
    if bad := (~((given >= 1) & (given == given.long()))).nonzero().tolist():
        value = f"that of row {bad[0][0]} (from 0) is {given[bad[0][0]]:g}"
        raise ValueError(f"frequencies must be whole numbers of at least 1, but {value}.")
    if given.double().sum() > MAX_REPEATED:
        raise ValueError(f"frequencies must sum to at most {MAX_REPEATED}, but sum to {given.double().sum():g}.")
    return given.long()


def row_costs(values: Any, number: int, classes: int) -> Tensor:
    """Return what each decision costs for each row: (n, C), float64.

    Raises:
        ValueError: If there is not one cost for each row and class, or one is not finite.
    """
    costs = as_tensor(values, "costs").double()
    if costs.shape != (number, classes):
        rule = f"costs must be (N, C), ({number}, {classes}) here: of each row and decision"
        raise ValueError(f"{rule}, but have shape {tuple(costs.shape)}.")
    if bad := (~costs.isfinite()).nonzero().tolist():
        row, label = bad[0]
        raise ValueError(f"costs must be finite, but that of row {row}, decision {label} is {costs[row, label]:g}.")
    return costs.cpu()


def group_codes(argument: str, values: Any, number: int) -> Groups:
    """Return the groups of rows, in the order in which they occur.

    Raises:
        ValueError: As `row_names`.
    """
    if isinstance(values, Groups):
        if len(values.codes) != number:
            raise ValueError(f"{argument} must be one name for each of the {number} rows, but got {len(values.codes)}.")
        return values
    codes = dict[str, int]()
    of_rows = [codes.setdefault(name, len(codes)) for name in row_names(argument, values, number)]
    return Groups(list(codes), torch.tensor(of_rows, dtype=torch.int64))


def codes_by_column(groups: Any, number: int) -> dict[str, Groups]:
    """Return the groups of rows by column; None has no columns.

    Raises:
        ValueError: If they are not named by column, or as `row_names`.
    """
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise ValueError(f"groups must map columns to the names of rows, but got a {type(groups).__name__}.")
    return {column: group_codes(f"groups[{column!r}]", values, number) for column, values in groups.items()}


def _is_missing(name: object) -> bool:
    is_nan = isinstance(name, float) and isnan(name)
    return name is None or is_nan or type(name).__name__ in ("NAType", "NaTType") or name == ""  # pandas'
