"""Arguments with a value for each row of data: group and cluster names, weights, frequencies and costs."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, Rule, require
from mpcs_torch.functional.inputs.arrays import as_tensor, by_class
from mpcs_torch.functional.inputs.labels import WEIGHT_RULE


class Groups(NamedTuple):
    """The group of each of N rows, such as the speaker or the recording condition."""

    names: list[str]
    """(G,): the distinct group names, in the order of their first occurrence."""
    codes: Tensor
    """(N,), int64: the index of each row's group in ``names``."""

    def of_rows(self) -> list[str]:
        """Return the name of each row's group, (N,)."""
        return [self.names[code] for code in self.codes.tolist()]


def row_names(argument: str, values: Any, number: int) -> list[str]:
    """Return one name per row; raise a ValueError if ``values`` lacks a name, or does not hold ``number`` names."""
    plain = values.tolist() if hasattr(values, "tolist") else values
    names = [] if isinstance(plain, str) else list(plain)
    require(not any(isinstance(name, list) for name in names), "one_dimension", argument)
    require(len(names) == number, "name_for_each", argument, len(names), rows=number)
    missing = next((row for row, name in enumerate(names) if _is_missing(name)), None)
    if missing is not None:
        raise InvalidValueError("named", argument, names[missing], sample=missing)
    return [str(name) for name in names]


ROW_RULES: Mapping[str, tuple[Rule, Callable[[Tensor], Tensor]]] = {
    "weights": (WEIGHT_RULE._replace(argument="weights"), lambda numbers: (numbers >= 0) & numbers.isfinite()),
    "frequencies": (
        Rule("whole_at_least", "frequencies", {"minimum": 1}),
        lambda numbers: (numbers >= 1) & (numbers % 1 == 0),
    ),
    "costs": (Rule("finite", "costs"), torch.isfinite),
}
"""The rule of each value of a row, by argument, and a function that returns which values obey the rule."""


def row_weights(values: Any, number: int) -> Tensor:
    """Validate one weight for each of ``number`` rows, and return them as float64 (N,) on the CPU."""
    return _row_values("weights", values, (number,)).double()


MAX_REPEATED = 10**8
"""The largest sum of frequencies."""


def row_frequencies(values: Any, number: int) -> Tensor:
    """Validate the number of repetitions of each of ``number`` rows, and return int64 (N,) on the CPU."""
    counts = _row_values("frequencies", values, (number,))
    total = counts.double().sum().item()
    require(total <= MAX_REPEATED, "sum_at_most", "frequencies", total, maximum=MAX_REPEATED)
    return counts.long()


def row_costs(values: Any, target: Tensor, classes: int) -> Tensor:
    """Validate the cost of each of C decisions for each row with a label in ``target``: float64 (N, C) on the CPU.

    From costs by true class, (N, C, C), those of the labels are taken.
    """
    if as_tensor(values, "costs").ndim < 3:
        return _row_values("costs", values, (len(target), classes)).double()
    require(target.ndim == 1, "costs_of_soft_labels", "costs")
    return costs_by_label(_row_values("costs", values, (len(target), classes, classes)).double(), target)


def costs_by_label(costs: Tensor, target: Tensor) -> Tensor:
    """Return what each decision costs, (M, K), if the true classes are ``target`` (M,).

    ``costs`` are of each class if it is wrong, (M, C), so that a right decision costs 0; or by true class, (M, C, K).
    """
    label = target.unsqueeze(1)
    if costs.ndim == 2:
        return costs.scatter(1, label, 0.0)
    return costs.take_along_dim(label.unsqueeze(2), dim=1).squeeze(1)


def flat_costs(costs: Any, shape: Sequence[int]) -> Tensor:
    """Check the shape of ``costs`` for scores of ``shape`` (N, C, ...) or (C,), and flatten them to M rows.

    Costs of each decision have the shape of the scores: (M, C). Costs by true class have one dimension more, (N, C, C,
    ...): (M, C, C).
    """
    costs = as_tensor(costs, "costs").detach()
    place = min(1, len(shape) - 1)
    classes = shape[place]
    shapes = [(*shape,), (*shape[:place], classes, *shape[place:])]
    require(tuple(costs.shape) in shapes, "shape", "costs", costs, shape=f"{shapes[0]} or, by true class, {shapes[1]}")
    if costs.ndim == len(shape):
        return by_class(costs, classes)
    last: Tensor = costs.movedim((place, place + 1), (-2, -1))
    return last.reshape(-1, classes, classes)


def _row_values(argument: str, values: Any, shape: tuple[int, ...]) -> Tensor:
    tensor = as_tensor(values, argument).cpu()
    require(tensor.shape == shape, "shape", argument, tensor, shape=shape)
    rule, is_valid = ROW_RULES[argument]
    flat = tensor.reshape(len(tensor), -1)  # one value for each row, or one for each decision
    bad = (~is_valid(flat)).nonzero().tolist()
    if bad:
        sample, column = bad[0]
        place = {"sample": sample, "column": column if tensor.ndim > 1 else None}
        raise rule.broken_by(flat[sample, column].item(), **place)
    return tensor


def group_codes(argument: str, values: Any, number: int) -> Groups:
    """Return the group of each row from ``values``, one group name per row; `Groups` are returned unchanged."""
    if isinstance(values, Groups):
        count = len(values.codes)
        require(count == number, "name_for_each", argument, count, rows=number)
        return values
    codes = dict[str, int]()
    row_codes = [codes.setdefault(name, len(codes)) for name in row_names(argument, values, number)]
    return Groups(list(codes), torch.tensor(row_codes, dtype=torch.int64))


def codes_by_column(groups: Any, number: int) -> dict[str, Groups]:
    """Return the `Groups` of each column of ``groups``, by column name; an empty dict for None."""
    if groups is None:
        return {}
    is_mapping = isinstance(groups, Mapping)
    require(is_mapping, "mapping_of_names", "groups", groups)
    return {column: group_codes(f"groups[{column!r}]", values, number) for column, values in groups.items()}


def _is_missing(name: object) -> bool:
    is_nan = isinstance(name, float) and isnan(name)
    return name is None or is_nan or type(name).__name__ in ("NAType", "NaTType") or name == ""  # types of pandas
