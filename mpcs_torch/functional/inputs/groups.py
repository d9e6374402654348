"""Per-row arguments: group and cluster names as codes, weights, frequencies and costs."""

from collections.abc import Mapping
from math import isnan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.functional.inputs.arrays import as_tensor


class Groups(NamedTuple):
    """A grouping column, such as the speaker or the recording condition of each row."""

    names: list[str]
    """(G,), in order of first occurrence."""
    codes: Tensor
    """(N,), int64: indices of the names."""


def row_names(argument: str, values: Any, number: int) -> list[str]:
    """Return the name of the group of each row.

    Raises:
        ValueError: If the number of names is not the number of rows, or a name is missing.
    """
    plain = values.tolist() if hasattr(values, "tolist") else values
    names = [] if isinstance(plain, str) else list(plain)
    if any(isinstance(name, list) for name in names):
        raise ValueError(f"{argument} must have one dimension, but has more.")
    if len(names) != number:
        raise ValueError(f"{argument} must be one name for each of the {number} rows, but got {len(names)}.")
    missing = next((row for row, name in enumerate(names) if _is_missing(name)), None)
    if missing is not None:
        raise ValueError(f"{argument} must have a name for every row, but row {missing} (from 0) has none.")
    return [str(name) for name in names]


def row_weights(values: Any, number: int) -> Tensor:
    """Return the weight of each row: (n,), float64.

    Raises:
        ValueError: If the shape is not (n,), or a weight is negative or not finite.
    """
    weights = as_tensor(values, "weights").double()
    if weights.shape != (number,):
        raise ValueError(f"weights must be (N,) for the {number} rows, but have shape {tuple(weights.shape)}.")
    if bad := (~((weights >= 0) & (weights < torch.inf))).nonzero().tolist():
        row = bad[0][0]
        raise ValueError(f"weights must be at least 0 and finite, but that of row {row} (from 0) is {weights[row]:g}.")
    return weights.cpu()


MAX_REPEATED = 10**8
"""The largest sum of frequencies."""


def row_frequencies(values: Any, number: int) -> Tensor:
    """Return the number of repetitions of each row: (n,), int64.

    Raises:
        ValueError: If the shape is not (n,), a frequency is not a whole number >= 1, or their sum exceeds
            `MAX_REPEATED`.
    """
    counts = as_tensor(values, "frequencies").cpu()
    if counts.shape != (number,):
        raise ValueError(f"frequencies must be (N,) for the {number} rows, but have shape {tuple(counts.shape)}.")
    if bad := (~((counts >= 1) & (counts == counts.long()))).nonzero().tolist():
        value = f"that of row {bad[0][0]} (from 0) is {counts[bad[0][0]]:g}"
        raise ValueError(f"frequencies must be whole numbers of at least 1, but {value}.")
    if counts.double().sum() > MAX_REPEATED:
        rule = f"frequencies must sum to at most {MAX_REPEATED}"
        raise ValueError(f"{rule}, but sum to {counts.double().sum():g}.")
    return counts.long()


def row_costs(values: Any, number: int, classes: int) -> Tensor:
    """Return the cost of each decision for each row: (n, C), float64.

    Raises:
        ValueError: If the shape is not (n, C), or a cost is not finite.
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
    """Return the group codes of rows.

    Raises:
        ValueError: As `row_names`.
    """
    if isinstance(values, Groups):
        if len(values.codes) != number:
            raise ValueError(f"{argument} must be one name for each of the {number} rows, but got {len(values.codes)}.")
        return values
    codes = dict[str, int]()
    row_codes = [codes.setdefault(name, len(codes)) for name in row_names(argument, values, number)]
    return Groups(list(codes), torch.tensor(row_codes, dtype=torch.int64))


def codes_by_column(groups: Any, number: int) -> dict[str, Groups]:
    """Return the group codes of rows by column name; empty for None.

    Raises:
        ValueError: If the groups are not a mapping of columns, or as `row_names`.
    """
    if groups is None:
        return {}
    if not isinstance(groups, Mapping):
        raise ValueError(f"groups must map columns to the names of rows, but got a {type(groups).__name__}.")
    return {column: group_codes(f"groups[{column!r}]", values, number) for column, values in groups.items()}


def _is_missing(name: object) -> bool:
    is_nan = isinstance(name, float) and isnan(name)
    return name is None or is_nan or type(name).__name__ in ("NAType", "NaTType") or name == ""  # pandas'
