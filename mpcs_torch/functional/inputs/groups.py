"""Arguments with a value for each row of data: group and cluster names, weights, frequencies and costs."""

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Any, NamedTuple

import torch
from torch import Tensor

from mpcs_torch.errors import InvalidValueError, Rule, require
from mpcs_torch.functional.inputs.arrays import as_tensor, by_class
from mpcs_torch.functional.inputs.labels import is_weight


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
    "weights": (
        Rule("finite_at_least", "weights", minimum=0),
        is_weight,
    ),
    "frequencies": (
        Rule("whole_at_least", "frequencies", minimum=1),
        lambda numbers: (numbers >= 1) & (numbers % 1 == 0),
    ),
    "costs": (Rule("finite", "costs"), torch.isfinite),
    "amounts": (
        Rule("at_least", "amounts", minimum=0),
        lambda numbers: ~(numbers < 0),
    ),
}
"""The rule of each value of a row, by argument, and a function that returns which values obey the rule."""


def row_weights(values: Any, number: int) -> Tensor:
    """Validate one weight for each of ``number`` rows, and return them as float64 (N,) on the CPU."""
    return _row_values("weights", values, number).double()


MAX_REPEATED = 10**8
"""The largest sum of frequencies."""


def row_frequencies(values: Any, number: int) -> Tensor:
    """Validate the number of repetitions of each of ``number`` rows, and return int64 (N,) on the CPU."""
    counts = _row_values("frequencies", values, number)
    total = counts.double().sum().item()
    require(
        total <= MAX_REPEATED, "sum_at_most", "frequencies", total, maximum=MAX_REPEATED
    )
    return counts.long()


def row_costs(values: Any, target: Tensor, shape: Sequence[int]) -> Tensor:
    """Validate the costs of M rows with labels ``target``, and return those of each decision: float64 (M, C), CPU.

    ``values`` have the ``shape`` (N, C, ...), or (N, C, C, ...) with costs for each true class, from which those of the
    labels are taken.
    """
    costs = as_tensor(values, "costs").cpu().double()
    by_decision = tuple(shape)
    by_true = _by_true_class(shape)
    if tuple(costs.shape) == by_decision:
        return valid_values("costs", by_class(costs, shape[1]))
    require(
        tuple(costs.shape) == by_true,
        "shape",
        "costs",
        costs,
        shape=f"{by_decision}, or by true class, {by_true}",
    )
    require(target.ndim == 1, "costs_of_soft_labels", "costs")
    return costs_by_label(valid_values("costs", flat_costs(costs, shape)), target)


def costs_by_label(costs: Tensor, target: Tensor) -> Tensor:
    """Return what each decision costs, (M, K), by ``costs`` (C, K) or (M, C, K), if ``target`` (M,) are the classes."""
    if costs.ndim == 2:  # the same costs for all samples
        return costs.index_select(0, target)
    return costs.take_along_dim(target.reshape(-1, 1, 1), dim=1).squeeze(1)


def costs_if_wrong(amounts: Tensor) -> Tensor:
    """Return costs by true class: deciding for a class costs its amount if the class is wrong, and else nothing.

    Losses and decision rules take costs by true class, because a cost of deciding alone says nothing of the true class.

    Args:
        amounts: ``(N, C)``, ``(N, C, ...)`` or, for one sample, ``(C,)``: what deciding for each class costs if it is
            wrong, such as an amount of money, at least 0; NaN if it is not known.

    Returns:
        ``(N, C, C)``, ``(N, C, C, ...)`` or ``(C, C)``: sample, true class, decision.

    Raises:
        ValueError: If an amount is below 0.

    Example:
        >>> costs_if_wrong(torch.tensor([[600.0, 50.0], [3000.0, 200.0]]))  # of granting a loan, and of refusing it
        tensor([[[   0.,   50.],
                 [ 600.,    0.]],
        <BLANKLINE>
                [[   0.,  200.],
                 [3000.,    0.]]])
    """
    amounts = as_tensor(amounts, "amounts")
    shapes = "(N, C), (N, C, ...) or (C,)"
    require(amounts.ndim > 0, "shape", "amounts", amounts, shape=shapes)
    place = _class_dimension(amounts.shape)
    by_decision = valid_values("amounts", amounts).movedim(place, -1).unsqueeze(-2)
    classes = by_decision.shape[-1]
    is_right = torch.eye(classes, dtype=torch.bool, device=by_decision.device)
    costs: Tensor = torch.where(is_right, 0, by_decision)  # (..., C, C)
    return costs.movedim((-2, -1), (place, place + 1))


def flat_costs(costs: Any, shape: Sequence[int]) -> Tensor:
    """Flatten ``costs`` by true class, (N, C, C, ...), for scores of ``shape`` (N, C, ...) or (C,), to (M, C, C)."""
    costs = as_tensor(costs, "costs").detach()
    by_true = _by_true_class(shape)
    require(
        tuple(costs.shape) == by_true, "costs_by_true_class", "costs", costs, shape=by_true
    )
    place = _class_dimension(shape)
    classes = shape[place]
    classes_last: Tensor = costs.movedim((place, place + 1), (-2, -1))
    return classes_last.reshape(-1, classes, classes)


def _by_true_class(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the shape of costs by true class, for scores of ``shape`` (N, C, ...) or (C,)."""
    place = _class_dimension(shape)
    return (*shape[: place + 1], *shape[place:])  # the dimension of the classes twice


def _class_dimension(shape: Sequence[int]) -> int:
    """Return the dimension of the classes in a ``shape`` (N, C, ...), which is 1, or (C,), which is 0."""
    return min(1, len(shape) - 1)


def _row_values(argument: str, values: Any, number: int) -> Tensor:
    """Validate one value for each of ``number`` rows."""
    tensor = as_tensor(values, argument).cpu()
    require(tensor.shape == (number,), "shape", argument, tensor, shape=(number,))
    return valid_values(argument, tensor)


def valid_values(argument: str, tensor: Tensor) -> Tensor:
    """Return ``tensor`` (N, ...), whose values must obey the rule of ``argument``."""
    rule, is_valid = ROW_RULES[argument]
    by_row = tensor.unsqueeze(1).flatten(1)  # (N, 1) or (N, K): one value, or several
    bad = (~is_valid(by_row)).nonzero().tolist()
    if bad:
        sample, column = bad[0]
        named_column = column if tensor.ndim > 1 else None
        value = by_row[sample, column].item()
        raise rule.broken_by(value, sample=sample, column=named_column)
    return tensor


def group_codes(argument: str, values: Any, number: int) -> Groups:
    """Return the group of each row from ``values``, one group name per row; `Groups` are returned unchanged."""
    if isinstance(values, Groups):
        count = len(values.codes)
        require(count == number, "name_for_each", argument, count, rows=number)
        return values
    names = row_names(argument, values, number)
    distinct = list(dict.fromkeys(names))
    code_of = {name: code for code, name in enumerate(distinct)}
    row_codes = [code_of[name] for name in names]
    return Groups(distinct, torch.tensor(row_codes, dtype=torch.int64))


def codes_by_column(groups: Any, number: int) -> dict[str, Groups]:
    """Return the `Groups` of each column of ``groups``, by column name; an empty dict for None."""
    if groups is None:
        return {}
    is_mapping = isinstance(groups, Mapping)
    require(is_mapping, "mapping_of_names", "groups", groups)
    return {
        column: group_codes(f"groups[{column!r}]", values, number)
        for column, values in groups.items()
    }


def _is_missing(name: object) -> bool:
    is_nan = isinstance(name, float) and isnan(name)
    is_of_pandas = type(name).__name__ in ("NAType", "NaTType")
    return name is None or is_nan or is_of_pandas or name == ""
